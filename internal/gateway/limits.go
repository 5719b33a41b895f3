package gateway

import (
	"time"
)

// The caps of the contract that are the gateway's to check.
const (
	maxMetadata        = 50  // members
	maxMetadataBytes   = 500 // of a name or a value
	maxDescription     = 500 // bytes
	maxEndpointHeaders = 10
	maxHeaderValue     = 1024 // bytes
	maxEventPatterns   = 50
	maxDeviceIDs       = 50 // the largest plan's devices

	defaultExpiry = 24 * time.Hour
	maxExpiry     = 7 * 24 * time.Hour

	// linkTime is how long a phone has to scan: the vendor shows six codes, the
	// first for 60 s and the others for 20 s, and a margin for a slow start.
	linkTime = 3 * time.Minute
	// pageTime is how long a link page may be used; its attempt stays open for
	// it, with new codes when the vendor's run out.
	pageTime = 15 * time.Minute
	// goodbyeWait is how long deleting a device waits for the network's answer,
	// unless Options say otherwise.
	goodbyeWait = 10 * time.Second
	// codeWait is how long a sandbox scan waits for the first code.
	codeWait   = 10 * time.Second
	maxOffline = 3600 // seconds that a simulated phone may be away
	// linkedWait is how long it waits for the device to be connected.
	linkedWait = 2 * time.Second

	maxLimit = 1_000_000_000 // of what an operator may allow a workspace
	maxDays  = 36_500

	// retentionEvery is how often what is too old is removed: often enough that
	// a pass is small.
	retentionEvery = 10 * time.Minute

	statsTime = day      // that an endpoint's counters are shown for when nobody says
	maxStats  = 31 * day // ... and at most
	keepHours = 32 * day // that what became of messages is known by the hour

	defaultInFlight = 8
	maxInFlight     = 64

	// maxOverlap is how long a key may live on beside its successor.
	maxOverlap = 30 * 24 * time.Hour

	// defaultOverlap is how long the old secret of an endpoint signs beside its
	// successor, unless told; maxOverlap bounds it too.
	defaultOverlap = 24 * time.Hour
	maxOldSecrets  = 9 // that sign beside the newest: more only make the header longer

	// linkStarts bounds the link attempts of a device in a minute: each asks the
	// network for codes, and shows them.
	linkStarts = 20

	// usedEvery bounds how often a key's last use is written.
	usedEvery = time.Minute
	// keysCached bounds the keys remembered in memory.
	keysCached = 10_000
)
