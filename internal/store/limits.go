package store

import "time"

const (
	queueLength = 4096 // ops that may wait for the writer; more callers block
	groupSize   = 256  // ops that share one fsync; more only lengthen the wait of the first
	listGuess   = 8    // rows of a list for which there is room from the start
	readers     = 4    // read connections; the machine's cores bound what they give

	// IdempotencyKept is how long the answer to an idempotent request is kept.
	IdempotencyKept = 24 * time.Hour
	// catchUpWindow is how far back an endpoint that becomes active gets events.
	catchUpWindow = 72 * time.Hour
	catchUpChunk  = 500 // events in one operation of catching up
	purgeChunk    = 500 // rows in one operation of deleting

	// An endpoint is disabled after this long without one success, and at least
	// so many attempts.
	disableAfter    = 120 * time.Hour
	disableFailures = 10
)
