//go:build !failpoints

package store

import "context"

// do hands an op to the writer and waits until it is durable or refused.
func (db *DB) do(ctx context.Context, o op) error { return db.writer.do(ctx, o) }

// after hands an op to the writer and does not wait; see writer.after.
func (db *DB) after(o op, then func(error)) { db.writer.after(o, then) }

// bare is an op without what fail points wrap around it.
func bare(o op) op { return o }
