package api

import "time"

const (
	// MaxBodyBytes is how large a JSON body may be; beyond it the answer is 413.
	MaxBodyBytes = 1 << 20

	maxKey = 255 // characters of an idempotency key

	bodyTimeout = 15 * time.Second // for a body of 1 MiB over a slow line
	streamWrite = 10 * time.Second // a reader of a stream that takes longer is gone
	streamPulse = 15 * time.Second // proxies close a silent stream after 30 s or more

	uploadWait    = 30 * time.Second // for the next part of an upload
	uploadTime    = time.Hour        // for all of it: 100 MiB at 30 kB per second
	uploadRetry   = 5 * time.Second  // after which there may be room for another upload
	maxUploads    = 8                // of a workspace at once
	maxAllUploads = 64               // of all workspaces at once
	maxEnvelope   = 64 << 10         // bytes of a form before its file, and after it

	maxStreams    = 100         // of a workspace at once
	maxAllStreams = 5000        // of all workspaces at once: half of the connections that a server has
	codeWait      = time.Second // until the first code of a link attempt, as it usually takes
	strikes       = 600         // refused credentials a minute from one address
	throttledKeys = 100_000     // keys and workspaces whose rate is remembered
)
