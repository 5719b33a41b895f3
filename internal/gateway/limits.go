package gateway

import "time"

// The caps of the contract that are the gateway's to check.
const (
	maxMetadata        = 50  // members
	maxMetadataBytes   = 500 // of a name or a value
	maxName            = 200 // bytes of the name of a workspace, key or device
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

	minPassword    = 10 // bytes
	maxPassword    = 256
	maxEmail       = 254      // bytes (RFC 5321, 4.5.3.1.3, less the brackets)
	hashMemory     = 64 << 10 // KiB
	maxHashing     = 4        // passwords that are hashed at once, with 64 MiB each
	maxHashQueue   = 64       // passwords that wait to be hashed, or are
	maxSessions    = 100      // of a user that are shown
	maxPasskeys    = 20       // of a user
	maxIdentities  = 10       // of a user
	recoveryCodes  = 10       // that a user is given at once
	maxMembers     = 1000     // of a workspace that are shown
	maxInvitations = 100      // of a workspace that are open
	namesShown     = 3        // of the workspaces of each user in a list

	// MenuSize is how many workspaces of a user are offered on every page.
	MenuSize = 20

	// joinTime is how long a link may be used that lets somebody in: over a weekend.
	joinTime = 72 * time.Hour
	// mailTime is how long a link may be used that somebody has asked for by mail, who
	// waits for it.
	mailTime = time.Hour

	// Mails in an hour that a workspace or a network causes, and of a kind to one address.
	mailsBy = 60
	mailsTo = 6

	// Passwords that may be tried in an hour: from one network, of an account from
	// one network, and of an account in all.
	guessesFrom = 200
	guessesNear = 10
	guessesAll  = 20
	// signOnStarts bounds how many browsers of one network are sent to the provider
	// of OpenID Connect in an hour.
	signOnStarts = 600
	// linkStarts bounds the link attempts of a device in a minute: each asks the
	// network for codes, and shows them.
	linkStarts = 20
	rateNames  = 1 << 16 // that a limit remembers

	// usedEvery bounds how often a key's last use is written.
	usedEvery = time.Minute
	// keysCached bounds the keys remembered in memory.
	keysCached = 10_000
)
