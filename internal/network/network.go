// Package network is the seam between the gateway and a messaging network.
//
// A [Driver] links accounts and opens a [Session] for each linked one. What
// happens on the network reaches the gateway as an [Update] through its [Host];
// the gateway acts through [Session.Send] and [Session.Unlink]. Nothing else
// crosses. A driver never decides what an update means for a customer, and
// never reconnects by itself: the session engine does both.
package network

import (
	"context"
	"errors"
	"time"

	"postern/internal/postern"
)

// Driver knows one messaging network.
type Driver interface {
	// Name is the short name of the network, such as "whatsapp".
	Name() string

	// Link shows codes to the host until a phone scanned one. It reports each
	// [Code], then [Scanned] before anything is kept, then [Paired] once the
	// account's keys are durable, and returns nil. It ends with a [*LinkError]
	// when no phone came, when the host refused the account, or when ctx is
	// done.
	//
	// With a number, "+" and digits, there is one code, for its owner to enter on
	// the phone; a wrong one ends the attempt with "wrong-code".
	Link(ctx context.Context, host Host, number string) error

	// Open prepares a session for a linked account, as named by [Paired]. It
	// does no network I/O. [ErrUnknownAccount] means that its keys are gone.
	Open(ctx context.Context, account string) (Session, error)

	// Forget removes the account's keys. Forgetting twice is no error.
	Forget(ctx context.Context, account string) error
}

// Session is the connection of one linked account.
type Session interface {
	// Run connects once and reports to host until the connection ends. It
	// returns an [*Ended], or nil when ctx was done, after all that it started
	// has ended. It may be called again, never twice at a time.
	Run(ctx context.Context, host Host) error

	// Send hands m to the network and waits for its answer, at most until ctx
	// is done. It returns the network's time. A [*Rejected] is final;
	// [ErrNotConnected] means that no frame left; after any other error the
	// outcome is unknown and m may be sent again under the same id.
	Send(ctx context.Context, m Outbound) (time.Time, error)

	// Unlink removes this companion from the account. It needs a live
	// connection.
	Unlink(ctx context.Context) error
}

// Host is the gateway's side of a session or of a link attempt.
type Host interface {
	// Update takes one update. An error means that it is not stored: the
	// driver must then not acknowledge it, so that the network sends it again.
	Update(ctx context.Context, u Update) error

	// Outbound finds a message that this account sent, for a recipient who
	// could not read it and asks again.
	Outbound(ctx context.Context, networkID string) (Outbound, bool)

	// Proxy is the URL through which the network is dialled, with its
	// credentials; "" dials directly. It is asked once per connection.
	Proxy() string
}

// Outbound is a message to send.
type Outbound struct {
	NetworkID string // chosen by the gateway before the first attempt
	ChatID    string // "+" and digits, or "lid:" and digits
	Body      string
}

var (
	// ErrUnknownAccount means that no keys are kept for the account.
	ErrUnknownAccount = errors.New("no keys are kept for this account")
	// ErrNotConnected means that there is no live connection; nothing was sent.
	ErrNotConnected = errors.New("the session is not connected")
)

// Rejected is a final refusal of a message.
type Rejected struct {
	Code   postern.FailureCode
	Detail string // for people, without numbers or text
}

func (r *Rejected) Error() string { return string(r.Code) + ": " + r.Detail }

// Ended says why a connection ended and what state the account is in now.
type Ended struct {
	Status postern.Status // Disconnected, LoggedOut, Banned, Restricted or Conflict
	Reason string         // short and stable, such as "socket-closed"
	Until  time.Time      // for Restricted: when to try again
}

func (e *Ended) Error() string { return string(e.Status) + ": " + e.Reason }

// LinkError says why a link attempt ended without a link.
type LinkError struct {
	Reason  string // short and stable: "timeout", "refused", "socket-closed", …
	Expired bool   // no phone scanned a code in time
}

func (e *LinkError) Error() string { return "link: " + e.Reason }

// Update is something that happened on the network.
//
//sumtype:decl
type Update interface{ update() }

type (
	// Code is the text of a QR code, or the code to enter on a phone, to show
	// until Expires.
	Code struct {
		Text    string
		Expires time.Time
	}

	// PasskeyWanted reports that the network asks the owner for a passkey before
	// the link attempt goes on. Codes shown before are good for nothing any more.
	PasskeyWanted struct{}

	// Scanned reports which account scanned the code. An error from the host
	// refuses the account: no key of it is kept.
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

	// Live reports proof that messages flow: the network has handed over all
	// that was waiting.
	Live struct{ DisplayName string }

	// Inbound is a message that a contact wrote.
	Inbound struct {
		NetworkID string
		Sender    string // the network's most stable name for the sender; part of what identifies the message
		ChatID    string
		From      string // "+" and digits; "" while the network hides the number
		FromLID   string // digits; "" when there is none
		FromName  string
		Type      string // postern.TypeText or postern.TypeUnsupported
		Body      string
		At        time.Time
	}

	// Echo is a message that the account sent elsewhere, on the phone or on
	// another companion.
	Echo struct {
		NetworkID string
		ChatID    string
		To        string
		Type      string
		Body      string
		At        time.Time
	}

	// Undecryptable is a message that could not be read; the network was asked
	// to send it again.
	Undecryptable struct {
		NetworkID string
		Sender    string
		ChatID    string
		From      string
		FromLID   string
		At        time.Time
	}

	// Receipt reports how far outbound messages got: postern.Delivered or
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
