package people

import (
	"time"
)

// The limits of the contract that this package checks.
const (
	minPassword    = 10 // characters
	maxPassword    = 256
	maxEmail       = 254      // bytes (RFC 5321, 4.5.3.1.3, without the brackets)
	hashMemory     = 64 << 10 // KiB
	maxHashing     = 4        // passwords hashed at the same time, with 64 MiB each
	maxHashQueue   = 64       // passwords that are being hashed or wait for it
	maxSessions    = 100      // listed for a user
	maxPasskeys    = 20       // of a user
	maxIdentities  = 10       // of a user
	recoveryCodes  = 10       // generated at once
	maxMembers     = 1000     // listed for a workspace
	maxInvitations = 100      // open for a workspace
	namesShown     = 3        // workspaces named for each user in a list

	// MenuSize is how many workspaces of a user every page offers.
	MenuSize = 20

	// joinTime is how long a link that lets somebody in is valid: longer than a weekend.
	joinTime = 72 * time.Hour
	// mailTime is how long a link is valid that somebody requested by mail and waits for.
	mailTime = time.Hour

	// Mails in an hour: requested by a workspace or a network, and of one kind to one
	// address.
	mailsBy = 60
	mailsTo = 6

	// Sign-in attempts in an hour: from one network, for one account from one network, and
	// for one account in total.
	attemptsOfNetwork = 200
	attemptsNear      = 10
	attemptsOfAccount = 20
	provedUsers       = 1 << 16 // whose correct passwords are remembered
	// signOnStarts limits how many browsers of one network are sent to the OpenID Connect
	// provider in an hour.
	signOnStarts = 600
)
