package whatsapp

import "time"

const (
	// updateTimeout bounds one Host.Update. whatsmeow warns after 5 s and gives
	// up the order of messages after 5 minutes.
	updateTimeout = 10 * time.Second
	// sendTimeout bounds a whole send: looking up the recipient and its keys,
	// and the vendor's answer.
	sendTimeout = 30 * time.Second
	// answerTimeout bounds the wait for the vendor's answer to a message.
	answerTimeout = 20 * time.Second
	// drainTimeout bounds the wait, when a connection ends, for calls under way.
	drainTimeout = 15 * time.Second
	// dialTimeout bounds connecting and the TLS handshake, each.
	dialTimeout = 10 * time.Second
	// unlinkTimeout bounds the vendor's answer to an unlink.
	unlinkTimeout = 20 * time.Second
	// cleanupTimeout bounds removing keys that must not stay.
	cleanupTimeout = 10 * time.Second
	// lastWords is how long a closed socket may take to be explained by a stanza
	// that came before it: whatsmeow reports both at the same time.
	lastWords = 100 * time.Millisecond
	// restartWait bounds the vendor's order to reconnect after a pairing.
	restartWait = 10 * time.Second
	// missedPings is how many unanswered pings end a connection. whatsmeow pings
	// every 20 to 30 s and waits 10 s, so the second miss is 60 to 80 s of silence.
	missedPings = 2
	// staleTries bounds how often a message is encrypted anew because its
	// recipient wrote at that moment.
	staleTries = 5
	// parallelRetries bounds answers to recipients who could not read a message.
	parallelRetries = 4

	maxName   = 256 // runes of a contact's name
	maxID     = 256 // bytes of a network id
	maxDigits = 20  // of a number or LID
	// maxUnreadable bounds the ids remembered in order to report each once.
	maxUnreadable = 1024
)

// pace holds the waits that tests shorten.
type pace struct {
	silence   time.Duration // without progress towards a live session
	firstCode time.Duration // that the first code is shown
	nextCode  time.Duration // that each further code is shown

	pairingCode time.Duration // that a code to enter on a phone is shown
	passkey     time.Duration // that an attempt whose account wants a passkey stays open
}

// defaultPace follows the vendor's own web client for the codes.
func defaultPace() pace {
	return pace{silence: 30 * time.Second, firstCode: 60 * time.Second, nextCode: 20 * time.Second, pairingCode: pairingTime, passkey: time.Minute}
}
