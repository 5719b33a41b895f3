package keys

import "time"

const (
	// cleanupTimeout bounds the write that is made when a connection ends.
	cleanupTimeout = 10 * time.Second
	// flushDelay is how long what need not be on disk at once, such as that a
	// plaintext is not needed any more, waits to be written with something else.
	flushDelay = time.Second
	// maxCached bounds what a connection remembers of its contacts.
	maxCached = 4096
)
