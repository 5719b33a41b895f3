//go:build !failpoints

package store

import (
	"context"

	"postern/internal/db"
	"postern/internal/postern"
)

// dueAt returns until when scheduled messages are due.
func dueAt(now postern.Time) postern.Time { return now }

// pretendsToCancel reports whether a message is not canceled on purpose.
func pretendsToCancel() bool { return false }

// write hands a hot write to the engine and waits until it is durable or refused.
func write[T db.Hot[T]](ctx context.Context, s *core, value T) error {
	return s.db.Do(ctx, db.Item(value))
}

// writeThen hands a hot write to the engine and does not wait; see [db.DB.After].
func writeThen[T db.Hot[T]](s *core, value T, then func(error)) {
	s.db.After(db.Item(value), then)
}
