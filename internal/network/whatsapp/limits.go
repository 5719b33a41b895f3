package whatsapp

import (
	"time"

	"postern/internal/network"
)

const (
	// updateTimeout bounds one Host.Update. whatsmeow warns after 5 s, and after 5
	// minutes it no longer preserves the order of messages.
	updateTimeout = 10 * time.Second
	// sendTimeout bounds a whole send: the lookup of the recipient and its keys,
	// and the vendor's answer.
	sendTimeout = network.SendTimeout - 5*time.Second
	// answerTimeout bounds the wait for the vendor's answer to a message.
	answerTimeout = 20 * time.Second
	// transferTimeout bounds one upload or download: 100 MiB at 180 kB/s.
	transferTimeout = 10 * time.Minute
	// historyTimeout bounds the storing of a part of the history.
	historyTimeout = 30 * time.Minute
	// idleTimeout is for how long a connection to a host of files is kept for the next one.
	idleTimeout = time.Minute
	// drainTimeout bounds the wait for calls in progress when a connection ends.
	drainTimeout = 15 * time.Second
	// dialTimeout bounds connecting and the TLS handshake, each.
	dialTimeout = 10 * time.Second
	// unlinkTimeout bounds the vendor's answer to an unlink.
	unlinkTimeout = 20 * time.Second
	// leaveTimeout bounds the connection that removes the companion of a failed link.
	leaveTimeout = 10 * time.Second
	// cleanupTimeout bounds the removal of the keys of a failed link.
	cleanupTimeout = 10 * time.Second
	// reasonWait is how long a closed socket waits for an earlier stanza that
	// explains it: whatsmeow reports both at the same time.
	reasonWait = 100 * time.Millisecond
	// restartWait bounds the wait for the vendor's order to reconnect after a
	// pairing.
	restartWait = 10 * time.Second
	// readRate and readBurst bound the bytes that are read from a connection: about 2,000
	// messages per second of ordinary length, and as many at once.
	readRate  = 1 << 20 // bytes per second
	readBurst = 1 << 20
	// settleTimeout bounds the wait of an answer about groups for the notices that arrived before it.
	settleTimeout = 5 * time.Second
	// handlingTime is how long a stanza counts as being handled if nothing shows the end.
	handlingTime = time.Second
	// maxOpenStanzas bounds the stanzas whose handling is watched.
	maxOpenStanzas = 4096
	// maxUndecoded is how many frames in a row that cannot be decoded end a connection.
	maxUndecoded = 3
	// panicTries is how often a message is tried whose processing panics.
	panicTries = 3
	// maxTries bounds the messages whose tries are counted, and the stars.
	maxTries = 1024
	// staleTries bounds how often a message is encrypted because its recipient
	// wrote at the same moment.
	staleTries = 5
	// syncTimeout bounds reading what has changed in the app state.
	syncTimeout = 2 * time.Minute
	// syncAgain is how long reading it waits after a failure. It waits twice as long after each further one, and
	// syncAgainMost at most.
	syncAgain, syncAgainMost = 5 * time.Second, 10 * time.Minute
	// starTries is how often a star is tried that cannot be set for a reason that may pass, such as a
	// key that the phone has not shared yet.
	starTries = 5

	// historyChunk is how many messages of the history are stored at a time.
	historyChunk = 200

	maxName   = 256 // runes of a contact's name
	maxID     = 256 // bytes of a network id
	maxDigits = 20  // of a number or LID
	// maxRequested bounds the files that are remembered because the phone was asked for them.
	maxRequested = 256
	// maxUnreadable bounds the ids of undecryptable messages that are remembered
	// in order to report each once.
	maxTimers     = 1000 // chats whose timers a connection remembers
	maxUnreadable = 1024
)

// pace holds the times that tests shorten.
type pace struct {
	silence   time.Duration // allowed without progress towards a live session
	firstCode time.Duration // for which the first code is shown
	nextCode  time.Duration // for which each further code is shown

	pairingCode time.Duration // for which a code to enter on a phone is shown
}

// defaultPace follows the vendor's own web client for the codes.
func defaultPace() pace {
	return pace{
		silence: 30 * time.Second, firstCode: 60 * time.Second, nextCode: 20 * time.Second,
		pairingCode: pairingTime,
	}
}
