package keys

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"

	"go.mau.fi/whatsmeow/proto/waAdv"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// shelf is a key store in a directory of its own, without a vendor.
type shelf struct {
	dir  string
	db   *store.Store
	box  *seal.Box
	raw  *sql.DB // another connection to the same file
	keys *Store

	reads   atomic.Int64           // queries of the keys
	reading atomic.Pointer[func()] // is called before each, unless it is nil
}

func newShelf(tb testing.TB) *shelf {
	tb.Helper()
	s := &shelf{dir: migrated.Dir(tb, "")}
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	s.box = box
	s.reopen(tb)
	s.raw = openRaw(tb, s.dir)
	tb.Cleanup(func() { closing(tb, s.db.Close) })
	return s
}

// openRaw opens the file of a store beside it.
func openRaw(tb testing.TB, dir string) *sql.DB {
	tb.Helper()
	raw, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(dir, "postern.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate",
	)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closing(tb, raw.Close) })
	return raw
}

func closing(tb testing.TB, closeIt func() error) {
	tb.Helper()
	if err := closeIt(); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// sabotage runs SQL on the key store.
func (s *shelf) sabotage(tb testing.TB, statement string) {
	tb.Helper()
	if _, err := s.raw.ExecContext(context.WithoutCancel(tb.Context()), statement); err != nil {
		tb.Fatalf("sabotage: %v", err)
	}
}

// failWrites makes inserts of a kind of record fail; mend lets them succeed.
func (s *shelf) failWrites(tb testing.TB, kind string) (mend func()) {
	tb.Helper()
	s.sabotage(tb, "CREATE TRIGGER broken BEFORE INSERT ON session_key WHEN NEW.kind = '"+kind+
		"' BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END")
	return func() { s.sabotage(tb, "DROP TRIGGER broken") }
}

// reopen closes the database, as a process that ends, and opens it again.
func (s *shelf) reopen(tb testing.TB) {
	tb.Helper()
	if s.db != nil {
		closing(tb, s.db.Close)
	}
	count := func(query string, _ []any) {
		if strings.Contains(query, "FROM session_key") {
			s.reads.Add(1)
			if call := s.reading.Load(); call != nil {
				(*call)()
			}
		}
	}
	db, err := store.Open(context.WithoutCancel(tb.Context()), store.Options{Dir: s.dir, Trace: count})
	if err != nil {
		tb.Fatal(err)
	}
	s.db, s.keys = db, NewStore(db, s.box, waLog.Noop)
}

// link stores the keys of a new account.
func (s *shelf) link(tb testing.TB, account string) types.JID {
	tb.Helper()
	jid := mustParse(tb, account)
	device := s.keys.Fresh("")
	device.ID, device.LID = &jid, types.JID{User: "9" + jid.User, Device: jid.Device, Server: types.HiddenUserServer}
	device.Account = signature()
	device.PushName = "canary name"
	if err := device.Save(tb.Context()); err != nil {
		tb.Fatalf("save: %v", err)
	}
	return jid
}

func signature() *waAdv.ADVSignedDeviceIdentity {
	long := bytes.Repeat([]byte{1}, 64)
	return &waAdv.ADVSignedDeviceIdentity{
		Details:             long,
		AccountSignature:    long,
		AccountSignatureKey: long[:32],
		DeviceSignature:     long,
	}
}

// ring is a Ring and the stores of its device.
type ring struct {
	*Ring
	wastore.IdentityStore
	wastore.SessionStore
	wastore.PreKeyStore
	wastore.SenderKeyStore
	wastore.AppStateSyncKeyStore
	wastore.AppStateStore
	wastore.ContactStore
	wastore.ChatSettingsStore
	wastore.MsgSecretStore
	wastore.PrivacyTokenStore
	wastore.NCTSaltStore
	wastore.EventBuffer
	wastore.LIDStore
}

// open returns the ring of a new connection.
func (s *shelf) open(tb testing.TB, account types.JID) ring {
	tb.Helper()
	device, err := s.keys.Load(tb.Context(), account.String())
	if err != nil {
		tb.Fatalf("load: %v", err)
	}
	r, ok := RingOf(device)
	if !ok {
		tb.Fatal("the device has no ring")
	}
	return ring{
		r,
		device.Identities,
		device.Sessions,
		device.PreKeys,
		device.SenderKeys,
		device.AppStateKeys,
		device.AppState,
		device.Contacts,
		device.ChatSettings,
		device.MsgSecrets,
		device.PrivacyTokens,
		device.NCTSalt,
		device.EventBuffer,
		device.LIDs,
	}
}

const (
	accountA = "15550001111:3@s.whatsapp.net"
	accountB = "15550002222:4@s.whatsapp.net"
	address  = "15550003333:0"
)

func (r ring) session(tb testing.TB, address string) string {
	tb.Helper()
	session, err := r.GetSession(tb.Context(), address)
	if err != nil {
		tb.Fatalf("get session: %v", err)
	}
	return string(session)
}

// receive does what decrypting a message does.
func (r ring) receive(ctx context.Context, hash byte, session string) error {
	return r.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		if err := r.PutSession(ctx, address, []byte(session)); err != nil {
			return err
		}
		return r.PutBufferedEvent(ctx, [32]byte{hash}, []byte("plaintext"), time.Unix(1, 0))
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestTransactionIsSeenWhenItEnds(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	must(t, r.PutSession(t.Context(), address, []byte("one")))
	boom := errors.New("boom")
	outside := func() string { return r.session(t, address) }
	err := r.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
		must(t, r.PutSession(ctx, address, []byte("two")))
		if got, err := r.GetSession(ctx, address); err != nil || string(got) != "two" {
			t.Errorf("inside: session = %q, %v, want two", got, err)
		}
		if got := outside(); got != "one" {
			t.Errorf("outside: session = %q, want one", got)
		}
		must(t, r.PutBufferedEvent(ctx, [32]byte{1}, []byte("text"), time.Unix(1, 0)))
		must(t, r.PutIdentity(ctx, address, [32]byte{1}))
		must(t, r.RemovePreKey(ctx, 1))
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("transaction = %v, want boom", err)
	}
	must(t, r.Flush(t.Context()))
	if got := r.session(t, address); got != "one" {
		t.Errorf("after it failed: session = %q, want one", got)
	}
	if event, err := r.GetBufferedEvent(t.Context(), [32]byte{1}); err != nil || event != nil {
		t.Errorf("after it failed: event = %v, %v, want none", event, err)
	}
	if n := s.count(t, "kind IN ('event', 'identity')"); n != 0 {
		t.Errorf("%d rows of it are on disk", n)
	}
	must(t, r.receive(t.Context(), 2, "three"))
	if got := r.session(t, address); got != "three" {
		t.Errorf("after it ended: session = %q, want three", got)
	}
}

func TestPanicInATransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	func() {
		defer func() { _ = recover() }()
		_ = r.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
			must(t, r.PutSession(ctx, address, []byte("two")))
			panic("boom")
		})
	}()
	if got := r.session(t, address); got != "" {
		t.Errorf("session = %q, want none", got)
	}
	must(t, r.PutSession(t.Context(), address, []byte("one"))) // the lock was let go
}

// count counts rows on disk.
func (s *shelf) count(tb testing.TB, where string) (n int) {
	tb.Helper()
	query := "SELECT count(*) FROM session_key WHERE " + where
	if err := s.raw.QueryRowContext(tb.Context(), query).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// stopTimer keeps r from writing after a delay, as if a timer ran already.
func (r ring) stopTimer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushing = true
}

func TestWhatIsNotDurableIsLostWhole(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	r.stopTimer()
	must(t, r.receive(t.Context(), 1, "one"))
	must(t, r.Flush(t.Context()))
	must(t, r.receive(t.Context(), 2, "two"))
	// The process ends here: r is not closed.
	s.reopen(t)
	r = s.open(t, a)
	if got := r.session(t, address); got != "one" {
		t.Errorf("session = %q, want one", got)
	}
	for hash, want := range map[byte]bool{1: true, 2: false} {
		event, err := r.GetBufferedEvent(t.Context(), [32]byte{hash})
		if err != nil || (event != nil) != want {
			t.Errorf("event %d = %v, %v, want it to be there: %v", hash, event, err, want)
		}
	}
}

func TestAnyChangeMakesDurableWhatCameBefore(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*testing.T, ring) error{
		"flush started, and another write": func(t *testing.T, r ring) error {
			must(t, r.StartFlush(t.Context()))
			return r.store.db.Settings.Set(t.Context(), "a", "b")
		},
		"send": func(t *testing.T, r ring) error {
			return r.PutManySessions(t.Context(), map[string][]byte{"15550009999:0": []byte("x")})
		},
		"close": func(t *testing.T, r ring) error {
			r.Close(t.Context())
			return nil
		},
		"time": func(t *testing.T, r ring) error {
			for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if left, _ := r.unwritten(); !left {
					return r.Flush(t.Context())
				}
			}
			return errors.New("nothing was written")
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			r := s.open(t, s.link(t, accountA))
			must(t, r.receive(t.Context(), 1, "one"))
			must(t, change(t, r))
			if n := s.count(t, "kind IN ('event', 'session') AND name <> '15550009999:0'"); n != 2 {
				t.Errorf("%d rows are on disk, want 2", n)
			}
		})
	}
}

// TestNothingIsDurableWithoutWhatItWasMadeFrom makes the plaintext of a message
// fail to be written, and lets a send use the session that decrypted it.
func TestNothingIsDurableWithoutWhatItWasMadeFrom(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	must(t, r.PutSession(t.Context(), address, []byte("one")))
	mend := s.failWrites(t, kindEvent)
	must(t, r.receive(t.Context(), 1, "two"))
	must(t, r.StartFlush(t.Context())) // will fail, and nobody has waited yet
	err := r.PutManySessions(t.Context(), map[string][]byte{address: []byte("three")})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("send = %v, want that the key store is not available", err)
	}
	mend()
	if err := r.Flush(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("acknowledge = %v, want a refusal", err)
	}
	if _, err := r.GetSession(t.Context(), address); !errors.Is(err, ErrUnavailable) {
		t.Errorf("get = %v, want that nothing is read any more", err)
	}
	r = s.open(t, a)
	if got := r.session(t, address); got != "one" {
		t.Errorf("session = %q after a new connection, want one", got)
	}
}

func TestWhatIsNotedDuringAChangeIsStillToBeWritten(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	r.stopTimer()
	wait, err := r.startChange(t.Context(), func(b *batch) error {
		b.put(ref{kindSession, address}, record{value: []byte("one")})
		return nil
	})
	must(t, err)
	must(t, r.receive(t.Context(), 1, "two"))
	must(t, wait())
	if left, _ := r.unwritten(); !left {
		t.Error("nothing is left to be written")
	}
	if got := r.session(t, address); got != "two" {
		t.Errorf("session = %q, want two", got)
	}
}

func TestNobodyChangesWhatADecryptionReads(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	must(t, r.DoDecryptionTxn(t.Context(), func(context.Context) error {
		if r.changing.TryLock() {
			r.changing.Unlock()
			t.Error("a change can be made meanwhile")
		}
		return nil
	}))
}

func TestWhatWasReadBeforeAChangeIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	k := ref{kindSession, address}
	_, _, generation := r.recall(t.Context(), k) // a read begins
	must(t, r.PutSession(t.Context(), address, []byte("new")))
	r.remember(k, record{value: []byte("old")}, generation) // and ends
	if got := r.session(t, address); got != "new" {
		t.Errorf("session = %q, want new", got)
	}
}

func TestFailedWriteEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	ended := false
	r.fail = func() { ended = true }
	s.failWrites(t, kindSalt)
	if err := r.PutNCTSalt(t.Context(), []byte("salt")); !errors.Is(err, context.Canceled) {
		t.Errorf("put = %v, want what whatsmeow does not acknowledge", err)
	}
	if !ended {
		t.Error("the connection goes on")
	}
}

func TestCallerWhoGivesUpIsNoFailure(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	r.fail = func() { t.Error("the connection ends") }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the writer may take it before it is seen that the caller has gone
		if err := r.PutSession(ctx, address, []byte("one")); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("put = %v", err)
		}
	}
	must(t, r.PutSession(t.Context(), address, []byte("two")))
}

func TestCallThatOutlivesItsConnectionWritesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	old := s.open(t, a)
	old.Close(t.Context())
	r := s.open(t, a)
	must(t, r.PutSession(t.Context(), address, []byte("new")))
	if err := old.PutSession(t.Context(), address, []byte("old")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("put = %v, want a refusal", err)
	}
	if err := old.receive(t.Context(), 1, "old"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("decrypt = %v, want a refusal", err)
	}
	old.Close(t.Context())
	if got := s.open(t, a).session(t, address); got != "new" {
		t.Errorf("session = %q, want new", got)
	}
}

func TestWhatWasNotedIsNotWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	must(t, r.receive(t.Context(), 1, "one"))
	r.Abandon()
	must(t, s.keys.Forget(t.Context(), a.String()))
	r.flushAfterDelay() // what the timer does
	r.Close(t.Context())
	if n := s.count(t, "true"); n != 0 {
		t.Errorf("%d rows were written for an account that is forgotten", n)
	}
}

func TestSendSeesThatItsSessionMovedOn(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	must(t, r.PutSession(t.Context(), address, []byte("one")))
	encrypt := func(between func()) error {
		_, err := r.GetManySessions(t.Context(), []string{address})
		must(t, err)
		between()
		return r.PutManySessions(t.Context(), map[string][]byte{address: []byte("sent")})
	}
	err := encrypt(func() { must(t, r.receive(t.Context(), 1, "received")) })
	if !errors.Is(err, ErrStale) || errors.Is(err, ErrUnavailable) {
		t.Errorf("send = %v, want that the session changed", err)
	}
	if got := r.session(t, address); got != "received" {
		t.Errorf("session = %q, want received", got)
	}
	must(t, encrypt(func() {}))
	if got := r.session(t, address); got != "sent" {
		t.Errorf("session = %q, want sent", got)
	}
}

// A message that is encrypted beside others does not take their key again.
func TestSessionThatChangedIsNotStoredApart(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	must(t, r.PutSession(t.Context(), address, []byte("one")))
	encrypt := func(with context.Context, between func()) error {
		_, err := r.GetSession(with, address)
		must(t, err)
		between()
		return r.PutSession(with, address, []byte("answered"))
	}
	for name, between := range map[string]func(){
		"received": func() { must(t, r.receive(t.Context(), 1, "received")) },
		"sent": func() {
			_, err := r.GetManySessions(t.Context(), []string{address})
			must(t, errors.Join(err, r.PutManySessions(t.Context(), map[string][]byte{address: []byte("sent")})))
		},
	} {
		if err := encrypt(Apart(t.Context()), between); !errors.Is(err, ErrStale) {
			t.Errorf("%s meanwhile: %v, want that the session changed", name, err)
		}
		if got := r.session(t, address); got != name {
			t.Errorf("session = %q, want %s", got, name)
		}
	}
	with := Apart(t.Context())
	must(t, encrypt(with, func() {}))
	must(t, encrypt(with, func() {}))
	if got := r.session(t, address); got != "answered" {
		t.Errorf("session = %q, want answered", got)
	}
}

// The sessions of a big group are more than one transaction takes.
func TestManySessionsAreStored(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	list, addresses := map[string][]byte{}, []string{}
	for i := range 700 {
		one := fmt.Sprintf("1%09d_1:0", i)
		list[one], addresses = []byte(one), append(addresses, one)
	}
	must(t, r.PutManySessions(t.Context(), list))
	got, err := r.GetManySessions(t.Context(), addresses)
	must(t, err)
	if !maps.EqualFunc(got, list, bytes.Equal) {
		t.Errorf("%d sessions are stored", len(got))
	}
	must(t, r.PutSession(t.Context(), addresses[699], []byte("moved on")))
	if err := r.PutManySessions(t.Context(), list); !errors.Is(err, ErrStale) {
		t.Errorf("a session moved on: %v", err)
	}
}

func TestRefusedMessageKeepsItsPlaintext(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	must(t, r.receive(t.Context(), 1, "one"))
	r.Refuse()
	must(t, r.ClearBufferedEventPlaintext(t.Context(), [32]byte{1}))
	r.Close(t.Context())
	event, err := s.open(t, a).GetBufferedEvent(t.Context(), [32]byte{1})
	if err != nil || event == nil || string(event.Plaintext) != "plaintext" || event.ServerTime.Unix() != 1 {
		t.Errorf("event = %+v, %v, want the plaintext", event, err)
	}
}

func TestAccountsKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a, b := s.open(t, s.link(t, accountA)), s.open(t, s.link(t, accountB))
	lid, pn := types.NewJID("777", types.HiddenUserServer), types.NewJID("15550003333", types.DefaultUserServer)
	must(t, a.PutLIDMapping(t.Context(), lid, pn))
	must(t, a.PutSession(t.Context(), address, []byte("one")))
	for _, r := range []ring{b, s.open(t, mustParse(t, accountB))} {
		if got, err := r.GetLIDForPN(t.Context(), pn); err != nil || !got.IsEmpty() {
			t.Errorf("LID = %v, %v, want none", got, err)
		}
		if got, err := r.GetPNForLID(t.Context(), lid); err != nil || !got.IsEmpty() {
			t.Errorf("number = %v, %v, want none", got, err)
		}
		if got := r.session(t, address); got != "" {
			t.Errorf("session = %q, want none", got)
		}
	}
	if got, err := a.GetLIDForPN(t.Context(), pn); err != nil || got != lid {
		t.Errorf("LID = %v, %v, want %v", got, err, lid)
	}
}

func mustParse(tb testing.TB, account string) types.JID {
	tb.Helper()
	jid, err := types.ParseJID(account)
	if err != nil {
		tb.Fatal(err)
	}
	return jid
}

func TestMovedValueCannotBeOpened(t *testing.T) {
	t.Parallel()
	moves := map[string]string{
		"to another account": "UPDATE session_key SET account = '" + accountB + "' WHERE kind = 'session'",
		"to another name":    "UPDATE session_key SET name = '15550004444:0' WHERE kind = 'session'",
		"to another kind":    "UPDATE session_key SET kind = 'sender-key', name = '" + address + "' WHERE kind = 'session'",
		"changed": "UPDATE session_key SET value = CAST(substr(value, 1, length(value) - 1) || " +
			"CASE substr(value, -1) WHEN x'00' THEN x'01' ELSE x'00' END AS BLOB) WHERE kind = 'session'",
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			a := s.link(t, accountA)
			b := s.link(t, accountB)
			r := s.open(t, a)
			must(t, r.PutSession(t.Context(), address, []byte("one")))
			r.Close(t.Context())
			s.sabotage(t, move)
			var errs []error
			for _, jid := range []types.JID{a, b} {
				for _, at := range []string{address, "15550004444:0"} {
					_, err := s.open(t, jid).GetSession(t.Context(), at)
					errs = append(errs, err)
				}
			}
			_, err := s.open(t, a).GetSenderKey(t.Context(), "", "") // the name of a sender key has two parts
			errs = append(errs, err)
			_, err = s.open(t, a).list(t.Context(), kindSenderKey, "")
			if !errors.Is(errors.Join(append(errs, err)...), ErrUnavailable) {
				t.Error("it was opened")
			}
		})
	}
}

func TestForgetRemovesEverything(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a, b := s.link(t, accountA), s.link(t, accountB)
	r := s.open(t, a)
	fill(t, r)
	r.Close(t.Context())
	rows := s.count(t, "account = '"+accountB+"'")
	must(t, s.keys.Forget(t.Context(), a.String()))
	if n := s.count(t, "account = '"+accountA+"'"); n != 0 {
		t.Errorf("%d rows stay", n)
	}
	if n := s.count(t, "account = '"+accountB+"'"); n != rows {
		t.Errorf("%d rows of another account are left, want %d", n, rows)
	}
	if _, err := s.keys.Load(t.Context(), a.String()); !errors.Is(err, network.ErrUnknownAccount) {
		t.Errorf("load = %v, want that the account is unknown", err)
	}
	s.open(t, b)
}

// fill writes something of every kind.
func fill(tb testing.TB, r ring) {
	tb.Helper()
	ctx := tb.Context()
	jid := types.NewJID("15550003333", types.DefaultUserServer)
	canary := []byte("canary-of-32-bytes-0123456789abc")
	must(tb, r.PutIdentity(ctx, address, [32]byte(canary)))
	must(tb, r.PutSession(ctx, address, canary))
	_, err := r.GetOrGenPreKeys(ctx, 5)
	must(tb, err)
	must(tb, r.PutSenderKey(ctx, "group@g.us", address, canary))
	must(
		tb,
		r.PutAppStateSyncKey(ctx, []byte{1}, wastore.AppStateSyncKey{Data: canary, Fingerprint: canary, Timestamp: 1}),
	)
	must(tb, r.PutAppStateVersion(ctx, "critical", 1, [128]byte(bytes.Repeat(canary, 4))))
	must(
		tb,
		r.PutAppStateMutationMACs(
			ctx,
			"critical",
			1,
			[]wastore.AppStateMutationMAC{{IndexMAC: []byte("index"), ValueMAC: canary}},
		),
	)
	_, _, err = r.PutPushName(ctx, jid, string(canary))
	must(tb, err)
	must(tb, r.PutPinned(ctx, jid, true))
	must(tb, r.PutMessageSecret(ctx, jid, jid, "3EB0", canary))
	must(tb, r.PutPrivacyTokens(ctx, wastore.PrivacyToken{User: jid, Token: canary, Timestamp: time.Unix(1, 0)}))
	must(tb, r.PutNCTSalt(ctx, canary))
	must(tb, r.PutLIDMapping(ctx, types.NewJID("777", types.HiddenUserServer), jid))
	must(tb, r.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		return r.PutBufferedEvent(ctx, [32]byte{1}, canary, time.Unix(1, 0))
	}))
}

func TestNothingIsReadableOnDisk(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	fill(t, r)
	keys, err := r.GetOrGenPreKeys(t.Context(), 5)
	must(t, err)
	r.Close(t.Context())
	device, err := s.keys.Load(t.Context(), a.String())
	must(t, err)
	secrets := map[string][]byte{
		"a canary": []byte(
			"canary",
		),
		"the noise key":      device.NoiseKey.Priv[:],
		"the identity":       device.IdentityKey.Priv[:],
		"the signed prekey":  device.SignedPreKey.Priv[:],
		"the pairing secret": device.AdvSecretKey,
		"a prekey":           keys[0].Priv[:],
	}
	files := diskOf(t, s.dir)
	if !bytes.Contains(files, []byte(accountA)) {
		t.Fatal("the files do not hold the account: the test proves nothing")
	}
	for what, secret := range secrets {
		if bytes.Contains(files, secret) {
			t.Errorf("the files hold %s", what)
		}
	}
}

// diskOf returns the contents of all files of a directory.
func diskOf(tb testing.TB, dir string) []byte {
	tb.Helper()
	var all []byte
	entries, err := os.ReadDir(dir)
	must(tb, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(tb, err)
		all = append(all, b...)
	}
	return all
}

func TestPreKeyIDsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	first, err := r.GetOrGenPreKeys(t.Context(), 3)
	must(t, err)
	for _, key := range first {
		must(t, r.RemovePreKey(t.Context(), key.KeyID))
	}
	r.Close(t.Context())
	next, err := s.open(t, a).GenOnePreKey(t.Context())
	must(t, err)
	if next.KeyID != 4 {
		t.Errorf("id = %d, want 4", next.KeyID)
	}
}

func TestRingStaysSmall(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	_, err := r.GetOrGenPreKeys(t.Context(), 812)
	must(t, err)
	for i := range 500 {
		at := preKeyName(uint32(i)) + ":0"
		must(t, r.PutIdentity(t.Context(), at, [32]byte{1}))
		must(
			t,
			r.DoDecryptionTxn(
				t.Context(),
				func(ctx context.Context) error { return r.PutSession(ctx, at, make([]byte, 1000+100*(i%50))) },
			),
		)
	}
	must(t, r.Flush(t.Context()))
	if len(r.pending) != 0 {
		t.Errorf("%d records are pending, want none", len(r.pending))
	}
	if held := sizeOf(r.cache.young) + sizeOf(r.cache.old); held > 20_000 {
		t.Errorf("it holds %d bytes", held)
	}
}

func sizeOf(records map[ref]record) (n int) {
	for k, rec := range records {
		n += recordBytes + len(k.name) + len(rec.value)
	}
	return n
}

func TestCacheForgetsWhatItCannotHold(t *testing.T) {
	t.Parallel()
	var c cache
	k := ref{kindSession, address}
	for range 3 {
		c.put(k, record{value: []byte("small")})
		for i := range 40 { // push it into the old generation
			c.put(ref{kindSession, preKeyName(uint32(i))}, record{value: make([]byte, 100)})
		}
		if _, ok := c.get(k); !ok {
			t.Fatal("what was used is gone")
		}
		c.put(k, record{value: make([]byte, cacheBytes)})
		if rec, ok := c.get(k); ok {
			t.Errorf("it holds %d bytes: an old value, or a large one", len(rec.value))
		}
	}
	c.put(ref{kindEvent, "x"}, record{value: []byte("x")})
	if _, ok := c.get(ref{kindEvent, "x"}); ok {
		t.Error("it holds a plaintext")
	}
}

func TestNamesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{"a", "b"},
		{"a b"},
		{"a%20b"},
		{"a", "b", ""},
		{"a\x00b"},
		{"a", "", "b"},
		{"ä"},
		{"\xff"},
		{"a+b"},
		{"%"},
		{""},
		{"~"},
		{"\x7f"},
	} {
		name := nameOf(parts...)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q have the name %q", parts, other, name)
		}
		seen[name] = parts
		for i := range len(name) {
			if name[i] < ' ' || name[i] > '~' {
				t.Errorf("the name of %q is not printable ASCII", parts)
			}
		}
	}
}
