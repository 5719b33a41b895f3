package session

import "time"

const (
	// parallelConnects bounds how many connections are opened at the same time, so
	// that a restart with many devices neither overloads the machine nor looks like
	// an attack to the vendor.
	parallelConnects = 16

	retryFirst = 500 * time.Millisecond // after a connection that worked
	retryMax   = 5 * time.Minute
	// conflictWait is long: connecting again would end the session that was opened
	// elsewhere, which would then connect again in turn.
	conflictWait = 10 * time.Minute

	// trialTime is how long a suspect has to be connected before the next one is: what the
	// network sends again arrives within that time.
	trialTime = 5 * time.Second
	// quarantineWait bounds the sleep of the supervisor of a device that may not connect; a
	// change of the device ends it.
	quarantineWait = 24 * time.Hour

	resendFirst    = 15 * time.Second // after an attempt with unknown outcome on a live connection
	resendMax      = 10 * time.Minute
	sendBatch      = 64                     // messages that the sender reads at a time at most
	smallestBatch  = 1 + devicePreparations // the files of the messages behind the first are prepared ahead
	replyTime      = 24 * time.Hour         // after an inbound message, during which no pace applies to replies
	sendGrace      = 5 * time.Second        // for sends in progress when the server stops
	moveGrace      = time.Second            // for a send in progress when another server gets the device
	storeRetryWait = 2 * time.Second

	// codesAgain is the remaining time of a link attempt below which no new codes
	// are requested from the network.
	codesAgain = 30 * time.Second

	unlinkTimeout = 10 * time.Second

	devicePreparations = 4               // files of a device that are handed to the network at a time
	allUploads         = 8               // of all devices
	devicePreviews     = 4               // messages of a device whose links are looked up at a time
	allPreviews        = 8               // of all devices
	previewTime        = 6 * time.Second // for a page and its picture
	maxPreviewPicture  = 4 << 20         // bytes of the picture of a page
	allHistories       = 1               // parts of the histories of all phones that are read at a time: each takes some memory
	maxHistoryTries    = 10              // to read a part: some hours
	deviceDownloads    = 2               // files that are fetched for a device at a time
	allDownloads       = 8               // of all devices
	workspaceFetches   = 4               // files that are fetched from URLs for a workspace at a time
	allFetches         = 32
	maxHanded          = 1000           // files that a device remembers to be on the network
	maxHeld            = 100            // chats that wait for a file while others are served
	uploadLife         = 24 * time.Hour // of what the network knows of a file, for new messages
	uploadFirst        = 2 * time.Second
	uploadMax          = 5 * time.Minute
	downloadTimeout    = 10 * time.Minute
	fetchFirst         = 5 * time.Second // after the first attempt that failed; doubled each time
	fetchMax           = time.Hour
	maxFetches         = 12          // attempts to download a file: about five hours
	maxURLTries        = 5           // about two minutes
	storageWait        = time.Minute // after a file could not be stored
	phoneRequests      = 3           // for one file
	phoneWait          = time.Hour   // for the answer of a phone, which may be off

	maintenanceInterval = 5 * time.Second
	abandonedInterval   = time.Hour        // between looks for accounts whose keys are left
	forgetTime          = 30 * time.Second // for removing the keys of an account that was logged out
	expireChunk         = 200
	scheduleInterval    = time.Second
	seenInterval        = 30 * time.Second // lastSeenAt of a device is at most a minute out of date
	dueChunk            = 200
)
