package postern

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Ids are opaque to callers: a prefix and a ULID. The ULID's 80 random bits
// come from crypto/rand, so that an id cannot be guessed.
type (
	// WorkspaceID names a workspace, the tenant boundary.
	WorkspaceID string
	// KeyID names an API key.
	KeyID string
	// DeviceID names a device.
	DeviceID string
	// LinkID names a link attempt.
	LinkID string
	// MessageID names a message, inbound or outbound.
	MessageID string
	// EventID names an event; consumers deduplicate on it.
	EventID string
	// EndpointID names a webhook endpoint.
	EndpointID string
	// DeliveryID names the delivery of one event to one endpoint.
	DeliveryID string
	// ReplayID names a replay.
	ReplayID string
	// UserID names a person who signs in.
	UserID string
	// InvitationID names an invitation to a workspace.
	InvitationID string
)

// NewWorkspaceID makes a fresh id.
func NewWorkspaceID() WorkspaceID { return WorkspaceID(newID("ws_")) }

// NewKeyID makes a fresh id.
func NewKeyID() KeyID { return KeyID(newID("key_")) }

// NewDeviceID makes a fresh id.
func NewDeviceID() DeviceID { return DeviceID(newID("dev_")) }

// NewLinkID makes a fresh id.
func NewLinkID() LinkID { return LinkID(newID("lnk_")) }

// NewMessageID makes a fresh id.
func NewMessageID() MessageID { return MessageID(newID("msg_")) }

// NewEventID makes a fresh id.
func NewEventID() EventID { return EventID(newID("evt_")) }

// NewEndpointID makes a fresh id.
func NewEndpointID() EndpointID { return EndpointID(newID("whk_")) }

// NewDeliveryID makes a fresh id.
func NewDeliveryID() DeliveryID { return DeliveryID(newID("dlv_")) }

// NewReplayID makes a fresh id.
func NewReplayID() ReplayID { return ReplayID(newID("rpl_")) }

// NewUserID makes a fresh id.
func NewUserID() UserID { return UserID(newID("usr_")) }

// NewInvitationID makes a fresh id.
func NewInvitationID() InvitationID { return InvitationID(newID("inv_")) }

// NewRequestID makes a fresh id for one API request.
func NewRequestID() string { return newID("req_") }

func newID(prefix string) string {
	return prefix + ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String()
}

// NewNetworkID chooses the id a message will have on the network. It has the
// form the vendor's own web client uses (3EB0 and 18 hex digits), so that
// nothing tells our messages apart.
func NewNetworkID() string {
	var b [9]byte
	rand.Read(b[:]) // never fails (Go 1.24)
	return "3EB0" + strings.ToUpper(hex.EncodeToString(b[:]))
}
