package store

import "time"

const (
	listGuess = 8 // rows of a list for which there is room from the start

	dueGuess   = 32      // like listGuess, for deliveries
	cacheBytes = 4 << 20 // of devices in the cache

	// MessagesCounted bounds how far the queue of messages is counted: each is looked
	// at, for no index of it tells the state too, and one that did would cost every send.
	MessagesCounted = 10_000
	// DeliveriesCounted bounds that of deliveries, of which there are without end when a
	// receiver is down for days: PostgreSQL takes 8 ms for it, SQLite 2.
	DeliveriesCounted = 20_000
	// IdempotencyKept is how long the answer to an idempotent request is kept.
	IdempotencyKept = 24 * time.Hour
	// catchUpWindow is how far back an endpoint that becomes active gets events.
	catchUpWindow = 72 * time.Hour
	catchUpChunk  = 500     // events in one operation of catching up
	purgeChunk    = 500     // rows in one operation of deleting
	logBytes      = 4 << 20 // of events, after which a page of the log is full
	logScan       = 10_000  // events that one page of a filtered log looks at
	messageScan   = 5000    // messages that one page of a search looks at,
	plainScan     = 500     // and when an index tells all but whether they are of the present number

	// In order, an event waits at most so long for the one before it in its chat,
	// from that one's first attempt on.
	lineWait      = 10 * time.Minute
	replayChunk   = 100  // deliveries that a replay queues in one operation
	replayLow     = 50   // of them that may still wait when it queues more
	maxReplays    = 10   // that run for one endpoint
	attemptsShown = 1000 // of one delivery: a retry by hand adds a round each time

	// An endpoint is disabled after this long without one success, and at least
	// so many attempts.
	disableAfter    = 120 * time.Hour
	disableFailures = 10
)
