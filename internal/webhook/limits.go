package webhook

import "time"

const (
	maxInFlight    = 64   // of one endpoint; the contract's upper bound
	sharedSlots    = 1024 // attempts at once beyond the one that every endpoint has for itself: sockets and memory
	maxHandshakes  = 256  // at once
	maxIdleWorkers = 128  // goroutines that wait for the next attempt: those of two endpoints, about 1 MiB
	batch          = 32   // deliveries a lane reads at once, unless more may be posted at once: their bodies are held in memory
	pagesOn        = 64   // reads of a backlog, after which it is looked at from its start

	fairWorkspaces = 1 << 16          // whose rates are remembered
	planLook       = 10 * time.Second // a lane looks so often whether the plan has changed

	linger     = 5 * time.Second  // a lane without work waits so long before it ends
	rest       = 5 * time.Second  // after an error of our own
	maxRest    = 30 * time.Second // between tries to record an outcome
	clockSlack = 10 * time.Second // a delivery may be written this much after the time it bears
	drainTime  = 15 * time.Second // the time-out of one attempt

	maxAttempts = 12
	window      = 72 * time.Hour // from the first attempt; the last one is made at its end
	jitterRange = 0.2            // of a gap, up and down
	minPause    = time.Second    // Retry-After is taken from here ...
	maxPause    = 24 * time.Hour // ... to here

	answerBytes = 1 << 10 // kept of an answer

	handshakeTimeout = 10 * time.Second
	challengeSize    = 32 // random bytes
)

// gaps are the times between attempts, each from the end of the one before.
func gaps() [maxAttempts - 1]time.Duration {
	return [...]time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 24 * time.Hour,
	}
}

// handshakeGaps bring the tries to 0 s, 10 s, 1 min and 10 min.
func handshakeGaps() [3]time.Duration {
	return [...]time.Duration{10 * time.Second, 50 * time.Second, 9 * time.Minute}
}
