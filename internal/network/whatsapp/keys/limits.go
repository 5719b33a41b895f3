package keys

import "time"

const (
	// closeTimeout bounds a write for which no caller waits: after flushDelay,
	// and at the end of a connection.
	closeTimeout = 10 * time.Second
	// flushDelay is how long a record that need not be durable at once, such as
	// the removal of a handled plaintext, waits to be written with another.
	flushDelay = time.Second
	// maxMigrated bounds the phone numbers that a connection remembers as
	// moved to their LID.
	maxMigrated = 4096
	// eventRetention is how long the vendor delivers an unacknowledged message
	// again.
	eventRetention = 14 * 24 * time.Hour

	// Rows in one operation of the database's writer, for which other callers
	// wait. A contact is read before it is written, and a LID mapping is two
	// rows and as many removals.
	secretChunk  = 500
	macChunk     = 500
	contactChunk = 300
	lidChunk     = 250
	sessionChunk = 256 // a message to a big group changes thousands of sessions
	// readOneByOne is how many records are read one by one, and cached: those of a person's devices.
	readOneByOne = 8
)
