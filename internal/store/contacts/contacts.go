// Package contacts keeps what is known of people on the network.
package contacts

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the people of all workspaces.
type Table struct{ db *db.DB }

// Of returns the people of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// Checked returns what was found out about numbers since a time.
func (t Table) Checked(
	ctx context.Context, ws postern.WorkspaceID, numbers []string, since postern.Time,
) (map[string]postern.CheckedNumber, error) {
	known := map[string]postern.CheckedNumber{}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, fmt.Errorf("encode numbers: %w", err)
	}
	err = t.db.Rows(ctx, `SELECT answer FROM number_check WHERE workspace_id = $1 AND checked_at > $2
		AND number IN `+t.db.InList(3), []any{ws, since, string(list)}, func(r *sql.Rows) error {
		var raw string
		var n postern.CheckedNumber
		if err := r.Scan(&raw); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(raw), &n)
		known[n.PhoneNumber] = n
		return err
	})
	return known, err
}

// Remember stores what was found out, without waiting for the disk: it can be found out again.
func (t Table) Remember(ws postern.WorkspaceID, list []postern.CheckedNumber, now postern.Time) {
	t.db.Later(db.Func(func(tx *db.Tx) error {
		for _, n := range list {
			raw, err := json.Marshal(n)
			if err != nil {
				return fmt.Errorf("encode a number: %w", err)
			}
			if err := tx.Exec(`INSERT INTO number_check (workspace_id, number, answer, checked_at) VALUES ($1, $2, $3, $4)
				ON CONFLICT (workspace_id, number) DO UPDATE SET answer = excluded.answer, checked_at = excluded.checked_at`,
				ws, n.PhoneNumber, string(raw), now); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Remove deletes a chunk of what was found out before a time, and reports whether there may be more.
func (t Table) Remove(ctx context.Context, before postern.Time) (more bool, err error) {
	const chunk = 500
	err = t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`DELETE FROM number_check WHERE (workspace_id, number) IN (SELECT workspace_id, number
			FROM number_check WHERE checked_at < $1 LIMIT $2 + 0)`, before, chunk)
		more = n == chunk
		return err
	}))
	return more, err
}
