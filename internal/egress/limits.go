package egress

import "time"

const (
	defaultTimeout = 15 * time.Second // of an exchange: the contract's, body of the answer included
	connectTimeout = 10 * time.Second // of a dial, and of a TLS handshake
	pingAfter      = 15 * time.Second // an HTTP/2 connection that is silent for so long is checked by a ping

	maxHeader = 64 << 10 // bytes of an answer's head, with all early answers before it
	maxRead   = 64 << 10 // bytes of an answer's body; a longer one is not read to its end
	maxKept   = 1 << 10  // bytes of an answer's body that are returned
	maxURL    = 2048     // bytes

	// A host may send so much for each exchange that is under way, and so much
	// while there is none. HTTP/1 needs less than half of it; HTTP/2 lets a host
	// send frames that belong to no answer, and these must not go on for ever.
	exchangeBytes = 256 << 10
	idleBytes     = 64 << 10
	streamWindow  = 64 << 10 // of HTTP/2: bytes of a body that a host may send ahead of the reader
	connWindow    = 1 << 20  // of HTTP/2: the same for all answers on a connection

	// Idle connections. Each costs 19 KiB with plain HTTP and 25 KiB with TLS
	// (measured; buffers and goroutines included), so that all cost 26 MiB at most.
	maxIdlePerHost   = 64   // of a tenant: the most exchanges that one endpoint may have at once
	maxIdlePerTenant = 256  // to all hosts
	maxIdle          = 1024 // of all tenants
	idleTimeout      = 90 * time.Second

	// Transports that no exchange uses; the least recently used go first. Each
	// costs 9 KiB (measured), so that all cost 18 MiB at most.
	maxIdlePools = 2048
)
