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
)

// Kinds of records. A value is sealed together with its account, kind and name.
const (
	kindDevice    = "device"     // the companion's own keys; one record, unnamed
	kindIdentity  = "identity"   // by address
	kindSession   = "session"    // by address
	kindPreKey    = "prekey"     // by id; the time is when it was uploaded to the vendor
	kindCounter   = "counter"    // the last id given to a prekey
	kindSenderKey = "sender-key" // by sender and group
	kindSyncKey   = "sync-key"   // app state keys, by id
	kindVersion   = "version"    // app state versions, by collection
	kindMAC       = "mac"        // app state values, by collection and index
	kindContact   = "contact"    // by address
	kindChat      = "chat"       // chat settings, by address
	kindSecret    = "secret"     // message secrets, by a digest of chat, sender and id
	kindToken     = "token"      // privacy tokens, by address; the time is the vendor's
	kindSalt      = "salt"       // the salt of privacy tokens; one record, unnamed
	kindEvent     = "event"      // plaintexts of messages that are not handled yet, by hash
	kindLID       = "lid"        // LID → phone number
	kindNumber    = "number"     // phone number → LID

	unnamed = "" // the name of the only record of a kind
)

// Ratchets returns the kinds of keys that change with each message. Those of a backup must not be used
// to send: the recipient has seen them, and would drop the message.
func Ratchets() []string { return []string{kindSession, kindSenderKey} }

// isCached reports whether records of a kind are used often enough to cache.
func isCached(kind string) bool {
	switch kind {
	case kindIdentity, kindSession, kindSenderKey, kindToken, kindSalt, kindLID, kindNumber, kindContact:
		return true
	}
	return false
}

// ref identifies a record of an account.
type ref struct{ kind, name string }

// record is the value stored under a ref; a nil value means that there is none.
// The bytes are never changed.
type record struct {
	value []byte
	at    postern.Time
}

// Ring holds the records of one account for one connection. It is discarded
// with the connection, and shares nothing with other accounts.
//
// A write is visible to later reads of the same Ring at once. When it is
// durable depends on how it was made:
//   - change returns when it is on disk. This is the rule, and a frame that is
//     sent relies on it.
//   - DoDecryptionTxn and putLater return before that. Their records are handed
//     to the database before the host's update ([Ring.StartFlush]), and are on
//     disk before the message is acknowledged ([Ring.Flush]).
//   - A record that is not known to be on disk is written again with every
//     change, so nothing is durable without the records it was derived from.
//
// After a failure of the database, a Ring refuses every further call and ends
// the connection, so that nothing is decrypted, sent or acknowledged with only
// some of the keys: whatsmeow only logs some of these errors and continues. The
// next connection reads the disk.
type Ring struct {
	store   *Store
	account string
	calls   Calls  // of the connection; nil while linking
	fail    func() // ends the connection; nil while linking

	// identified is called with people whose LID and number became known to be one person's; nil while linking.
	identified func([]store.LIDMapping)
	buffer     *eventBuffer

	// changing is held while records are changed and while a message is
	// decrypted, so that each change is atomic for the others. It is locked
	// before mu, and never held while waiting for the disk.
	changing sync.Mutex

	mu         sync.Mutex // guards the fields below
	broken     bool       // the database failed, or the connection has ended
	pending    map[ref]pendingRecord
	lastChange uint64       // number of the last change handed to the database
	wait       func() error // waits for that change
	generation uint64       // grows with every modification of pending
	flushing   bool         // a timer will write what is pending
	cache      cache
	aheads     []*ahead // that are in use
}

// pendingRecord is a record that is not known to be on disk.
type pendingRecord struct {
	record
	change uint64 // the last change that carries it; 0 before the first
}

// Calls counts the calls in progress on a connection.
type Calls interface {
	// Enter admits a call, which must Leave. It reports false once the
	// connection is ending.
	Enter() bool
	// Leave ends an admitted call.
	Leave()
}

func newRing(s *Store, account string) *Ring {
	r := &Ring{store: s, account: account, pending: make(map[ref]pendingRecord)}
	r.buffer = &eventBuffer{ring: r, waiting: make(map[string]bool)}
	return r
}

// RingOf returns the Ring on which the stores of a device are built. It reports
// false while a link attempt has no account yet.
func RingOf(device *store.Device) (r *Ring, ok bool) {
	c, ok := device.Container.(container)
	return c.ring, ok && c.ring != nil
}

// Attach ties r to a connection: calls counts its calls, and fail ends the
// connection after a failure of the database. It must come before the first
// call of whatsmeow.
func (r *Ring) Attach(calls Calls, fail func()) { r.calls, r.fail = calls, fail }

// OnIdentified sets a function that is called with people whose LID and number became known to be one person's. They are
// on disk then, or will be with the message that is being decrypted. The function must not use r before it returns.
func (r *Ring) OnIdentified(call func([]store.LIDMapping)) { r.identified = call }

// equip gives a device its stores.
func (r *Ring) equip(device *store.Device) {
	lids := lids{r}
	device.Identities = identities{r}
	device.Sessions = &sessions{ring: r}
	device.PreKeys = preKeys{r}
	device.SenderKeys = senderKeys{r}
	device.AppStateKeys = syncKeys{r}
	device.AppState = appState{r}
	device.Contacts = contacts{r}
	device.ChatSettings = chatSettings{r}
	device.MsgSecrets = messageSecrets{r, lids}
	device.PrivacyTokens = privacyTokens{r, lids}
	device.NCTSalt = nctSalt{r}
	device.EventBuffer = r.buffer
	device.LIDs = lids
	device.Container = container{store: r.store, ring: r}
	device.Initialized = true
}

// query makes one call that the connection waits for before it ends.
func query[T any](ctx context.Context, r *Ring, call func() (T, error)) (T, error) {
	var zero T
	if !r.enter() {
		return zero, unavailable{ErrUnavailable}
	}
	defer r.leave()
	out, err := call()
	if err != nil {
		return zero, r.check(ctx, err)
	}
	return out, nil
}

// run is query without a result.
func run(ctx context.Context, r *Ring, call func() error) error {
	_, err := query(ctx, r, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (r *Ring) enter() bool { return !r.isBroken() && (r.calls == nil || r.calls.Enter()) }

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

// get returns a record as the caller's transaction left it, as it was last
// written, or as it is on disk, in this order.
func (r *Ring) get(ctx context.Context, k ref) (record, error) {
	if b := r.batchOf(ctx); b != nil {
		rec, err := b.get(ctx, k)
		return rec, r.check(ctx, err)
	}
	return query(ctx, r, func() (record, error) { return r.read(ctx, k) })
}

func (r *Ring) read(ctx context.Context, k ref) (record, error) {
	rec, ok, generation := r.recall(ctx, k)
	if ok {
		return rec, nil
	}
	row, err := r.store.db.SessionKeys.Get(ctx, r.account, k.kind, k.name)
	if err != nil {
		return record{}, err
	}
	if rec, err = r.open(row); err != nil {
		return record{}, err
	}
	r.remember(k, rec, generation)
	return rec, nil
}

// readMany is read for records of a kind, by their names. More than a few are read with one query, and many are not
// cached: they may be those of thousands of members of a group.
func (r *Ring) readMany(ctx context.Context, kind string, names []string) (map[string]record, error) {
	found := make(map[string]record, len(names))
	var missing []string
	var generation uint64
	for _, name := range names {
		rec, ok, now := r.recall(ctx, ref{kind, name})
		if ok {
			found[name] = rec
			continue
		}
		if len(missing) == 0 {
			generation = now
		}
		missing = append(missing, name)
	}
	if len(missing) <= readOneByOne {
		for _, name := range missing {
			rec, err := r.read(ctx, ref{kind, name})
			if err != nil {
				return nil, err
			}
			found[name] = rec
		}
		return found, nil
	}
	rows, err := r.store.db.SessionKeys.GetMany(ctx, r.account, kind, missing)
	for _, row := range rows {
		if err == nil {
			found[row.Name], err = r.open(row)
		}
	}
	if err == nil && len(missing) <= cacheRecords/2 {
		for _, name := range missing {
			r.remember(ref{kind, name}, found[name], generation)
		}
	}
	return found, err
}

// recall looks for a record in memory, also among those that were read ahead
// with ctx. It also returns the generation, for remember.
func (r *Ring) recall(ctx context.Context, k ref) (rec record, ok bool, generation uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.pending[k]; ok {
		return p.record, true, r.generation
	}
	if rec, ok = r.cache.get(k); !ok {
		rec, ok = r.ahead(ctx, k)
	}
	return rec, ok, r.generation
}

// remember caches a record read from disk, unless something was written since
// the read began.
func (r *Ring) remember(k ref, rec record, generation uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generation == generation {
		r.cache.put(k, rec)
	}
}

// namedRecord is an element of a list of records of one kind.
type namedRecord struct {
	name string
	record
}

// list returns the records of a kind whose names begin with prefix, ordered by
// name.
func (r *Ring) list(ctx context.Context, kind, prefix string) ([]namedRecord, error) {
	if b := r.batchOf(ctx); b != nil {
		list, err := b.list(ctx, kind, prefix)
		return list, r.check(ctx, err)
	}
	return query(ctx, r, func() ([]namedRecord, error) { return r.scan(ctx, kind, prefix, nil) })
}

// scan lists records on disk, replaced by those that are pending and, if b is
// not nil, by those of b.
func (r *Ring) scan(ctx context.Context, kind, prefix string, b *batch) ([]namedRecord, error) {
	newer := r.newer(kind, prefix, b) // before the disk is read: a record committed in between is in one of the two
	rows, err := r.store.db.SessionKeys.List(ctx, r.account, kind, prefix)
	if err != nil {
		return nil, err
	}
	var list []namedRecord
	for _, row := range rows {
		if _, ok := newer[row.Name]; ok {
			continue
		}
		rec, err := r.open(row)
		if err != nil {
			return nil, err
		}
		list = append(list, namedRecord{row.Name, rec})
	}
	return merged(list, newer), nil
}

// newer returns the records that may be newer than those on disk, by name.
func (r *Ring) newer(kind, prefix string, b *batch) map[string]record {
	newer := make(map[string]record)
	matches := func(k ref) bool { return k.kind == kind && strings.HasPrefix(k.name, prefix) }
	r.mu.Lock()
	for k, p := range r.pending {
		if matches(k) {
			newer[k.name] = p.record
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

// before returns the names of the records on disk of a kind whose time is
// earlier than t. Records without a time are left out.
func (r *Ring) before(ctx context.Context, kind string, t time.Time) ([]string, error) {
	return query(ctx, r, func() ([]string, error) {
		if err := r.flushPending(ctx); err != nil {
			return nil, err
		}
		return r.store.db.SessionKeys.Before(ctx, r.account, kind, postern.TimeOf(t))
	})
}

// open unseals a row.
func (r *Ring) open(row pstore.SessionKey) (record, error) {
	if row.Value == nil {
		return record{}, nil
	}
	value, err := r.store.box.Open(row.Value, r.place(ref{row.Kind, row.Name}))
	if err != nil {
		return record{}, err
	}
	if value == nil {
		value = []byte{} // an empty value is not a missing one
	}
	return record{value: value, at: row.At}, nil
}

// place is the context that a value is sealed for.
func (r *Ring) place(k ref) string {
	return postern.SessionKeyPlace(r.account, k.kind, k.name)
}

// nameOf builds the name of a record from its parts, some of which the vendor
// chooses. Names are printable ASCII, and differ if the parts differ.
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
