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

// accepted does nothing to an action that was added.
func accepted(*db.Tx, postern.Message) error { return nil }

// forgetsActions reports whether messages do not change with actions on purpose.
func forgetsActions() bool { return false }

// queueOrder is the order in which the messages of a device are sent.
const queueOrder = `n`

// released returns how many bytes of a blob are taken off the count.
func released(size int64) int64 { return size }

// holds returns whether a file has a content.
func holds(_ string, held bool) bool { return held }

// write hands a hot write to the engine and waits until it is durable or refused.
func write[T db.Hot[T]](ctx context.Context, s *core, value T) error {
	return s.db.Do(ctx, db.Item(value))
}

// startWrite hands a hot write to the engine and does not hurry it. The function that it returns
// waits, once, until the write is durable or refused.
func startWrite[T db.Hot[T]](s *core, value T) (wait func() error) {
	done := make(chan error, 1)
	s.db.After(db.Item(value), func(err error) { done <- err })
	return func() error { return <-done }
}

// writeThen hands a hot write to the engine and does not wait; see [db.DB.After].
func writeThen[T db.Hot[T]](s *core, value T, then func(error)) {
	s.db.After(db.Item(value), then)
}
