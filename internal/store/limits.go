package store

import "time"

const (
	listGuess = 8 // rows for which a list has capacity at first

	dueGuess   = 32      // listGuess for deliveries
	cacheBytes = 4 << 20 // of memory for the device cache

	// MessagesCounted is the number up to which queued messages are counted. Counting reads
	// each message, because no index of the queue includes the status; such an index would
	// cost every send.
	MessagesCounted = 10_000
	// DeliveriesCounted is the number up to which pending deliveries are counted, which can
	// be very many when a receiver is down for days. Counting this many takes 8 ms with
	// PostgreSQL and 2 ms with SQLite.
	DeliveriesCounted = 20_000
	// IdempotencyKept is how long the response to an idempotent request is stored.
	IdempotencyKept = 24 * time.Hour
	// catchUpWindow is how far back an endpoint that becomes active receives events.
	catchUpWindow = 72 * time.Hour
	catchUpChunk  = 500            // events in one operation of catching up
	purgeChunk    = 500            // rows in one operation of deleting
	failedAtOnce  = 200            // messages that fail in one operation when a link ends; about 25 ms of the writer
	bodyInline    = "8192"         // bytes of a body that is read with its delivery; a larger one is read by Deliveries.Body
	logBytes      = 1<<20 - 32<<10 // of event bodies on a page of the log; the rest of 1 MiB is for commas and a cursor
	textBytes     = 1 << 20        // of texts, after which a page of messages is full
	logScan       = 10_000         // events that one page of the log reads
	messageScan   = 2000           // messages that one page of a list looks at
	plainScan     = 500            // messageScan when the index covers all conditions but the present number
	textScan      = 2000           // workspaces or users among which one page searches a text

	// lineWait is how long an event delivered in order waits for the one before it in its
	// chat, counted from the first attempt of that one.
	lineWait      = 10 * time.Minute
	replayChunk   = 100  // deliveries that a replay queues in one operation
	replayLow     = 50   // pending deliveries up to which a replay queues more
	attemptsShown = 1000 // attempts of one delivery in a list; each manual retry adds a round

	// An endpoint is disabled after this long without a success and at least this many
	// failed attempts.
	disableAfter    = 120 * time.Hour
	disableFailures = 10
)
