package db

import "time"

// MaxNews is how many bytes of news fit into a notification of PostgreSQL, in base64 and with what surrounds them.
const MaxNews = 5500

const (
	queueLength = 4096 // writes that may wait for the writer; further callers block
	groupSize   = 256  // writes that share one fsync; more would only delay the first one's caller

	// Writes that nobody waits for are gathered for this long, or until there are this many.
	gatherTime  = 3 * time.Millisecond
	gatherGroup = 64

	// SQLite makes a checkpoint after this many groups, or after checkpointOften groups
	// while several workspaces write. Beyond journalPages the writer makes one itself.
	checkpointGroups = 128
	checkpointOften  = 4
	journalPages     = 10_000

	// PostgreSQL's statistics are looked after each time that this many writes were committed.
	statisticsWrites = 1000

	activeGroups = 32                     // groups for which a workspace counts as active after a write,
	activeTime   = time.Second            // but no longer than this
	maxRest      = 100 * time.Millisecond // the longest pause between two groups of one workspace's flood

	// Connections for reading. SQLite gains nothing beyond the machine's cores;
	// with PostgreSQL most of a read is waiting for the network.
	sqliteReaders   = 4
	postgresReaders = 8

	// PostgreSQL: how long a statement may go without a response before its connection
	// counts as lost, how long connecting may take, how long a start waits for the lock
	// of a server that has just ended, and how often an idle writer checks its connection.
	answerLimit  = 30 * time.Second
	connectLimit = 5 * time.Second
	lockWait     = 2 * time.Second
	// A statement whose caller has left is canceled after cancelDelay, and its connection is
	// closed if the server has not confirmed that within cancelLimit.
	cancelDelay = 50 * time.Millisecond
	cancelLimit = 5 * time.Second
	writerTick  = time.Second
	// A new connection is tried this long after one that failed.
	reconnectGap = 200 * time.Millisecond
	// Another server must hold the database for this long before this one gives up:
	// a command that ran in between does not count.
	takenAfter = 10 * time.Second

	// Several servers on one PostgreSQL database: what is sent to the others at most before
	// they are told to look at everything; the size of a notification, for which PostgreSQL
	// allows 8,000 bytes, and what an id needs besides itself; how often all listeners look
	// for themselves; how long a server may be silent within a transaction while the
	// others wait for their turn to write; and from which wait on it has noticed the others.
	maxNotices   = 10_000
	maxTold      = 1000 // news that wait; older ones are worth less
	noticeSize   = 7000
	noticeMargin = 8
	pollInterval = 15 * time.Second
	turnLimit    = 3 * time.Second
	turnNoticed  = time.Millisecond
)
