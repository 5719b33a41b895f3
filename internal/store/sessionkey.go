package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// SessionKey is one key that the network driver stores for an account. Only the driver
// knows its meaning; the value is sealed.
type SessionKey struct {
	Kind  string
	Name  string       // printable ASCII
	At    postern.Time // for Count and Before; 0 when the key has no time
	Value []byte       // nil for a key that does not exist
}

// WriteSessionKeys writes keys of an account, all or none. A key without a value is
// deleted. A server whose lease has ended writes nothing.
type WriteSessionKeys struct {
	Account string
	Keys    []SessionKey
	Patient bool // another write follows, whose commit the keys may share
}

// About keeps the order of the keys.
func (o WriteSessionKeys) About() db.About {
	if o.Patient {
		return db.About{Urgency: db.Patient, Fenced: true}
	}
	return db.About{Fenced: true}
}

// keyPlace identifies a key.
type keyPlace struct{ account, kind, name string }

// WriteAll writes the keys of many writes. When a key occurs several times, its last value
// is written.
func (WriteSessionKeys) WriteAll(t *db.Tx, list []db.Pending[WriteSessionKeys]) error {
	last := make(map[keyPlace]SessionKey, len(list))
	var order []keyPlace
	for _, p := range list {
		for _, k := range p.Value.Keys {
			at := keyPlace{p.Value.Account, db.Clean(k.Kind), db.Clean(k.Name)}
			if _, known := last[at]; !known {
				order = append(order, at)
			}
			last[at] = k
		}
	}
	var gone, put [][]any
	for _, at := range order {
		if k := last[at]; k.Value == nil {
			gone = append(gone, []any{at.account, at.kind, at.name})
		} else {
			put = append(put, []any{at.account, at.kind, at.name, k.At, k.Value})
		}
	}
	return saveSessionKeys(t, gone, put)
}

var (
	deleteKeys = db.NewStatement("owner, sort, named",
		`DELETE FROM session_key [USING @rows] WHERE account = @owner AND kind = @sort AND name = @named`)
	putKeys = db.NewStatement("account, kind, name, at, value",
		`INSERT INTO session_key (account, kind, name, at, value) @values
		ON CONFLICT (account, kind, name) DO UPDATE SET at = excluded.at, value = excluded.value`)
)

func saveSessionKeys(t *db.Tx, gone, put [][]any) error {
	if err := t.Each(deleteKeys, gone); err != nil {
		return err
	}
	return t.Each(putKeys, put)
}

// Write writes keys and waits until they are on disk. With no keys it waits for those that
// were handed over before.
func (s SessionKeys) Write(ctx context.Context, o WriteSessionKeys) error {
	return write(ctx, s.core, o)
}

// StartWrite hands keys over. They are committed before the keys that are handed over after
// them, or with them, and usually with the message that came with them. Under load, a
// message may be committed one commit before its keys. The returned function waits until
// the keys are on disk; it may be called once.
func (s SessionKeys) StartWrite(ctx context.Context, o WriteSessionKeys) (wait func() error, err error) {
	return s.db.Start(ctx, db.Item(o))
}

// Get returns one key. Its value is nil when the key does not exist.
func (s SessionKeys) Get(ctx context.Context, account, kind, name string) (SessionKey, error) {
	k := SessionKey{Kind: kind, Name: name}
	err := s.db.Row(ctx, `SELECT at, value FROM session_key WHERE account = $1 AND kind = $2 AND name = $3`,
		[]any{account, kind, name}, &k.At, &k.Value)
	if errors.Is(err, sql.ErrNoRows) {
		return k, nil
	}
	return k, err
}

// GetMany returns those of the keys of a kind that exist. It looks for each name: PostgreSQL would otherwise read all keys
// of the kind while it has no statistics of them, and those of a group that was just learned are many.
func (s SessionKeys) GetMany(ctx context.Context, account, kind string, names []string) (list []SessionKey, err error) {
	const its = ` FROM session_key k WHERE k.account = $1 AND k.kind = $2 AND k.name = n.name)`
	err = s.db.Rows(ctx, `WITH named (name) AS `+s.db.InList(3)+` SELECT n.name, coalesce((SELECT k.at`+its+`, 0),
		(SELECT k.value`+its+` FROM named n`, []any{account, kind, textList(names)}, func(r *sql.Rows) error {
		k := SessionKey{Kind: kind}
		if err := r.Scan(&k.Name, &k.At, &k.Value); err != nil || k.Value == nil {
			return err
		}
		list = append(list, k)
		return nil
	})
	return list, err
}

// List returns the keys of a kind whose names begin with a prefix, ordered by the bytes of
// their names (on PostgreSQL the column needs COLLATE "C").
func (s SessionKeys) List(ctx context.Context, account, kind, prefix string) ([]SessionKey, error) {
	var list []SessionKey
	const afterASCII = "\x7f" // occurs in no name
	err := s.db.Rows(ctx, `SELECT name, at, value FROM session_key WHERE account = $1 AND kind = $2 AND name >= $3
		AND name < $4 ORDER BY name`,
		[]any{account, kind, prefix, prefix + afterASCII}, func(r *sql.Rows) error {
			k := SessionKey{Kind: kind}
			err := r.Scan(&k.Name, &k.At, &k.Value)
			list = append(list, k)
			return err
		})
	return list, err
}

// Before returns the names of the keys of a kind whose time is set and before a given time.
func (s SessionKeys) Before(ctx context.Context, account, kind string,
	before postern.Time,
) (names []string, err error) {
	err = s.db.Rows(ctx, `SELECT name FROM session_key WHERE account = $1 AND kind = $2 AND at > 0 AND at < $3`,
		[]any{account, kind, before}, func(r *sql.Rows) error {
			var name string
			err := r.Scan(&name)
			names = append(names, name)
			return err
		})
	return names, err
}

// Count returns the number of keys of a kind whose time is set.
func (s SessionKeys) Count(ctx context.Context, account, kind string) (n int, err error) {
	err = s.db.Row(ctx, `SELECT count(*) FROM session_key WHERE account = $1 AND kind = $2 AND at > 0`,
		[]any{account, kind}, &n)
	return n, err
}

// accountsWithKeys seeks from one account to the next without reading the keys in between.
const accountsWithKeys = `WITH RECURSIVE list (account) AS (
		SELECT min(account) FROM session_key
		UNION ALL SELECT (SELECT min(k.account) FROM session_key k WHERE k.account > list.account) FROM list
		WHERE list.account IS NOT NULL)
	SELECT account FROM list WHERE account IS NOT NULL`

// Accounts returns the accounts that have keys.
func (s SessionKeys) Accounts(ctx context.Context) (accounts []string, err error) {
	return s.accounts(ctx, accountsWithKeys)
}

// Abandoned returns the accounts that have keys, but belong to no device and to no link attempt. An attempt names its
// account before it stores keys.
func (s SessionKeys) Abandoned(ctx context.Context) (accounts []string, err error) {
	return s.accounts(ctx, accountsWithKeys+` AND account NOT IN (SELECT account FROM device WHERE account <> '')
		AND account NOT IN (SELECT account FROM link WHERE status = 'pending' AND account <> '')`)
}

func (s SessionKeys) accounts(ctx context.Context, query string) (accounts []string, err error) {
	err = s.db.Rows(ctx, query, nil, func(r *sql.Rows) error {
		var account string
		err := r.Scan(&account)
		accounts = append(accounts, account)
		return err
	})
	return accounts, err
}

// Remove deletes all keys of an account, a chunk in each transaction.
func (s SessionKeys) Remove(ctx context.Context, account string) error {
	for {
		var n int64
		err := s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) (err error) {
			n, err = t.Changed(`DELETE FROM session_key WHERE account = $1 AND (kind, name) IN (SELECT kind, name
				FROM session_key WHERE account = $1 LIMIT $2 + 0)`, account, purgeChunk)
			return err
		})))
		if err != nil || n == 0 {
			return err
		}
	}
}

// DeleteKinds removes all keys of some kinds, of all accounts.
func (s SessionKeys) DeleteKinds(ctx context.Context, kinds ...string) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`DELETE FROM session_key WHERE kind IN `+t.InList(1), asJSON(kinds))
	}))
}
