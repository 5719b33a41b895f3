package egress

import "time"

const (
	defaultTimeout = 15 * time.Second // of an exchange, including the answer's body; set by the contract
	connectTimeout = 10 * time.Second // of a dial, and of a TLS handshake
	pingAfter      = 15 * time.Second // a silent HTTP/2 connection is checked by a ping after this time

	maxHeader = 64 << 10 // bytes of an answer's head, including all informational answers before it
	maxRead   = 64 << 10 // bytes of an answer's body that are read
	maxKept   = 1 << 10  // bytes of an answer's body that are returned
	maxURL    = 2048     // bytes of a URL

	// A host may send exchangeBytes for each running exchange, and idleBytes on a
	// connection without one. HTTP/1 needs less than half of it. HTTP/2 lets a host send frames
	// that belong to no answer, and their number must be limited.
	exchangeBytes = 256 << 10
	idleBytes     = 64 << 10
	streamWindow  = 64 << 10 // HTTP/2: bytes of one body that a host may send before they are read
	connWindow    = 1 << 20  // HTTP/2: the same for all bodies of a connection

	// Idle connections. Each costs 19 KiB with plain HTTP and 25 KiB with TLS
	// (measured, including buffers and goroutines), so that all cost 26 MiB at most.
	maxIdlePerHost   = 64   // of one tenant to one host: the most exchanges that one endpoint may have at once
	maxIdlePerTenant = 256  // of one tenant to all hosts
	maxIdle          = 1024 // of all tenants
	idleTimeout      = 90 * time.Second

	// Transports without a running exchange. The least recently used are closed first.
	// Each costs 9 KiB (measured), so that all cost 18 MiB at most.
	maxIdlePools = 2048
)
