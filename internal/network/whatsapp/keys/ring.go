package keys

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"postern/internal/postern"
	pstore "postern/internal/store"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// What is kept of an account, by kind. The kind and the name of a record are
// part of what it is sealed with.
const (
	kindDevice    = "device"     // the companion's own keys; one, without a name
	kindIdentity  = "identity"   // by address
	kindSession   = "session"    // by address
	kindPreKey    = "prekey"     // by id; its time is when it was offered to the vendor
	kindCounter   = "counter"    // the next prekey's id
	kindSenderKey = "sender-key" // by sender and group
	kindSyncKey   = "sync-key"   // of the app state, by id
	kindVersion   = "version"    // of the app state, by collection
	kindMAC       = "mac"        // of the app state, by collection and index
	kindContact   = "contact"    // by address
	kindChat      = "chat"       // settings, by address
	kindSecret    = "secret"     // of a message
	kindToken     = "token"      // of privacy, by address; its time is the vendor's
	kindSalt      = "salt"       // of privacy; one, without a name
	kindEvent     = "event"      // the plaintext of a message that is not handled yet
	kindLID       = "lid"        // the number of a LID
	kindNumber    = "number"     // the LID of a number
	nameOnly      = ""           // of a kind of which there is one
)

// isCached tells whether records of a kind are used again and again.
func isCached(kind string) bool {
	switch kind {
	case kindIdentity, kindSession, kindSenderKey, kindToken, kindSalt, kindLID, kindNumber, kindContact:
		return true
	}
	return false
}

// ref names a record of an account.
type ref struct{ kind, name string }

// record is what is kept under a ref. Its value is nil when nothing is; it is
// never changed.
type record struct {
	value []byte
	at    postern.Time
}

// Ring is what one connection knows and writes of an account. It implements
// whatsmeow's stores on the gateway's database, one file for each of them, and
// is thrown away with the connection. Nothing in it is shared between accounts.
//
// What is written is seen at once by later reads of the same Ring. Whether it
// is on disk is another question, with three answers:
//   - change waits for it: the rule, and what a frame that leaves relies on;
//   - DoDecryptionTxn and note do not. What they leave behind is handed to the
//     writer before the host's update and waited for before the message is
//     acknowledged (ahead, durable);
//   - whatever is not known to be on disk is written again with the next change,
//     so nothing is ever durable without what it was made from.
//
// Once the database failed, a Ring fails every further call and ends the
// connection, so that nothing is decrypted, sent or acknowledged on half of the
// keys: whatsmeow only logs some failures and goes on. The next connection reads
// what is on disk.
type Ring struct {
	keys    *Store
	account string
	calls   Calls  // of the connection; nil while linking
	fail    func() // ends the connection; nil while linking

	// changing is held while records are changed, and while a message is
	// decrypted, so that changes see each other whole. It comes before mu, and
	// nobody waits for the disk with it.
	changing sync.Mutex

	mu       sync.Mutex // guards what follows
	broken   bool       // the database failed
	refused  bool       // the host did not store an update
	unsure   map[ref]unsure
	handed   uint64       // number of the last change handed to the writer
	wait     func() error // waits for it
	merges   uint64       // changes of unsure
	flushing bool         // a timer will write what is left
	cache    cache
	waiting  map[string]bool // events that may be kept, by name
	offered  map[string][]byte
	migrated map[types.JID]bool // numbers whose sessions were moved to their LID
}

// unsure is a record that is not known to be on disk.
type unsure struct {
	record
	handed uint64 // the change that carries it; 0 while none does
}

var (
	_ store.AllSessionSpecificStores = (*Ring)(nil)
	_ store.LIDStore                 = (*Ring)(nil)
)

func newRing(keys *Store, account types.JID) *Ring {
	return &Ring{keys: keys, account: account.String(), unsure: make(map[ref]unsure), waiting: make(map[string]bool)}
}

// Calls counts the calls under way of a connection.
type Calls interface {
	// Enter lets a call in, which must Leave; false means that the connection ends.
	Enter() bool
	Leave()
}

// RingOf gives the ring that holds the stores of a device; ok is false while the
// account of a link attempt has no name yet.
func RingOf(device *store.Device) (r *Ring, ok bool) {
	r, ok = device.Identities.(*Ring)
	return r, ok
}

// Attach makes a ring part of a connection: its calls are counted, and fail ends
// the connection when the database failed.
func (r *Ring) Attach(calls Calls, fail func()) { r.calls, r.fail = calls, fail }

// equip makes a Ring the stores of a device.
func (r *Ring) equip(device *store.Device) {
	device.SetAllStores(r)
	device.LIDs = r
	device.Container = keeper{keys: r.keys, ring: r}
	device.Initialized = true
}

// ask makes one call on a Ring.
func ask[T any](ctx context.Context, r *Ring, call func() (T, error)) (T, error) {
	var none T
	if !r.enter() {
		return none, unavailable{ErrStore}
	}
	defer r.leave()
	out, err := call()
	if err != nil {
		return none, r.judge(ctx, err)
	}
	return out, nil
}

func tell(ctx context.Context, r *Ring, call func() error) error {
	_, err := ask(ctx, r, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (r *Ring) enter() bool {
	return !r.isBroken() && (r.calls == nil || r.calls.Enter())
}

func (r *Ring) leave() {
	if r.calls != nil {
		r.calls.Leave()
	}
}

func (r *Ring) isBroken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// get reads a record: as a transaction under way left it, as it was written, or
// as it is on disk.
func (r *Ring) get(ctx context.Context, k ref) (record, error) {
	if b := r.batchOf(ctx); b != nil {
		rec, err := b.get(ctx, k)
		return rec, r.judge(ctx, err)
	}
	return ask(ctx, r, func() (record, error) { return r.read(ctx, k) })
}

func (r *Ring) read(ctx context.Context, k ref) (record, error) {
	rec, ok, merges := r.recall(k)
	if ok {
		return rec, nil
	}
	row, err := r.keys.db.SessionKeys.Get(ctx, r.account, k.kind, k.name)
	if err != nil {
		return record{}, err
	}
	if rec, err = r.open(row); err != nil {
		return record{}, err
	}
	r.remember(k, rec, merges)
	return rec, nil
}

// recall finds a record in memory. It gives the number of changes so far, for remember.
func (r *Ring) recall(k ref) (rec record, ok bool, merges uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := r.unsure[k]; ok {
		return u.record, true, r.merges
	}
	rec, ok = r.cache.get(k)
	return rec, ok, r.merges
}

// remember keeps what was read, unless something was written meanwhile.
func (r *Ring) remember(k ref, rec record, merges uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.merges == merges {
		r.cache.put(k, rec)
	}
}

// listed is a record with its name.
type listed struct {
	name string
	record
}

// list reads the records of a kind whose names begin with a prefix, in the order
// of their names.
func (r *Ring) list(ctx context.Context, kind, prefix string) ([]listed, error) {
	if b := r.batchOf(ctx); b != nil {
		list, err := b.list(ctx, kind, prefix)
		return list, r.judge(ctx, err)
	}
	return ask(ctx, r, func() ([]listed, error) { return r.scan(ctx, kind, prefix, nil) })
}

// scan reads records, with what is written since, and with a batch, in place of
// what is on disk.
func (r *Ring) scan(ctx context.Context, kind, prefix string, b *batch) ([]listed, error) {
	newer := r.newer(kind, prefix, b) // before the disk is read: what is committed meanwhile is in either
	rows, err := r.keys.db.SessionKeys.List(ctx, r.account, kind, prefix)
	if err != nil {
		return nil, err
	}
	var list []listed
	for _, row := range rows {
		if _, ok := newer[row.Name]; ok {
			continue
		}
		rec, err := r.open(row)
		if err != nil {
			return nil, err
		}
		list = append(list, listed{row.Name, rec})
	}
	return merged(list, newer), nil
}

// newer gives what is written and not known to be on disk, by name.
func (r *Ring) newer(kind, prefix string, b *batch) map[string]record {
	newer := make(map[string]record)
	matches := func(k ref) bool { return k.kind == kind && strings.HasPrefix(k.name, prefix) }
	r.mu.Lock()
	for k, u := range r.unsure {
		if matches(k) {
			newer[k.name] = u.record
		}
	}
	r.mu.Unlock()
	if b == nil {
		return newer
	}
	for k, rec := range b.records {
		if matches(k) {
			newer[k.name] = rec
		}
	}
	return newer
}

// open unseals what was read.
func (r *Ring) open(row pstore.SessionKey) (record, error) {
	if row.Value == nil {
		return record{}, nil
	}
	value, err := r.keys.box.Open(row.Value, r.place(ref{row.Kind, row.Name}))
	if err != nil {
		return record{}, err
	}
	if value == nil {
		value = []byte{} // something is kept, though it is empty
	}
	return record{value: value, at: row.At}, nil
}

// place is what a value is sealed for.
func (r *Ring) place(k ref) string {
	return "session_key " + r.account + " " + k.kind + " " + k.name
}

// nameOf makes the name of a record from its parts, some of which the vendor
// chooses: printable, and different for different parts.
func nameOf(parts ...string) string {
	if len(parts) == 1 && isPlain(parts[0]) {
		return parts[0]
	}
	var name strings.Builder
	for i, part := range parts {
		if i > 0 {
			name.WriteByte(' ')
		}
		if !isPlain(part) {
			part = url.PathEscape(part)
		}
		name.WriteString(part)
	}
	return name.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '%' {
			return false
		}
	}
	return true
}

func now() postern.Time { return postern.TimeOf(time.Now()) }
