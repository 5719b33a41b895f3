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
)
