package networktest

import (
	"context"
	"time"

	"postern/internal/postern"
)

// Vendor is the far side of a driver: the network and everybody's phones. An
// account is named by its number.
type Vendor interface {
	// Scan lets the phone of a number scan a code.
	Scan(ctx context.Context, code, number string) error
	// EnterCode lets the owner of a number enter a code on the phone.
	EnterCode(ctx context.Context, code, number string) error
	// Send lets a contact write to an account.
	Send(ctx context.Context, account, from, body string) (networkID string, err error)
	// Type lets the owner of an account write on the phone.
	Type(ctx context.Context, account, to, body string) (networkID string, err error)
	// Attach lets a contact send a document with a file to an account.
	Attach(ctx context.Context, account, from string, data []byte) (networkID string, err error)
	// File returns the file of a message that a phone shows, as the phone reads it.
	File(number, networkID string) ([]byte, error)
	// Receipt lets the recipient of a message confirm it.
	Receipt(ctx context.Context, account, networkID string, status postern.MessageStatus) error
	// Fault makes something go wrong for an account.
	Fault(ctx context.Context, account string, fault Fault) error
	// Shown is what a phone shows, oldest first.
	Shown(number string) []Shown
}

// Shown is one message on a phone.
type Shown struct {
	ID   string
	Body string
	At   time.Time
}

// Fault is something that goes wrong for an account.
type Fault string

// The faults every vendor in a test can make.
const (
	FaultDrop          Fault = "drop"            // the connection is cut
	FaultDropBeforeAck Fault = "drop-before-ack" // the next message arrives, then the connection is cut
	FaultLogout        Fault = "logout"          // the owner removes the companion
	FaultBan           Fault = "ban"             // for good
	FaultRestrict      Fault = "restrict"        // for a minute
	FaultConflict      Fault = "conflict"        // as if the companion had connected elsewhere
	FaultRefuse        Fault = "refuse"          // the next connection is not served

	FaultUpload       Fault = "upload"        // the next upload is refused
	FaultMedia        Fault = "media"         // the next download finds no file
	FaultMediaExpired Fault = "media-expired" // the files stored so far are only on the phone
	FaultMediaGone    Fault = "media-gone"    // the phone does not have the next file that is asked for
	FaultMediaSilent  Fault = "media-silent"  // the phone does not answer the next request for a file
)

// NumberUnknown is on no network.
const NumberUnknown = "+15005550001"
