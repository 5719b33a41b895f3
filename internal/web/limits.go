package web

import "time"

const (
	// HeaderLimit is how many bytes the request line and the headers may have
	// together; beyond it the answer is 431.
	HeaderLimit = 16 << 10
	// MaxHeaderBytes is what http.Server reads at most: more than HeaderLimit, so
	// that the refusal is a problem document and not a closed connection.
	MaxHeaderBytes = 4 * HeaderLimit

	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // header and body
	idleTimeout       = 2 * time.Minute  // of a connection between two requests
	writeTimeout      = 30 * time.Second // for each chunk of a response, except of streams

	compressFrom   = 1 << 10 // bytes of a response from which compression is worth its time
	brotliLevel    = 4       // of 7: smaller than gzip in about the same time
	maxCompressors = 4       // at work at once; each takes about 5 MB
	fileQuality    = 6       // of 11, for files, which are compressed once
	fileWindow     = 20      // bits: 1 MB of a file is searched for repetitions
	maxArchived    = 1 << 10 // compressed files in memory; all pages and assets are about 300

	writeChunk   = 32 << 10  // bytes that a client has writeTimeout for
	sendBuffer   = 128 << 10 // bytes that the kernel buffers for a connection; Linux counts them twice
	maxInFlight  = 16 << 20  // bytes of the responses to a workspace that are being written
	maxConns     = 10_000    // open at once; each takes about 30 KB when it is idle
	maxConnsFrom = 256       // open at once from one network
)
