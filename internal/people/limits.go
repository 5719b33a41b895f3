package people

import (
	"time"
)

// The limits of the contract that this package checks.
const (
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
)
