package accounts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// TOTP is the authenticator app of a user.
type TOTP struct {
	Secret    []byte // sealed
	Confirmed bool
	Used      int64 // the time step of the last code that was used
}

// TOTP returns the authenticator app of a user; ok is false when there is none.
func (s Factors) TOTP(ctx context.Context, id postern.UserID) (o TOTP, ok bool, err error) {
	var at postern.Time
	err = s.db.Row(ctx, `SELECT secret, confirmed_at, used FROM totp WHERE user_id = $1`, []any{id}, &o.Secret,
		&at, &o.Used)
	if errors.Is(err, sql.ErrNoRows) {
		return o, false, nil
	}
	o.Confirmed = at != 0
	return o, err == nil, err
}

// BeginTOTP stores the secret of an app that is not confirmed yet, replacing an earlier
// unconfirmed one.
func (s Factors) BeginTOTP(ctx context.Context, id postern.UserID, secret []byte) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`INSERT INTO totp (user_id, secret) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE
			SET secret = excluded.secret WHERE totp.confirmed_at = 0`, id, secret)
		if err == nil && n == 0 {
			err = postern.Invalid("/code", "there already is an authenticator app; remove it first")
		}
		return err
	}))
}

// NewFactor is the addition of a second factor. Adding one ends the login sessions and
// sign-ins in progress that a password alone opened, except the session in which it was
// added.
type NewFactor struct {
	UserID   postern.UserID
	Recovery []string // the hashes of new recovery codes, for a user who has no factor yet
	But      string   // the hash of the token of the login session that stays
	Act      store.Act
}

func (o NewFactor) apply(t *db.Tx) (recovery bool, err error) {
	n := 0
	err = t.Row(`SELECT (SELECT count(*) FROM passkey WHERE user_id = $1) + (SELECT count(*) FROM totp
		WHERE user_id = $1 AND confirmed_at > 0)`, []any{o.UserID}, &n)
	if err == nil && n == 1 { // the new one is the first
		recovery, err = true, setRecoveryCodes(t, o.UserID, o.Recovery)
	}
	return recovery, errors.Join(err, endSignIns(t, o.UserID, o.But), o.Act.Record(t))
}

// ConfirmTOTP activates an app with its first code, whose time step is step. recovery
// reports whether the recovery codes were stored.
func (s Factors) ConfirmTOTP(ctx context.Context, o NewFactor, step int64) (recovery bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE totp SET confirmed_at = $2, used = $3
			WHERE user_id = $1 AND confirmed_at = 0`, o.UserID, o.Act.At, step)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Invalid("/code", "no authenticator app waits for its first code; start again")
		}
		recovery, err = o.apply(t)
		return err
	}))
	return recovery, err
}

// GuessTOTP counts a code that is tried on a day; ok is false when limit wrong ones were
// already tried. The day is named by its start.
func (s Factors) GuessTOTP(ctx context.Context, id postern.UserID, day postern.Time,
	limit int,
) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE totp SET guesses = CASE WHEN guess_day = $2 THEN guesses + 1 ELSE 1 END,
			guess_day = $2 WHERE user_id = $1 AND (guess_day <> $2 OR guesses < $3)`, id, day, limit)
		ok = n > 0
		return err
	}))
	return ok, err
}

// UseTOTP records the time step of a code, which was no wrong guess; ok is false when a code
// of that step or a later one was already used.
func (s Factors) UseTOTP(ctx context.Context, id postern.UserID, step int64) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE totp SET used = $2,
			guesses = CASE WHEN guesses > 0 THEN guesses - 1 ELSE 0 END
			WHERE user_id = $1 AND used < $2 AND confirmed_at > 0`, id, step)
		ok = n > 0
		return err
	}))
	return ok, err
}

// Passkey is a passkey of a user.
type Passkey struct {
	ID        string
	UserID    postern.UserID
	Name      string
	Kept      []byte // sealed
	CreatedAt postern.Time
	UsedAt    postern.Time // 0 before the first use
}

// Passkeys returns up to limit passkeys of a user.
func (s Factors) Passkeys(ctx context.Context, id postern.UserID, limit int) (list []Passkey, err error) {
	err = s.db.Rows(ctx, `SELECT id, user_id, name, kept, created_at, used_at FROM passkey WHERE user_id = $1
		ORDER BY id LIMIT $2 + 0`, []any{id, limit}, func(r *sql.Rows) error {
		var p Passkey
		err := r.Scan(&p.ID, &p.UserID, &p.Name, &p.Kept, &p.CreatedAt, &p.UsedAt)
		list = append(list, p)
		return err
	})
	return list, err
}

// AddPasskey adds a passkey; a user may have at most limit. recovery reports whether the
// recovery codes were stored.
func (s Factors) AddPasskey(ctx context.Context, o NewFactor, p Passkey, limit int) (recovery bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`INSERT INTO passkey (id, user_id, name, kept, created_at)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), $4, CAST($5 AS BIGINT)
			WHERE (SELECT count(*) FROM passkey WHERE user_id = $2) < $6 ON CONFLICT (id) DO NOTHING`, p.ID, p.UserID, p.Name,
			p.Kept, p.CreatedAt, limit)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Invalid("/passkey", "this passkey already exists, or there are %d already", limit)
		}
		recovery, err = o.apply(t)
		return err
	}))
	return recovery, err
}

// UsePasskey stores the new state of a passkey after its use; ok is false when the passkey
// no longer exists.
func (s Factors) UsePasskey(ctx context.Context, p Passkey) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE passkey SET kept = $3, used_at = $4
			WHERE user_id = $1 AND id = $2`, p.UserID, p.ID, p.Kept, p.UsedAt)
		ok = n > 0
		return err
	}))
	return ok, err
}

// Remove removes a passkey of a user, or the authenticator app when passkey is "".
func (s Factors) Remove(ctx context.Context, id postern.UserID, passkey string, act store.Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		query, args := `DELETE FROM totp WHERE user_id = $1`, []any{id}
		if passkey != "" {
			query, args = `DELETE FROM passkey WHERE user_id = $1 AND id = $2`, []any{id, passkey}
		}
		n, err := t.Changed(query, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Errorf(postern.NotFound, "this second factor was already removed")
		}
		return errors.Join(removeRecovery(t, id), act.Record(t))
	}))
}

// removeRecovery removes the recovery codes of a user who has no second factor.
func removeRecovery(t *db.Tx, id postern.UserID) error {
	return t.Exec(`DELETE FROM recovery_code WHERE user_id = $1 AND NOT EXISTS (SELECT 1 FROM passkey WHERE user_id = $1)
		AND NOT EXISTS (SELECT 1 FROM totp WHERE user_id = $1 AND confirmed_at > 0)`, id)
}

// removeFactors removes all second factors of a user, and the recovery codes.
func removeFactors(t *db.Tx, id postern.UserID) error {
	return errors.Join(t.Exec(`DELETE FROM totp WHERE user_id = $1`, id), t.Exec(`DELETE FROM passkey
		WHERE user_id = $1`, id), t.Exec(`DELETE FROM recovery_code WHERE user_id = $1`, id))
}

// RecoveryCodes counts the recovery codes of a user.
func (s Factors) RecoveryCodes(ctx context.Context, id postern.UserID) (n int, err error) {
	err = s.db.Row(ctx, `SELECT count(*) FROM recovery_code WHERE user_id = $1`, []any{id}, &n)
	return n, err
}

// SetRecoveryCodes replaces the recovery codes of a user.
func (s Factors) SetRecoveryCodes(ctx context.Context, id postern.UserID, hashes []string, act store.Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(setRecoveryCodes(t, id, hashes), removeRecovery(t, id), act.Record(t))
	}))
}

func setRecoveryCodes(t *db.Tx, id postern.UserID, hashes []string) error {
	err := t.Exec(`DELETE FROM recovery_code WHERE user_id = $1`, id)
	for _, hash := range hashes {
		err = errors.Join(err, t.Exec(`INSERT INTO recovery_code (user_id, hash) VALUES ($1, $2)`, id, hash))
	}
	return err
}

// UseRecoveryCode uses a recovery code up; ok is false when the user has no such code.
func (s Factors) UseRecoveryCode(
	ctx context.Context, id postern.UserID, hash string, act store.Act,
) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		ok = false // an earlier run of this function may have been rolled back
		n, err := t.Changed(`DELETE FROM recovery_code WHERE user_id = $1 AND hash = $2`, id, hash)
		if err != nil || n == 0 {
			return err
		}
		ok = true
		return act.Record(t)
	}))
	return ok, err
}
