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
	"time"

	"postern/internal/postern"
)

// Driver connects to one messaging network. Its methods may be called from any
// goroutine.
type Driver interface {
	// Name is the short name of the network, such as "whatsapp".
	Name() string

	// Link shows codes to the host until a phone has scanned one. It reports
	// each [Code], then [Scanned] before any key is stored, then [Paired] once
	// the account's keys are durable, and returns nil. It returns a [*LinkError]
	// if no phone came, if the host refused the account, or if ctx is done.
	//
	// With a number, "+" and digits, there is one code, which the owner enters
	// on the phone; a wrong one ends the attempt with "wrong-code".
	Link(ctx context.Context, host Host, number string) error

	// Open prepares a session for a linked account, as named by [Paired]. It
	// does no network I/O. [ErrUnknownAccount] means that its keys are gone.
	Open(ctx context.Context, account string) (Session, error)

	// Forget removes the account's keys. It succeeds if there are none.
	Forget(ctx context.Context, account string) error
}

// Session is the connection of one linked account.
type Session interface {
	// Run connects once and reports to host until the connection ends. It
	// returns after everything that it started has ended: an [*Ended], or nil if
	// ctx was done. It may be called again, but not concurrently.
	Run(ctx context.Context, host Host) error

	// Send hands m to the network and waits for the answer until ctx is done. It
	// returns the network's time of the message. A [*Rejected] is final.
	// [ErrNotConnected] means that no frame was sent. After any other error the
	// outcome is unknown, and m may be sent again under the same id.
	Send(ctx context.Context, m Outbound) (time.Time, error)

	// Unlink removes this companion from the account. It needs a live
	// connection.
	Unlink(ctx context.Context) error
}

// Host is the gateway's side of a session or of a link attempt.
type Host interface {
	// Update takes one update. An error means that the update is not stored:
	// the driver must not acknowledge it, so that the network sends it again.
	Update(ctx context.Context, u Update) error

	// Outbound returns a message that this account sent, for a recipient who
	// could not read it and asks for it again. It reports false if there is none.
	Outbound(ctx context.Context, networkID string) (Outbound, bool)

	// Proxy is the URL of the proxy to the network, with credentials; "" means a
	// direct connection. It is called once per connection.
	Proxy() string
}

// Outbound is a message to send.
type Outbound struct {
	NetworkID string // chosen by the gateway before the first attempt
	ChatID    string // "+" and digits, or "lid:" and digits
	Content   postern.Content
}

var (
	// ErrUnknownAccount means that there are no keys of the account.
	ErrUnknownAccount = errors.New("there are no keys of this account")
	// ErrNotConnected means that there is no live connection; nothing was sent.
	ErrNotConnected = errors.New("the session is not connected")
)

// Rejected is a final refusal of a message.
type Rejected struct {
	Code   postern.FailureCode
	Detail string // for people; contains no number and no text
}

func (r *Rejected) Error() string { return string(r.Code) + ": " + r.Detail }

// Ended says why a connection ended, and in which state the account is now.
type Ended struct {
	Status postern.Status // Disconnected, LoggedOut, Banned, Restricted or Conflict
	Reason string         // short and stable, such as "socket-closed"
	Until  time.Time      // for Restricted: when to try again; zero if unknown
}

func (e *Ended) Error() string { return string(e.Status) + ": " + e.Reason }

// LinkError says why a link attempt ended without a link.
type LinkError struct {
	Reason  string // short and stable: "timeout", "refused", "socket-closed", …
	Expired bool   // no phone scanned a code in time
}

func (e *LinkError) Error() string { return "link: " + e.Reason }

// Update is an event on the network.
//
//sumtype:decl
type Update interface{ update() }

type (
	// Code is the text of a QR code, or the code to enter on a phone. It is
	// valid until Expires.
	Code struct {
		Text    string
		Expires time.Time
	}

	// PasskeyWanted reports that the network asks the owner for a passkey before
	// the link attempt continues. Earlier codes are no longer valid.
	PasskeyWanted struct{}

	// Scanned reports which account scanned the code. An error from the host
	// refuses the account: none of its keys are stored.
	Scanned struct {
		Account string // the driver's own name for the link, for [Driver.Open]
		Number  string // "+" and digits
	}

	// Paired reports that the account's keys are durable.
	Paired struct {
		Account     string
		Number      string
		DisplayName string
	}

	// Live reports proof that messages flow: the network has delivered
	// everything that was waiting.
	Live struct{ DisplayName string }

	// Inbound is a message from a contact.
	Inbound struct {
		NetworkID string
		Sender    string // the network's most stable name for the sender; part of the message's identity
		ChatID    string
		From      string // "+" and digits; "" while the network hides the number
		FromLID   string // digits; "" if there is none
		FromName  string
		Content   postern.Content
		At        time.Time
	}

	// Echo is a message that the account sent from the phone or from another
	// companion.
	Echo struct {
		NetworkID string
		ChatID    string
		To        string // "+" and digits; "" while the network hides the number
		Content   postern.Content
		At        time.Time
	}

	// Undecryptable is a message that could not be decrypted. The network was
	// asked to send it again.
	Undecryptable struct {
		NetworkID string
		Sender    string
		ChatID    string
		From      string
		FromLID   string
		At        time.Time
	}

	// Receipt reports the progress of outbound messages: postern.Delivered or
	// postern.Read.
	Receipt struct {
		NetworkIDs []string
		Status     postern.MessageStatus
		At         time.Time
	}
)

func (Code) update()          {}
func (PasskeyWanted) update() {}
func (Scanned) update()       {}
func (Paired) update()        {}
func (Live) update()          {}
func (Inbound) update()       {}
func (Echo) update()          {}
func (Undecryptable) update() {}
func (Receipt) update()       {}
