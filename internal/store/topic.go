package store

import "postern/internal/db"

// Topic is a kind of change that others wait for.
type Topic = db.Topic

// Listener gathers the ids that changed until they are taken.
type Listener = db.Listener

// The topics. The id is that of the noun in brackets.
const (
	DeviceChanged   Topic = "device"   // desired or status [device]
	LinkChanged     Topic = "link"     // code or outcome [device]
	OutboundQueued  Topic = "outbound" // a message waits to be sent [device]
	DeliveryDue     Topic = "delivery" // an event waits for its first attempt [endpoint]
	RetryDue        Topic = "retry"    // a retry was requested, or queued by a replay [endpoint]
	EndpointChanged Topic = "endpoint" // created, activated, deleted [endpoint]
	ReplayChanged   Topic = "replay"   // created, or one of its deliveries ended [replay]
	EventLogged     Topic = "event"    // recorded [workspace]
	KeyChanged      Topic = "key"      // revoked, or the workspace's plan changed [workspace]

	deviceRow Topic = "device-row" // anything that a read of devices shows; for the cache
)
