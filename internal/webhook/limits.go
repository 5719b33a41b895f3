package webhook

import (
	"time"

	"postern/internal/postern"
)

const (
	maxInFlight    = 64       // attempts in flight of one endpoint; the contract's upper bound
	unrecorded     = 3        // times an endpoint's bound: attempts that may be answered and not recorded yet
	sharedSlots    = 1024     // attempts in flight beyond the one of every lane; bounds sockets and memory
	sharedBytes    = 64 << 20 // bytes of bodies that all lanes hold; a workspace gets at most half of them
	laneBytes      = 2 << 20  // bytes of bodies that one lane holds; a single body may be larger
	ownBytes       = 16 << 10 // bytes of a body that a lane may hold even if nothing is free
	wokenAtOnce    = 8        // lanes that are woken when bytes are given back
	maxHandshakes  = 256      // handshakes in flight
	maxIdleWorkers = 128      // idle goroutines of the worker pool: enough for two endpoints, about 1 MiB
	batch          = 32       // minimum of deliveries that a lane reads at once
	pagesOn        = 64       // a lane reads a backlog from its start again after this many pages

	fairWorkspaces = 1 << 16          // workspaces whose rates are remembered
	planLook       = 10 * time.Second // how often a lane reads its endpoint and plan again

	linger     = 5 * time.Second  // how long a lane without work waits before it ends
	rest       = 5 * time.Second  // pause after an internal error
	maxRest    = 30 * time.Second // longest pause between tries to record an outcome
	clockSlack = 10 * time.Second // how long after its due time a delivery may be committed
	drainTime  = 15 * time.Second // default of Options.Drain: the time-out of one attempt

	maxAttempts = 12             // attempts of one delivery
	window      = 72 * time.Hour // starts with the first attempt; the last one is made at its end
	jitterRange = 0.2            // a gap is longer or shorter by up to this fraction
	minPause    = time.Second    // a shorter Retry-After is ignored
	maxPause    = 24 * time.Hour // a longer Retry-After is cut to this

	answerBytes = 1 << 10 // bytes of an answer that are stored

	handshakeTimeout = 10 * time.Second
	challengeSize    = 32 // random bytes of a challenge
)

// gaps returns the times between attempts, each from the end of the previous attempt.
func gaps() [maxAttempts - 1]time.Duration {
	return [...]time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 24 * time.Hour,
	}
}

// handshakeGaps returns the times between handshakes. The handshakes begin 0 s, 3 s, 10 s,
// 1 min and 10 min after the first one.
func handshakeGaps() [postern.HandshakeTries - 1]time.Duration {
	return [...]time.Duration{3 * time.Second, 7 * time.Second, 50 * time.Second, 9 * time.Minute}
}
