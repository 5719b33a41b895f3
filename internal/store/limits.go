package store

import "time"

const (
	queueLength = 4096 // ops that may wait for the writer; more callers block
	groupSize   = 256  // ops that share one fsync; more only lengthen the wait of the first
	listGuess   = 8    // rows of a list for which there is room from the start
	// Writes that keep nobody waiting gather for so long, or up to so many.
	patience     = 3 * time.Millisecond
	patientGroup = 64
	// With SQLite, a checkpoint is made after so many groups, while several
	// workspaces write after so many; beyond so many pages the writer makes one by
	// itself.
	checkpointGroups = 128
	checkpointOften  = 4
	journalPages     = 10_000

	turnMemory = 32                     // groups for which a workspace counts as one that writes,
	turnTime   = time.Second            // and no longer than this
	maxRest    = 100 * time.Millisecond // of a workspace's inbound messages, between its groups

	dueGuess  = 32      // like listGuess, for deliveries
	keptBytes = 4 << 20 // of devices that were read lately

	// Read connections. With SQLite the machine's cores bound what they give;
	// with PostgreSQL most of a read is waiting for the network.
	sqliteReaders   = 4
	postgresReaders = 8

	// PostgreSQL: how long one statement may go unanswered before its connection
	// counts as lost, how long connecting may take, how long a start waits for
	// the lock of a server that has just ended, and how often an idle writer
	// looks whether its connection is alive.
	answerLimit  = 30 * time.Second
	connectLimit = 5 * time.Second
	lockWait     = 2 * time.Second
	writerTick   = time.Second
	// A new connection is tried so long after one that failed.
	reconnectGap = 200 * time.Millisecond
	// Another server must hold the database for so long before this one gives
	// up: a command that ran in between does not.
	takenAfter = 10 * time.Second

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
