package session

import "time"

const (
	// parallelConnects bounds how many connections are being opened at once, so
	// that a restart with many devices neither starves the machine nor looks like
	// an attack to the vendor.
	parallelConnects = 16

	retryFirst = 500 * time.Millisecond // after a connection that worked
	retryMax   = 5 * time.Minute
	// conflictWait is long: whoever opened the session elsewhere would be thrown
	// out by our return, and would return in turn.
	conflictWait = 10 * time.Minute

	sendTimeout    = 25 * time.Second // the driver's own wait for the network is shorter
	resendFirst    = 15 * time.Second // after an attempt with unknown outcome on a live connection
	resendMax      = 10 * time.Minute
	sendBatch      = 64
	replyTime      = 24 * time.Hour  // after an inbound message, in which no pace holds its answer up
	sendGrace      = 5 * time.Second // for attempts in flight when the server stops
	storeRetryWait = 2 * time.Second

	// codesAgain is the least time of a link attempt for which it is worth to ask
	// the network for new codes.
	codesAgain = 30 * time.Second

	unlinkTimeout = 10 * time.Second

	houseEvery = 5 * time.Second
	houseChunk = 200
)
