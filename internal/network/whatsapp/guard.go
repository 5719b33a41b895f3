package whatsapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// errStore is in every error that means the key store cannot be reached.
var errStore = errors.New("the key store is not available")

// unavailable marks an error of the database. whatsmeow acknowledges a message
// that it could not decrypt for any reason but cancellation, so a database that
// is away must look like a cancellation.
type unavailable struct{ error }

func (u unavailable) Unwrap() error        { return u.error }
func (u unavailable) Is(target error) bool { return target == context.Canceled || target == errStore }

// guard stands between a client and its key store for one connection. Once the
// store failed, it fails every further call and ends the connection, so that
// nothing is decrypted, sent or acknowledged on half of the keys: whatsmeow only
// logs some failures and goes on.
//
// It also saves writes: it remembers which identities are stored already, which
// whatsmeow writes again with every message, and clears the plaintexts of handled
// messages together, in the transaction of the next one (see plaintext.go).
type guard struct {
	store.AllSessionSpecificStores
	lids  store.LIDStore
	calls *gate
	fail  func() // ends the connection

	// prekeys is held while prekeys are made. The SQL store locks first and then
	// takes the one database connection; in a transaction it is the other way round.
	prekeys sync.Mutex

	mu         sync.Mutex // guards what follows
	broken     bool
	identities map[string][32]byte
	migrated   map[types.JID]bool // phone numbers whose sessions were moved to their LID
	salt       []byte
	salted     bool
	handled    map[[32]byte]bool // ciphertexts whose plaintext is to be cleared
	clearing   bool              // a timer will clear them
}

// protect puts a guard between the device and its stores. The device was loaded
// from the key store, so one SQL store stands behind all of its fields.
func protect(device *store.Device, calls *gate, fail func()) *guard {
	inner, ok := device.Identities.(store.AllSessionSpecificStores)
	if !ok {
		return nil // a device that is not linked yet has no stores
	}
	g := &guard{
		AllSessionSpecificStores: inner, lids: device.LIDs, calls: calls, fail: fail,
		identities: make(map[string][32]byte), migrated: make(map[types.JID]bool), handled: make(map[[32]byte]bool),
	}
	device.SetAllStores(g)
	device.LIDs = guardedLIDs{g}
	return g
}

// ask makes one call to the store behind g.
func ask[T any](ctx context.Context, g *guard, call func() (T, error)) (T, error) {
	var none T
	if g.isBroken() || !g.calls.enter() {
		return none, unavailable{errStore}
	}
	defer g.calls.leave()
	out, err := call()
	if err != nil {
		return none, g.judge(ctx, err)
	}
	return out, nil
}

func tell(ctx context.Context, g *guard, call func() error) error {
	_, err := ask(ctx, g, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// judge turns a failure into one that whatsmeow does not acknowledge. A caller
// who gave up is no failure of the store.
func (g *guard) judge(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	g.mu.Lock()
	g.broken = true
	g.mu.Unlock()
	g.fail()
	return unavailable{err}
}

func (g *guard) isBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}

func (g *guard) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, at time.Time) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.PutBufferedEvent(ctx, hash, plaintext, at) })
}

func (g *guard) GetSession(ctx context.Context, address string) ([]byte, error) {
	return ask(ctx, g, func() ([]byte, error) { return g.AllSessionSpecificStores.GetSession(ctx, address) })
}

func (g *guard) HasSession(ctx context.Context, address string) (bool, error) {
	return ask(ctx, g, func() (bool, error) { return g.AllSessionSpecificStores.HasSession(ctx, address) })
}

func (g *guard) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	return ask(ctx, g, func() (map[string][]byte, error) {
		return g.AllSessionSpecificStores.GetManySessions(ctx, addresses)
	})
}

func (g *guard) PutSession(ctx context.Context, address string, session []byte) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.PutSession(ctx, address, session) })
}

func (g *guard) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.PutManySessions(ctx, sessions) })
}

func (g *guard) DeleteAllSessions(ctx context.Context, phone string) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.DeleteAllSessions(ctx, phone) })
}

func (g *guard) DeleteSession(ctx context.Context, address string) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.DeleteSession(ctx, address) })
}

// MigratePNToLID moves what is kept under a number to its LID, once.
func (g *guard) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	user := pn.ToNonAD()
	g.mu.Lock()
	done := g.migrated[user]
	if len(g.migrated) >= maxCached {
		clear(g.migrated)
	}
	g.migrated[user] = true
	g.mu.Unlock()
	if done {
		return nil
	}
	defer g.forgetIdentities()
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.MigratePNToLID(ctx, pn, lid) })
}

// GetOrGenPreKeys makes keys in one transaction; the SQL store commits each of
// the 812 of a new link by itself.
func (g *guard) GetOrGenPreKeys(ctx context.Context, count uint32) (made []*keys.PreKey, err error) {
	g.prekeys.Lock()
	defer g.prekeys.Unlock()
	err = tell(ctx, g, func() error {
		return g.AllSessionSpecificStores.DoDecryptionTxn(ctx, func(ctx context.Context) error {
			made, err = g.AllSessionSpecificStores.GetOrGenPreKeys(ctx, count)
			return err //nolint:wrapcheck // whatsmeow's own error, back to whatsmeow
		})
	})
	return made, err
}

func (g *guard) GenOnePreKey(ctx context.Context) (*keys.PreKey, error) {
	g.prekeys.Lock()
	defer g.prekeys.Unlock()
	return ask(ctx, g, func() (*keys.PreKey, error) { return g.AllSessionSpecificStores.GenOnePreKey(ctx) })
}

func (g *guard) GetPreKey(ctx context.Context, id uint32) (*keys.PreKey, error) {
	return ask(ctx, g, func() (*keys.PreKey, error) { return g.AllSessionSpecificStores.GetPreKey(ctx, id) })
}

func (g *guard) RemovePreKey(ctx context.Context, id uint32) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.RemovePreKey(ctx, id) })
}

func (g *guard) MarkPreKeysAsUploaded(ctx context.Context, upTo uint32) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.MarkPreKeysAsUploaded(ctx, upTo) })
}

func (g *guard) UploadedPreKeyCount(ctx context.Context) (int, error) {
	return ask(ctx, g, func() (int, error) { return g.AllSessionSpecificStores.UploadedPreKeyCount(ctx) })
}

func (g *guard) PutSenderKey(ctx context.Context, group, user string, session []byte) error {
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.PutSenderKey(ctx, group, user, session) })
}

func (g *guard) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	return ask(ctx, g, func() ([]byte, error) { return g.AllSessionSpecificStores.GetSenderKey(ctx, group, user) })
}

// PutIdentity stores an identity that is not stored yet.
func (g *guard) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	if known, ok := g.identity(address); ok && known == key && !g.isBroken() {
		return nil
	}
	err := tell(ctx, g, func() error { return g.AllSessionSpecificStores.PutIdentity(ctx, address, key) })
	if err == nil {
		g.remember(func() {
			if len(g.identities) >= maxCached {
				clear(g.identities)
			}
			g.identities[address] = key
		})
	}
	return err
}

// IsTrustedIdentity compares with the stored identity; an unknown one is trusted.
func (g *guard) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	if known, ok := g.identity(address); ok && !g.isBroken() {
		return known == key, nil
	}
	return ask(ctx, g, func() (bool, error) { return g.AllSessionSpecificStores.IsTrustedIdentity(ctx, address, key) })
}

func (g *guard) DeleteIdentity(ctx context.Context, address string) error {
	g.remember(func() { delete(g.identities, address) })
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.DeleteIdentity(ctx, address) })
}

func (g *guard) DeleteAllIdentities(ctx context.Context, phone string) error {
	g.forgetIdentities()
	return tell(ctx, g, func() error { return g.AllSessionSpecificStores.DeleteAllIdentities(ctx, phone) })
}

func (g *guard) identity(address string) ([32]byte, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, ok := g.identities[address]
	return key, ok
}

func (g *guard) forgetIdentities() { g.remember(func() { clear(g.identities) }) }

// remember changes what g keeps in memory.
func (g *guard) remember(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// GetNCTSalt is asked for with every send, and never changes but by PutNCTSalt.
func (g *guard) GetNCTSalt(ctx context.Context) ([]byte, error) {
	g.mu.Lock()
	salt, salted := g.salt, g.salted
	g.mu.Unlock()
	if salted {
		return salt, nil
	}
	salt, err := g.AllSessionSpecificStores.GetNCTSalt(ctx)
	if err == nil {
		g.remember(func() { g.salt, g.salted = salt, true })
	}
	return salt, err //nolint:wrapcheck // whatsmeow's own error, back to whatsmeow
}

func (g *guard) PutNCTSalt(ctx context.Context, salt []byte) error {
	defer g.remember(func() { g.salted = false })
	return g.AllSessionSpecificStores.PutNCTSalt(ctx, salt) //nolint:wrapcheck // as above
}

func (g *guard) DeleteNCTSalt(ctx context.Context) error {
	defer g.remember(func() { g.salted = false })
	return g.AllSessionSpecificStores.DeleteNCTSalt(ctx) //nolint:wrapcheck // as above
}

// guardedLIDs guards the map between numbers and LIDs, which all accounts share.
type guardedLIDs struct{ g *guard }

func (l guardedLIDs) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	return tell(ctx, l.g, func() error { return l.g.lids.PutManyLIDMappings(ctx, mappings) })
}

func (l guardedLIDs) PutLIDMapping(ctx context.Context, lid, pn types.JID) error {
	return tell(ctx, l.g, func() error { return l.g.lids.PutLIDMapping(ctx, lid, pn) })
}

func (l guardedLIDs) GetPNForLID(ctx context.Context, lid types.JID) (types.JID, error) {
	if lid.Server != types.HiddenUserServer {
		return types.EmptyJID, nil
	}
	return ask(ctx, l.g, func() (types.JID, error) { return l.g.lids.GetPNForLID(ctx, lid) })
}

func (l guardedLIDs) GetLIDForPN(ctx context.Context, pn types.JID) (types.JID, error) {
	if pn.Server != types.DefaultUserServer {
		return types.EmptyJID, nil
	}
	return ask(ctx, l.g, func() (types.JID, error) { return l.g.lids.GetLIDForPN(ctx, pn) })
}

func (l guardedLIDs) GetManyLIDsForPNs(ctx context.Context, pns []types.JID) (map[types.JID]types.JID, error) {
	return ask(ctx, l.g, func() (map[types.JID]types.JID, error) { return l.g.lids.GetManyLIDsForPNs(ctx, pns) })
}
