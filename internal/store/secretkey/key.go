// Package secretkey keeps in the database which secret keys its values are encrypted with, and encrypts the
// values again with a new key while servers run.
//
// A new key begins to encrypt when all servers know it ([Table.Switch]). The keys before it are retiring:
// [Resealing] encrypts their values again, and when it finds none any more, they are retired
// ([Table.Retire]), and servers can start without them.
package secretkey

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// State is what the values of a database need a key for.
type State string

// The states.
const (
	Encrypts State = "encrypts"
	Retiring State = "retiring" // values may be encrypted with it
	Retired  State = "retired"  // no value is encrypted with it
)

// Key is a secret key that encrypts, or did.
type Key struct {
	ID        seal.KeyID
	State     State
	Since     postern.Time // when it began to encrypt
	RetiredAt postern.Time
	Resealed  int64 // values of earlier keys that were encrypted again with it
	Keepsake  []byte
}

// Needed tells whether a server cannot work without the key.
func (k Key) Needed() bool { return k.State != Retired }

// Table has the secret keys of a database.
type Table struct {
	db    *db.DB
	nodes store.Nodes
}

// Of returns the secret keys of a store.
func Of(s *store.Store) *Table { return &Table{s.Engine(), s.Nodes} }

// List returns the keys, the newest first.
func (t *Table) List(ctx context.Context) (list []Key, err error) {
	err = t.db.Rows(ctx, `SELECT id, state, since, retired_at, resealed, keepsake FROM secret_key
		ORDER BY since DESC, id`, nil, func(r *sql.Rows) error {
		var k Key
		err := r.Scan(&k.ID, &k.State, &k.Since, &k.RetiredAt, &k.Resealed, &k.Keepsake)
		list = append(list, k)
		return err
	})
	return list, err
}

// Needed returns the ids of the keys without which the database cannot be used, the one that encrypts first.
func Needed(list []Key) (ids []seal.KeyID) {
	for _, k := range list {
		switch k.State {
		case Encrypts:
			ids = append([]seal.KeyID{k.ID}, ids...)
		case Retiring:
			ids = append(ids, k.ID)
		case Retired:
		}
	}
	return ids
}

// Begin notes the first key of a database, unless another one is known.
func (t *Table) Begin(ctx context.Context, id seal.KeyID) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`INSERT INTO secret_key (id, state, since) SELECT $1, 'encrypts', $2
			WHERE NOT EXISTS (SELECT 1 FROM secret_key)`, string(id), postern.TimeOf(t.db.Now()))
	}))
}

// Announce tells the other servers which keys this one knows. The first one is that with which it encrypts.
func (t *Table) Announce(ctx context.Context, ids []seal.KeyID) error {
	n, shared := t.nodes.Self()
	if !shared {
		return nil
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		changed, err := tx.Changed(`UPDATE node SET secret_keys = $3 WHERE id = $1 AND term = $2 AND secret_keys <> $3`,
			n.ID, n.Term, announcement(n.Term, ids))
		if changed > 0 {
			tx.Wake(store.SecretKeysChanged, "")
		}
		return err
	}))
}

// announcement is what a server says of its keys. It counts for one term.
func announcement(term int64, ids []seal.KeyID) string {
	text := fmt.Sprint(term)
	for _, id := range ids {
		text += " " + string(id)
	}
	return text
}

// Server is what another server says of its keys.
type Server struct {
	Name string
	Keys []seal.KeyID // the one with which it encrypts first; nil if it has said nothing in its present term
}

const servers = `SELECT name, term, secret_keys FROM node ORDER BY started_at, id`

func scanServer(r *sql.Rows) (s Server, err error) {
	var term int64
	var text string
	err = r.Scan(&s.Name, &term, &text)
	words := strings.Fields(text)
	if len(words) > 1 && words[0] == fmt.Sprint(term) {
		for _, w := range words[1:] {
			s.Keys = append(s.Keys, seal.KeyID(w))
		}
	}
	return s, err
}

// Lacking returns the names of the servers that do not know a key; nil if all of them do.
func (t *Table) Lacking(ctx context.Context, id seal.KeyID) (names []string, err error) {
	err = t.db.Rows(ctx, servers, nil, func(r *sql.Rows) error {
		s, err := scanServer(r)
		if !slices.Contains(s.Keys, id) {
			names = append(names, s.Name)
		}
		return err
	})
	return names, err
}

// Agreed tells whether all servers encrypt with a key.
func (t *Table) Agreed(ctx context.Context, id seal.KeyID) (agreed bool, err error) {
	agreed = true
	err = t.db.Rows(ctx, servers, nil, func(r *sql.Rows) error {
		s, err := scanServer(r)
		agreed = agreed && len(s.Keys) > 0 && s.Keys[0] == id
		return err
	})
	return agreed, err
}

// Switch makes a new key the one that encrypts, if all servers know it and no earlier one is still retiring.
// It keeps of the one before what the box needs for recovery codes.
func (t *Table) Switch(ctx context.Context, box *seal.Box, to seal.KeyID) (done bool, err error) {
	err = t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		done = false
		from, err := switchable(tx, to)
		if err != nil || from == "" {
			return err
		}
		keepsake := box.Seal(box.Keepsake(from), KeepsakePlace(from))
		if err := tx.Exec(`UPDATE secret_key SET state = 'retiring', keepsake = $2 WHERE id = $1`, string(from),
			keepsake); err != nil {
			return err
		}
		done = true
		tx.Wake(store.SecretKeysChanged, "")
		return tx.Exec(`INSERT INTO secret_key (id, state, since) VALUES ($1, 'encrypts', $2)`, string(to),
			postern.TimeOf(t.db.Now()))
	})))
	return done && err == nil, err
}

// switchable returns the key that encrypts now, or "" if another one cannot replace it yet.
func switchable(tx *db.Tx, to seal.KeyID) (from seal.KeyID, err error) {
	busy := false
	err = tx.Rows(`SELECT id, state FROM secret_key`, nil, func(r *sql.Rows) error {
		var k Key
		err := r.Scan(&k.ID, &k.State)
		busy = busy || k.State == Retiring || k.ID == to
		if k.State == Encrypts {
			from = k.ID
		}
		return err
	})
	if err != nil || busy {
		return "", err
	}
	return from, tx.Rows(servers, nil, func(r *sql.Rows) error {
		s, err := scanServer(r)
		if !slices.Contains(s.Keys, to) {
			from = ""
		}
		return err
	})
}

// KeepsakePlace is the place for which the keepsake of a key is sealed.
func KeepsakePlace(id seal.KeyID) string { return "secret_key.keepsake " + string(id) }

// Recall gives the box the keepsakes of keys.
func Recall(box *seal.Box, list []Key) error {
	for _, k := range list {
		if len(k.Keepsake) == 0 {
			continue
		}
		keepsake, err := box.Open(k.Keepsake, KeepsakePlace(k.ID))
		if err != nil {
			return err
		}
		box.Remember(k.ID, keepsake)
	}
	return nil
}

// Retire notes that no value is encrypted with the keys before the one that encrypts.
func (t *Table) Retire(ctx context.Context, sealing seal.KeyID) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		tx.Wake(store.SecretKeysChanged, "")
		return tx.Exec(`UPDATE secret_key SET state = 'retired', retired_at = $2 WHERE state = 'retiring'
			AND EXISTS (SELECT 1 FROM secret_key WHERE id = $1 AND state = 'encrypts')`, string(sealing),
			postern.TimeOf(t.db.Now()))
	})))
}

// Revive notes that there are values after all that are encrypted with a key, so that they are encrypted again.
func (t *Table) Revive(ctx context.Context, id seal.KeyID) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		tx.Wake(store.SecretKeysChanged, "")
		return tx.Exec(`UPDATE secret_key SET state = 'retiring', retired_at = 0 WHERE id = $1 AND state = 'retired'`,
			string(id))
	}))
}
