package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// SessionKey is one thing that the network driver keeps of an account. What it
// means is the driver's business; the value is sealed.
type SessionKey struct {
	Kind  string
	Name  string       // printable ASCII
	At    postern.Time // to count and sweep by; 0 for none
	Value []byte       // nil for a key that is not there
}

// WriteSessionKeys writes keys of an account, all or none. A key without a
// value is deleted. With many nodes the epoch of the device's lease will be
// compared here, in the same transaction, so that a node that lost the device
// writes nothing.
type WriteSessionKeys struct {
	Account string
	Keys    []SessionKey
}

func (o WriteSessionKeys) apply(t *tx) error {
	for _, k := range o.Keys {
		if err := t.writeSessionKey(o.Account, k); err != nil {
			return err
		}
	}
	return nil
}

// applyAll writes the keys of many ops. Of a key that comes several times, the
// last counts.
func (WriteSessionKeys) applyAll(t *tx, list []pending) (rest []pending, err error) { //nolint:unparam // as batch asks
	type place struct{ account, kind, name string }
	last := map[place]SessionKey{}
	for _, p := range list {
		o := p.op.(WriteSessionKeys) //nolint:errcheck,forcetypeassert // a list of one kind
		for _, k := range o.Keys {
			last[place{o.Account, clean(k.Kind), clean(k.Name)}] = k
		}
	}
	var gone, put [][]any
	for at, k := range last {
		if k.Value == nil {
			gone = append(gone, []any{at.account, at.kind, at.name})
		} else {
			put = append(put, []any{at.account, at.kind, at.name, k.At, k.Value})
		}
	}
	return nil, t.storeSessionKeys(gone, put)
}

func (t *tx) storeSessionKeys(gone, put [][]any) error {
	if len(gone) > 0 {
		from, args := table("account, kind, name", gone)
		if err := t.exec(`DELETE FROM session_key AS s USING `+from+` WHERE s.account = u.account AND s.kind = u.kind AND s.name = u.name`, args...); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	const columns = `account, kind, name, at, value`
	from, args := table(columns, put)
	return t.exec(`INSERT INTO session_key (`+columns+`) SELECT `+columns+` FROM `+from+` ORDER BY account, kind, name
		ON CONFLICT (account, kind, name) DO UPDATE SET at = excluded.at, value = excluded.value`, args...)
}

func (t *tx) writeSessionKey(account string, k SessionKey) error {
	if k.Value == nil {
		return t.exec(`DELETE FROM session_key WHERE account = $1 AND kind = $2 AND name = $3`, account, k.Kind, k.Name)
	}
	return t.exec(`INSERT INTO session_key (account, kind, name, at, value) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, kind, name) DO UPDATE SET at = excluded.at, value = excluded.value`, account, k.Kind, k.Name, k.At, k.Value)
}

// Write writes keys and waits until they are on disk. Without keys
// it waits for all that was handed over before.
func (s SessionKeys) Write(ctx context.Context, o WriteSessionKeys) error { return s.db.do(ctx, o) }

// StartWrite hands keys over to be written before whatever is handed over
// after them, as a rule in one commit with it; a message that cuts a flood of
// others short may be a commit ahead of its keys. The function it returns waits,
// once, until they are on disk.
func (s SessionKeys) StartWrite(ctx context.Context, o WriteSessionKeys) (wait func() error, err error) {
	return s.db.writer.start(ctx, o)
}

// Get reads one key; without a value when it is not there.
func (s SessionKeys) Get(ctx context.Context, account, kind, name string) (SessionKey, error) {
	k := SessionKey{Kind: kind, Name: name}
	err := s.db.row(ctx, `SELECT at, value FROM session_key WHERE account = $1 AND kind = $2 AND name = $3`, []any{account, kind, name}, &k.At, &k.Value)
	if errors.Is(err, sql.ErrNoRows) {
		return k, nil
	}
	return k, err
}

// List reads the keys of a kind whose names begin with a prefix, in the
// order of their names, byte by byte (on PostgreSQL the column needs COLLATE "C").
func (s SessionKeys) List(ctx context.Context, account, kind, prefix string) ([]SessionKey, error) {
	var list []SessionKey
	const afterASCII = "\x7f" // no name holds it
	err := s.db.rows(ctx, `SELECT name, at, value FROM session_key WHERE account = $1 AND kind = $2 AND name >= $3 AND name < $4 ORDER BY name`,
		[]any{account, kind, prefix, prefix + afterASCII}, func(r *sql.Rows) error {
			k := SessionKey{Kind: kind}
			err := r.Scan(&k.Name, &k.At, &k.Value)
			list = append(list, k)
			return err
		})
	return list, err
}

// Before names the keys of a kind that have a time, before a given one.
func (s SessionKeys) Before(ctx context.Context, account, kind string, before postern.Time) (names []string, err error) {
	err = s.db.rows(ctx, `SELECT name FROM session_key WHERE account = $1 AND kind = $2 AND at > 0 AND at < $3`, []any{account, kind, before}, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Count counts the keys of a kind that have a time.
func (s SessionKeys) Count(ctx context.Context, account, kind string) (n int, err error) {
	err = s.db.row(ctx, `SELECT count(*) FROM session_key WHERE account = $1 AND kind = $2 AND at > 0`, []any{account, kind}, &n)
	return n, err
}

// Accounts lists the accounts that have keys. It seeks from one account
// to the next and does not read what is between.
func (s SessionKeys) Accounts(ctx context.Context) (accounts []string, err error) {
	err = s.db.rows(ctx, `WITH RECURSIVE list (account) AS (
			SELECT min(account) FROM session_key
			UNION ALL SELECT (SELECT min(k.account) FROM session_key k WHERE k.account > list.account) FROM list WHERE list.account IS NOT NULL)
		SELECT account FROM list WHERE account IS NOT NULL`, nil, func(r *sql.Rows) error {
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
		err := s.db.do(ctx, opFunc(func(t *tx) (err error) {
			n, err = t.changed(`DELETE FROM session_key WHERE account = $1 AND (kind, name) IN (SELECT kind, name FROM session_key WHERE account = $1 LIMIT $2 + 0)`, account, purgeChunk)
			return err
		}))
		if err != nil || n == 0 {
			return err
		}
	}
}
