//go:build !failpoints

package db

// losesNotices reports whether notifications of other servers are dropped on purpose.
func losesNotices() bool { return false }

// polled notes that listeners look for themselves because of the clock.
func polled() {}

// turnOf returns the statement with which a server waits for its turn.
func turnOf(turn string) string { return turn }
