// Package network is the interface between the gateway and a messaging network.
//
// A [Driver] links accounts and opens a [Session] for each linked one. The
// gateway acts through [Session.Send] and [Session.Unlink]; everything that
// happens on the network reaches it as an [Update] through its [Host]. A driver
// never decides what an update means for a customer, and never reconnects by
// itself: the session engine does both.
package network

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"postern/internal/postern"
)

// SendTimeout bounds one [Session.Send]. A driver ends a send by itself before that, so
// that no send is interrupted from outside while its answer may be arriving.
const SendTimeout = 30 * time.Second

// ProcessingFrame is what [Host.Processing] gets while bytes of the network are decoded.
const ProcessingFrame = "frame"

// Driver connects to one messaging network. Its methods may be called from any
// goroutine.
type Driver interface {
	// Name returns the short name of the network, such as "whatsapp".
	Name() string

	// Link sends codes to the host until a phone has scanned one. It reports
	// each [Code], then [Scanned] before any key is stored, then [Paired] once
	// the account's keys are durable, and returns nil. It returns a [*LinkError]
	// if no phone scanned a code in time, if the host refused the account, or if
	// ctx is done.
	//
	// With a number, written as "+" and digits, there is a single code, which
	// the owner enters on the phone. A wrong code ends the attempt with the
	// reason "wrong-code". If number is "", there are QR codes.
	//
	// If the network asks for the passkey of the account, Link reports
	// [PasskeyWanted] and sends what [LinkHost.Credential] returns. If the owner
	// has to compare a code after that, it reports [CompareCode] and waits for
	// [LinkHost.Confirmed].
	Link(ctx context.Context, host LinkHost, number string) error

	// Open prepares a session for a linked account, which [Paired] has named. It
	// does no network I/O. It returns [ErrUnknownAccount] if the account's keys
	// are not stored.
	Open(ctx context.Context, account string) (Session, error)

	// Forget removes the account's keys. It returns nil if the account has no keys.
	Forget(ctx context.Context, account string) error
}

// Session is the connection of one linked account.
type Session interface {
	// Run connects once and reports to host until the connection ends. It
	// returns after all its goroutines have ended: an [*Ended], or nil if ctx
	// was done. It may be called again, but not concurrently.
	Run(ctx context.Context, host Host) error

	// Send sends m and waits for the network's answer until ctx is done. It
	// returns the network's time of the message. A [*Rejected] is final.
	// [ErrNotConnected] means that nothing was sent, and so does an error of m.Leave, which
	// Send returns. After any other error the outcome is unknown, and m may be sent again with
	// the same NetworkID.
	Send(ctx context.Context, m Outbound) (time.Time, error)

	// Upload hands a file to the network, for messages of a kind. What it returns is part of
	// each message with this file, for as long as the network keeps the file. The errors are
	// those of Send.
	Upload(ctx context.Context, f File) (Ref, error)

	// Download writes the file of a received message to dst, and nothing else: its content is
	// what the sender hashed. [ErrMediaGone] means that the network does not have the file, or
	// has another one; the account's phone may upload it again. [ErrMediaUseless] is final.
	// After any other error, Download may be called again with an empty dst.
	Download(ctx context.Context, ref Ref, dst *os.File) error

	// RequestMedia asks the account's phone to upload the file of a received message again. An
	// [Offered] answers it, possibly much later or never. Errors are those of Send.
	RequestMedia(ctx context.Context, m MediaRequest) error

	// ReadHistory reads a part of the phone's history. It keeps what the account needs to write to people, and passes the
	// messages to r. It may be called again after any error. [ErrMediaGone] and [ErrMediaUseless] are final.
	ReadHistory(ctx context.Context, ref Ref, r HistoryReader) error

	// AskHistory asks the account's phone for older messages of a chat. A [HistoryOffered] answers it, possibly much later
	// or never. Errors are those of [Groups].
	AskHistory(ctx context.Context, q HistoryRequest) error

	// Groups reads and changes the groups of the account.
	Groups() Groups

	// Channels follows channels.
	Channels() Channels

	// Profile reads and changes what the network shows others of the account.
	Profile() Profile

	// People reads what the network shows the account of others, and changes whom it has blocked.
	People() People

	// Presence shows others that the account is there, and asks what they show.
	Presence() Presence

	// CheckNumbers asks which of the numbers are on the network, and returns one answer for each. Its errors are those of
	// [Groups].
	CheckNumbers(ctx context.Context, numbers []string) ([]postern.CheckedNumber, error)

	// Typing shows in a chat that the account types or records, or no longer does. Nobody confirms it. It finds the person as
	// Send does; a [*Rejected] means that there is none.
	Typing(ctx context.Context, chat string, t postern.Typing) error

	// RejectCall rejects a call that rings. [ErrNoSuchCall] means that it does not.
	RejectCall(ctx context.Context, callID string) error

	// ChangeChat changes what the account has set for a chat, and reports that as [ChatsSet] or [LabelsSet] before it
	// returns. A [*Rejected] means that nothing was changed.
	ChangeChat(ctx context.Context, chat string, c ChatChange) error

	// ChangeLabel makes, changes or deletes a label of the account, and reports that as [LabelsSet] before it returns. A
	// [*Rejected] means that nothing was changed.
	ChangeLabel(ctx context.Context, l postern.LabelEdit) error

	// Unlink removes this companion from the account. It requires a live
	// connection.
	Unlink(ctx context.Context) error
}

// Host is the gateway's side of a session or of a link attempt.
type Host interface {
	// Update stores one update. If it returns an error, the update is not stored
	// and the driver must not acknowledge it, so that the network sends it again.
	Update(ctx context.Context, u Update) error

	// Outbound returns a message that this account has sent, for a recipient who
	// could not decrypt it and asks for it again. It returns false if there is no
	// such message. After an error the driver must not acknowledge the request, so that
	// the network repeats it.
	Outbound(ctx context.Context, networkID string) (Outbound, bool, error)

	// Processing notes what the driver begins to process for this account, such as
	// "frame"; "" means that it is done. Some of what a network sends can end the
	// process, and the note outlives it. It must return at once.
	Processing(what string)

	// Proxy returns the URL of the proxy to the network, with credentials, or ""
	// for a direct connection. The driver calls it once per connection.
	Proxy() string

	// Space names the number space of the account on a simulated network that has several:
	// the same number in two spaces is two accounts. Real networks have one.
	Space() string
}

// LinkHost is the gateway's side of a link attempt. Its methods may be called after the update that asks for them.
type LinkHost interface {
	Host

	// Credential waits for the owner's answer to [PasskeyWanted]. It returns an error if the attempt ends first.
	Credential(ctx context.Context) (postern.PasskeyCredential, error)

	// Confirmed waits until the owner has compared the code of [CompareCode]. It returns an error if the attempt ends
	// first.
	Confirmed(ctx context.Context) error
}

// Outbound is a message to send.
type Outbound struct {
	NetworkID string // chosen by the gateway before the first attempt
	ChatID    string // "+", "lid:", "group:" or "channel:" and digits, or "status"
	Content   postern.Content
	Quote     *Quote      // the message to which it replies; nil for none
	Target    *Quote      // the message that an action is about; nil for a message
	File      *Attachment // the file of a message that carries one
	Picture   []byte      // of the content's LinkPreview: a small JPEG; nil for none
	Timer     Timer       // of the chat
	At        time.Time   // when it was accepted

	// Leave waits until it is recorded that m may leave; nil: it may. It returns an error if m
	// must not leave. A driver calls it as late as possible before the first frame that contains
	// m, and may call it several times: what it does before then costs no time.
	Leave func() error

	// Book returns the address book of the account as it was last reported. A driver calls it for a status post, which
	// goes to the people in it.
	Book func(context.Context) ([]postern.BookEntry, error)

	// Reach is told, before m leaves, how many others of a group get it. It may be nil, and is not called for a message
	// to one person.
	Reach func(people int)
}

// MayLeave calls Leave.
func (m Outbound) MayLeave() error {
	if m.Leave == nil {
		return nil
	}
	return m.Leave()
}

// Timer is after how long the messages of a chat disappear on the phones. A message without the
// chat's timer makes phones tell that the timers differ.
type Timer struct {
	Seconds int       // 0: never
	Since   time.Time // when somebody set it
}

// Ref is how a driver finds a file on its network and reads it. It contains the file's key, so
// it must be kept encrypted. Its form is the driver's own, except that it may be a JSON object
// whose member thumbnail is a small JPEG of a received video, in base64.
type Ref []byte

// File is a file to upload.
type File struct {
	Kind    postern.Kind // of the message that will carry it
	Body    io.ReaderAt
	Size    int64  // bytes
	Scratch string // directory for a temporary copy of a large file
	Posted  bool   // the message is a post in a channel; then the file is not encrypted
}

// Attachment is the file of a message to send.
type Attachment struct {
	Ref       Ref
	MIMEType  string
	Thumbnail []byte // JPEG; nil for none
	Waveform  []byte // of a voice message: 64 values from 0 to 100; nil if it is not known
	Animated  bool   // of a sticker
}

// ChatChange is what an account sets for a chat. Nil is left as it is.
type ChatChange struct {
	Archived   *bool
	MutedUntil *postern.Time // 0: it is not muted; [postern.MutedForEver]
	Last       *Quote        // the newest message of the chat; nil if there is none
	LastAt     time.Time     // when that was sent
	LabelID    string        // of a label that it puts on the chat or takes off; "" for none
	Labeled    bool
}

// ChatSetting is what an account has set for a chat. Nil is left as it is.
type ChatSetting struct {
	ChatID     string
	Archived   *bool
	MutedUntil *postern.Time // as in [ChatChange]
	ReadUntil  time.Time     // it has read what was sent until then; zero if it has not marked the chat as read
}

// MediaRequest names a received message whose file is wanted again.
type MediaRequest struct {
	NetworkID string
	ChatID    string
	FromMe    bool   // the account wrote it
	Author    string // who wrote it otherwise, as in [Quote]; needed in groups and for status posts
	Ref       Ref
}

// Quote names a message of the same chat, to which another one replies or which an action
// is about.
type Quote struct {
	NetworkID string
	FromMe    bool   // the account wrote it
	Author    string // who wrote it otherwise: "lid:" and digits, or a number
	Content   postern.Content
}

var (
	// ErrUnknownAccount means that no keys of the account are stored.
	ErrUnknownAccount = errors.New("there are no keys of this account")
	// ErrMediaGone means that the network does not have a file, or has another one.
	ErrMediaGone = errors.New("the network no longer has the file")
	// ErrMediaTooLarge means that a file is larger than [postern.MaxMedia].
	ErrMediaTooLarge = errors.New("the file is too large")
	// ErrMediaUseless means that what is known of a file can never lead to it.
	ErrMediaUseless = errors.New("the message does not describe its file completely")
	// ErrNotConnected means that there is no live connection and nothing was sent.
	ErrNotConnected = errors.New("the session is not connected")
)

// Rejected is the error of a message that the network has finally refused.
type Rejected struct {
	Code   postern.FailureCode
	Detail string // for users; contains no phone number and no text of the message
}

func (r *Rejected) Error() string { return string(r.Code) + ": " + r.Detail }

// Ended is the error of a connection that has ended. It contains the status of the
// account.
type Ended struct {
	Status postern.Status // Disconnected, LoggedOut, Banned, Restricted or Conflict
	Reason string         // short and stable, such as "socket-closed"
	Until  time.Time      // for Restricted: when to try again; zero if unknown
}

func (e *Ended) Error() string { return string(e.Status) + ": " + e.Reason }

// LinkError is the error of a link attempt that ended without a link.
type LinkError struct {
	Reason  string // short and stable: "timeout", "refused", "socket-closed", …
	Expired bool   // no phone used a code in time
}

func (e *LinkError) Error() string { return "link: " + e.Reason }

// Update is an event on the network.
//
//sumtype:decl
type Update interface{ update() }

type (
	// Code is the text of a QR code or the code to enter on the phone. It is
	// valid until Expires.
	Code struct {
		Text    string
		Expires time.Time
	}

	// PasskeyWanted reports that the network asks the account's owner for a
	// passkey before the link attempt continues. Earlier codes are no longer valid.
	PasskeyWanted struct{ Options postern.PasskeyOptions }

	// CompareCode is a code that the phone shows too, for the owner to compare.
	CompareCode struct{ Text string }

	// Scanned reports which account scanned the code. If the host returns an
	// error, the account is refused and none of its keys are stored.
	Scanned struct {
		Account string // the driver's name of the account, for [Driver.Open]
		Number  string // "+" and digits
	}

	// Paired reports that the account's keys are durable.
	Paired struct {
		Account     string
		Number      string
		DisplayName string
	}

	// Live reports that the session is live: the network has delivered all
	// messages that were waiting.
	Live struct{ DisplayName string }

	// Inbound is a message from a contact.
	Inbound struct {
		NetworkID string
		Sender    string // the network's most stable name for the sender; part of the message's identity
		ChatID    string
		From      string // "+" and digits; "" while the network hides the number
		FromLID   string // digits; "" if there is none
		FromName  string

		BusinessName string // that the network has verified; "" for a person
		Content      postern.Content
		File         Ref    // of the file that the content's Media describes; nil for none
		QuoteOf      string // network id of the message to which it replies; "" for none
		About        string // network id of the message that an action is about; "" for a message
		BetterOf     string // network id of the picture or video of which this is a better copy; "" for none
		At           time.Time
		Arrived      time.Time // when it was read from the socket, by this machine's clock; zero if unknown
	}

	// Echo is a message that the account sent from the phone or from another
	// companion.
	Echo struct {
		NetworkID string
		Companion bool // it was sent from another companion, not from the phone
		ChatID    string
		To        string // "+" and digits; "" while the network hides the number
		Content   postern.Content
		File      Ref    // of the file that the content's Media describes; nil for none
		QuoteOf   string // network id of the message to which it replies; "" for none
		About     string // network id of the message that an action is about; "" for a message
		BetterOf  string // network id of the picture or video of which this is a better copy; "" for none
		At        time.Time
		Arrived   time.Time // as in [Inbound]
	}

	// Undecryptable is a message that could not be read.
	Undecryptable struct {
		NetworkID string
		Sender    string
		ChatID    string
		From      string
		FromLID   string
		Why       postern.FailureCode // postern.DecryptionFailed: the network was asked to send it again
		At        time.Time
	}

	// Starred reports that the account has starred a message elsewhere, or has taken its star away. A
	// driver may report the same change again, and may report changes that were sent with
	// [Session.Send].
	Starred struct {
		ChatID string
		About  string // network id of the message
		On     bool
		At     time.Time // of a change that was sent with Send: the Outbound's
	}

	// ReadElsewhere reports up to which messages of a chat the account has read on its phone or on another companion.
	// A driver may report it again.
	ReadElsewhere struct {
		ChatID     string
		NetworkIDs []string // the newest of these
	}

	// ChatsSet reports what the account has set for chats, here or elsewhere. A driver may report it again.
	ChatsSet struct{ Chats []ChatSetting }

	// LabelsSet reports the labels of the account, and on which chats it has put them, here or elsewhere. A driver may report
	// it again.
	LabelsSet struct{ postern.LabelChanges }

	// AddressBook reports names in the address book of the account's phone. A driver may report it again.
	AddressBook struct{ postern.AddressBook }

	// Disappearing reports the timer of a chat.
	Disappearing struct {
		ChatID string
		Timer  Timer
	}

	// Offered is the phone's answer to [Session.RequestMedia].
	Offered struct {
		NetworkID string // of the message with the file
		Ref       Ref    // nil: the phone does not have the file either
	}

	// Receipt reports the progress of outbound messages: postern.Delivered,
	// postern.Read or postern.Played.
	Receipt struct {
		NetworkIDs []string
		Chats      []string // the names of the chat with the one who confirms; others' messages are not meant
		Member     string   // who confirms in a group: "lid:" and digits, or a number; "" in a direct chat
		Number     string   // of the member: "+" and digits; "" while the network hides it
		Status     postern.MessageStatus
		At         time.Time
	}
)

func (Code) update()          {}
func (PasskeyWanted) update() {}
func (CompareCode) update()   {}
func (Scanned) update()       {}
func (Paired) update()        {}
func (Live) update()          {}
func (Inbound) update()       {}
func (Echo) update()          {}
func (Undecryptable) update() {}
func (Receipt) update()       {}
func (Offered) update()       {}
func (Disappearing) update()  {}
func (Starred) update()       {}
func (ReadElsewhere) update() {}
func (ChatsSet) update()      {}
func (LabelsSet) update()     {}
func (AddressBook) update()   {}
