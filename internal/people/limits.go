package people

import (
	"time"

	"postern/internal/postern"
)

// The limits of the contract that this package checks.
const (
	minPassword    = 10 // characters
	maxPassword    = 256
	maxEmail       = 254     // bytes (RFC 5321, 4.5.3.1.3, without the brackets)
	hashMemory     = 7 << 10 // KiB
	hashPasses     = 5
	maxHashing     = 4  // passwords hashed at the same time, with 7 MiB each
	maxHashQueue   = 32 // passwords of strangers that are being hashed or wait for it
	maxHashOfQueue = 4  // the same of one network, or of one account that is known to its browser
	strangersRest  = 7  // times what a stranger's hash took: strangers get an eighth of the slots' time
	maxSessions    = postern.MaxSignIns
	maxPasskeys    = postern.MaxPasskeys
	maxIdentities  = postern.MaxIdentities
	recoveryCodes  = 10   // generated at once
	maxMembers     = 1000 // listed for a workspace
	maxInvitations = 100  // listed for a workspace: as many as the largest plan has
	namesShown     = 3    // workspaces named for each user in a list

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
	// Notices to one person in an hour.
	noticesTo = 60

	// Sign-in attempts in an hour: from one network, for one account from one network or
	// one known browser, and for one account in total. Beyond the total, each network has
	// only attemptsUnderAttack: three at once.
	attemptsOfNetwork   = 200
	attemptsNear        = 10
	attemptsOfAccount   = 20
	attemptsUnderAttack = 6

	// Codes of an authenticator app in a day: wrong ones of all unknown browsers together,
	// and all of one known browser. An attacker who knows the password finds the current
	// code by chance in a year with a probability of 2 %: 3 of 1,000,000 codes are valid at
	// a time.
	codesPerDay    = 20
	codesOfBrowser = 20

	failuresRecorded = 60 // failed attempts of one account in an hour that the audit log records

	knownAccounts = 5                    // accounts to which one browser is known
	knownTime     = 365 * 24 * time.Hour // for which a browser is known after its last sign-in

	hashWait = 5 * time.Second // before another attempt when the queue for hashing is full

	provedUsers = 1 << 16 // whose correct passwords are remembered
	// signOnStarts limits how many browsers of one network are sent to the OpenID Connect
	// provider in an hour.
	signOnStarts = 600
)
