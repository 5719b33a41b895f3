package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	storage "postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
)

func TestSecondServerIsToldWhoHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	first := engine{postgres: true}.options(t)
	db := reopen(t, first)
	second := Options{Dir: t.TempDir(), URL: first.URL}
	_, err := Open(t.Context(), second)
	inUse, ok := errors.AsType[*InUseError](err)
	if !ok || !strings.Contains(inUse.Holder, fmt.Sprintf("process %d", os.Getpid())) ||
		strings.Count(inUse.Holder, ",") != 1 {
		t.Fatalf("second Open = %v, want an InUseError that names this process", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reopen(t, second)
}

func TestListsAreInTheOrderOfTheBytesOfTheirIds(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		var want []string
		for _, id := range []string{"dev_a", "dev_B", "dev_Z", "dev_é", "dev_1", "dev-2"} {
			d := postern.Device{ID: postern.DeviceID(id), WorkspaceID: ws, Metadata: map[string]string{}}
			if err := db.Devices.Create(t.Context(), d, nil); err != nil {
				t.Fatal(err)
			}
			want = append(want, id)
		}
		slices.Sort(want)
		slices.Reverse(want)
		var got []string
		for p := (Page{Limit: 2}); ; p.After = got[len(got)-1] {
			list, err := db.Devices.List(t.Context(), ws, nil, p)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				break
			}
			for _, d := range list {
				got = append(got, string(d.ID))
			}
		}
		sameText(t, "devices", got, want...)
	})
}

func TestTextThatNoDatabaseHoldsIsStoredWithAMark(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		o := inboundOf(d, "A\x00", "lid:\xff", "one\x00two\xff")
		o.Message.FromName, o.Message.Metadata = "\x00", map[string]string{"a\x00": "b\x00\xff"}
		for range 2 {
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "message.received")
		m, err := db.Messages.Get(t.Context(), d.WorkspaceID, o.Message.ID)
		if err != nil || m.Content.Text != "one\uFFFDtwo\uFFFD" || m.FromName != "\uFFFD" {
			t.Errorf("message = %+q (%v)", m.Content.Text, err)
		}
		for _, id := range []string{"\x00", "msg_\x00", "\xff"} {
			if _, err := db.Messages.Get(t.Context(), d.WorkspaceID,
				postern.MessageID(id)); postern.ReasonOf(err) != postern.NotFound {
				t.Errorf("Message(%q) = %v, want not-found", id, err)
			}
		}
		odd := MessageSearch{Devices: []postern.DeviceID{"\x00", "\xff"}, ChatID: "\x00", Statuses: []string{"\xff\x00"}}
		if list := messagesOf(t, db, d.WorkspaceID, odd); len(list) != 0 {
			t.Errorf("Messages = %v", list)
		}
	})
}

// grouped writes ops as one group.
func grouped(db *Store, ops ...op) (errs []error) {
	hold, held := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(held) })
	db.db.Later(opFunc(func(*tx) error { begun(); <-hold; return nil }))
	<-held // alone in its group: what follows shares the next
	var waits []func() error
	for _, o := range ops {
		wait, err := db.db.Start(context.Background(), o)
		if err != nil {
			panic(err)
		}
		waits = append(waits, wait)
	}
	// The first group holds the writer; the waiting operations form the next group.
	close(hold)
	for _, wait := range waits {
		errs = append(errs, wait())
	}
	return errs
}

func putSetting(name string) opFunc {
	return opFunc(func(tx *tx) error { return tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, '')`, name) })
}

func TestOpThatGoesOnAfterAFailedStatementHasFailed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		careless := opFunc(func(tx *tx) error {
			if err := putSetting("a")(tx); err != nil {
				return err
			}
			_ = putSetting("a")(tx)
			return nil
		})
		errs := grouped(db, putSetting("b"), careless, putSetting("c"))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("outcomes = %v, want only the second to fail", errs)
		}
		if n := count(t, db, `SELECT count(*) FROM setting`); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
	})
}

func TestRefusalBeforeAnyChangeDoesNotRepeatTheGroup(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		var ran int
		counted := opFunc(func(tx *tx) error { ran++; return putSetting(fmt.Sprint(ran))(tx) })
		refused := QueueMessage{
			Message: outbound(postern.Device{ID: "dev_none", WorkspaceID: ws}),
			Month:   MonthOf(testNow),
		}
		errs := grouped(db, counted, hot(refused), counted)
		if errs[0] != nil || postern.ReasonOf(errs[1]) != postern.NotFound || errs[2] != nil || ran != 2 {
			t.Errorf("outcomes = %v, ops ran %d times, want 2", errs, ran)
		}
	})
}

// load writes messages under idempotency keys from many callers until it is
// stopped, each key until it is answered.
type load struct {
	t    *testing.T
	db   *Store
	d    postern.Device
	stop chan struct{}
	wg   sync.WaitGroup

	mu          sync.Mutex
	accepted    map[string]postern.MessageID // by key, answered with success
	unavailable atomic.Int32
}

func startLoad(t *testing.T, db *Store, callers int) *load {
	t.Helper()
	l := &load{
		t: t, db: db, d: newDevice(t, db, newWorkspace(t, db), postern.Connected), stop: make(chan struct{}),
		accepted: map[string]postern.MessageID{},
	}
	for i := range callers {
		l.wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
					l.send(fmt.Sprintf("%d-%d", i, n))
				}
			}
		})
	}
	return l
}

func (l *load) send(key string) {
	for {
		m := outbound(l.d)
		once := &Once{
			WorkspaceID: l.d.WorkspaceID, Method: "POST", Path: "/", Key: key, Answer: []byte(m.ID),
			At: testNow,
		}
		err := l.db.Messages.Queue(l.t.Context(),
			QueueMessage{Message: m, Month: MonthOf(testNow), Once: once})
		switch {
		case err == nil:
			l.mu.Lock()
			l.accepted[key] = m.ID
			l.mu.Unlock()
			return
		case errors.Is(err, ErrAlreadyDone):
			return
		case postern.ReasonOf(err) != postern.Unavailable:
			l.t.Errorf("QueueMessage = %v, want unavailable", err)
			return
		}
		l.unavailable.Add(1)
		if _, err := l.db.Devices.Get(l.t.Context(), l.d.WorkspaceID, l.d.ID); err != nil &&
			postern.ReasonOf(err) != postern.Unavailable {
			l.t.Errorf("Device = %v, want unavailable", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// finish stops the callers and checks that all accepted messages are stored, and that no
// key had two effects.
func (l *load) finish() {
	l.t.Helper()
	close(l.stop)
	l.wg.Wait()
	stored := map[string]postern.MessageID{}
	err := l.db.db.Rows(l.t.Context(), `SELECT i.key, i.answer FROM idempotency i JOIN message m
		ON m.id = convert_from(i.answer, 'UTF8')`, nil, func(r *sql.Rows) error {
		var key string
		var id []byte
		err := r.Scan(&key, &id)
		stored[key] = postern.MessageID(id)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	for key, id := range l.accepted {
		if stored[key] != id {
			l.t.Errorf("key %s was answered with %s, stored is %q", key, id, stored[key])
		}
	}
	used, err := l.db.Usage.Messages(l.t.Context(), l.d.WorkspaceID, MonthOf(testNow))
	if n := count(l.t, l.db, `SELECT count(*) FROM message`); n != len(stored) || used != n || err != nil {
		l.t.Errorf("%d messages, %d keys, %d units used (%v): they must be the same", n, len(stored), used, err)
	}
	l.t.Logf("%d keys, %d answered with success, %d answers were unavailable", len(stored), len(l.accepted),
		l.unavailable.Load())
}

// soon waits until a write succeeds.
func soon(t *testing.T, db *Store) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := db.Settings.Set(t.Context(), "soon", "")
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute || postern.ReasonOf(err) != postern.Unavailable {
			t.Fatalf("no write after %s: %v", time.Since(began), err)
		}
	}
}

func TestNothingIsLostOrDoubledWhenConnectionsAreCut(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	db := reopen(t, opts)
	admin := openAdmin(t, opts.URL)
	l := startLoad(t, db, 16)
	for range 40 {
		time.Sleep(30 * time.Millisecond)
		if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, db)
	l.finish()
}

func openAdmin(t *testing.T, where string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestNothingIsLostOrDoubledWhenTheServerCrashes(t *testing.T) {
	t.Parallel()
	cluster := dbtest.New(t)
	db := reopen(t, Options{Dir: t.TempDir(), URL: cluster.URL(t)})
	l := startLoad(t, db, 16)
	for range 3 {
		time.Sleep(300 * time.Millisecond)
		cluster.Crash()
		time.Sleep(100 * time.Millisecond)
		cluster.Start(t)
		began := time.Now()
		soon(t, db)
		t.Logf("writes work again %s after the server", time.Since(began).Round(time.Millisecond))
	}
	l.finish()
}

// cutter is a proxy between a store and its server.
type cutter struct {
	net.Listener

	server string
	armed  atomic.Bool // drops the next response and cuts the connection
	frozen atomic.Bool // data is read and discarded
}

func (c *cutter) answerLimit() time.Duration {
	if c.frozen.Load() {
		return 200 * time.Millisecond
	}
	return 30 * time.Second
}

// newCutter returns a URL of a database through a proxy that can cut the connection.
func newCutter(t *testing.T, target string) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	q, dir := u.Query(), t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, server: filepath.Join(q.Get("host"), ".s.PGSQL.5432")}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := c.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.carry(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return c, u.String()
}

func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.pipe(server, client, func() bool { return false }) })
	c.pipe(client, server, func() bool { return c.armed.CompareAndSwap(true, false) })
	client.Close()
	server.Close()
}

func (c *cutter) pipe(to, from net.Conn, cut func() bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || cut() {
			to.Close()
			return
		}
		if c.frozen.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestCommitWithoutAnAnswerIsNeverSaidToBeDone cuts the connection after the server has
// committed and before it responds.
func TestCommitWithoutAnAnswerIsNeverSaidToBeDone(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	c, way := newCutter(t, opts.URL)
	opts.URL = way
	db := reopen(t, opts)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	if err := db.db.Do(t.Context(), putSetting("before")); err != nil { // now its statements are prepared
		t.Fatal(err)
	}
	woken := db.Listen(OutboundQueued, "")
	defer woken.Close()
	var ran int
	db.db.Later(opFunc(func(tx *tx) error {
		ran++
		return tx.Exec(`INSERT INTO setting (name, value) VALUES ('later', '1') ON CONFLICT (name) DO NOTHING`)
	}))
	err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
		var n int
		read := tx.Row(`SELECT count(*) FROM setting`, nil, &n) // what was gathered is sent before
		err := putSetting("committed")(tx)
		tx.Wake(OutboundQueued, string(d.ID))
		c.armed.Store(true) // the write goes with the commit, and only they are left
		return errors.Join(read, err)
	}))
	if postern.ReasonOf(err) != postern.Unavailable || !errors.Is(err, storage.ErrUnknown) {
		t.Fatalf("a commit without a response = %v, want unavailable and unknown", err)
	}
	select {
	case <-woken.C():
	case <-time.After(time.Minute):
		t.Error("the sender was not woken, though the message may be there")
	}
	if n := count(t, db, `SELECT count(*) FROM setting WHERE name = 'committed'`); n != 1 {
		t.Errorf("%d rows were committed, want 1", n)
	}
	if v, err := db.Settings.Get(t.Context(), "later"); v != "1" || err != nil {
		t.Errorf("what nobody waits for is %q (%v)", v, err)
	}
}

func TestWhatNobodyWaitsForSurvivesALostConnection(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	db := reopen(t, opts)
	admin := openAdmin(t, opts.URL)
	kill := func() {
		if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
			t.Error(err)
		}
	}
	var cuts int
	for i := range 3 {
		db.db.Later(opFunc(func(tx *tx) error {
			if cuts++; i == 1 && cuts < 5 {
				kill() // again while the store retries
			}
			return tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, (SELECT count(*) FROM setting)) ON CONFLICT (name)
				DO NOTHING`, fmt.Sprint("later", i))
		}))
	}
	soon(t, db)
	for i := range 3 {
		if v, err := db.Settings.Get(t.Context(), fmt.Sprint("later", i)); v != fmt.Sprint(i) || err != nil {
			t.Errorf("later%d = %q (%v), want %d: in order", i, v, err, i)
		}
	}
}

func TestServerThatDoesNotAnswerIsLeft(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	c, way := newCutter(t, opts.URL)
	opts.URL, opts.answerLimit = way, c.answerLimit
	db := reopen(t, opts)
	if err := db.Settings.Set(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	c.frozen.Store(true)
	began := time.Now()
	if err := db.Settings.Set(t.Context(), "b", ""); postern.ReasonOf(err) != postern.Unavailable {
		t.Errorf("a write to a frozen server = %v, want unavailable", err)
	}
	if _, err := db.Settings.Get(t.Context(), "a"); postern.ReasonOf(err) != postern.Unavailable {
		t.Errorf("a read from a frozen server = %v, want unavailable", err)
	}
	t.Logf("both were answered after %s", time.Since(began))
	c.frozen.Store(false)
	soon(t, db)
}

// TestErrorsSayNothingOfTheURL fails to open a database in every distinguishable way.
func TestErrorsSayNothingOfTheURL(t *testing.T) {
	t.Parallel()
	good, err := url.Parse(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	socket := good.Query().Get("host")
	for name, tt := range map[string]struct{ url, says string }{
		"no URL":         {"canary-user:canary-password@canary-host", "has the form"},
		"broken":         {"postgres://canary-user:canary-%zz-password@canary-host/canary-db", "has the form"},
		"bad port":       {"postgres://canary-user:canary-password@canary-host:canary/canary-db", "has the form"},
		"keywords":       {"host=canary-host user=canary-user password=canary-password", "has the form"},
		"unknown host":   {"postgres://canary-user:canary-password@canary-host.invalid/canary-db", "cannot be resolved"},
		"nobody listens": {"postgres://canary-user:canary-password@127.0.0.1:1/canary-db", "connection refused"},
		"no socket":      {"postgres://canary-user:canary-password@/canary-db?host=/canary-dir", "no such file"},
		"no role":        {"postgres://canary-user:canary-password@/canary-db?host=" + socket, "user or password"},
		"no database":    {"postgres://postern:canary-password@/canary-db?host=" + socket, "no database"},
		"no TLS":         {"postgres://postern:canary-password@/canary-db?sslmode=require&host=" + socket, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), Options{Dir: t.TempDir(), URL: tt.url})
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err.Error()), "canary") ||
				!strings.Contains(err.Error(), tt.says) {
				t.Errorf("Open = %v, want an error with %q and without the URL", err, tt.says)
			}
		})
	}
}

// TestServerThatWasCutOffWritesNothingWhileAnotherHoldsTheDatabase also checks that the
// first server continues once the other has left.
func TestServerThatWasCutOffWritesNothingWhileAnotherHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	straight := Options{Dir: t.TempDir(), URL: opts.URL}
	c, way := newCutter(t, opts.URL)
	opts.URL, opts.answerLimit = way, c.answerLimit
	first := reopen(t, opts)
	c.frozen.Store(true)
	if err := first.Settings.Set(t.Context(), "a", ""); postern.ReasonOf(err) != postern.Unavailable {
		t.Fatalf("a write = %v, want unavailable", err)
	}
	second := reopen(t, straight)
	c.frozen.Store(false)
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		if err := first.Settings.Set(t.Context(), "a", ""); postern.ReasonOf(err) != postern.Unavailable {
			t.Fatalf("a write = %v, want unavailable: another server holds the database", err)
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	soon(t, first)
}
