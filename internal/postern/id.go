// Package postern defines the nouns of the gateway: workspaces, keys, devices, link
// attempts, messages, events, webhook endpoints and deliveries, with their states, ids
// and limits, and the one error type that a caller may see.
//
// It does no I/O. The JSON fields of a noun are its form in the API; fields tagged "-"
// never leave the process.
package postern

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Ids are opaque to callers: a prefix and a ULID. The ULID's 80 random bits come from
// crypto/rand, so ids cannot be guessed.
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
	// MediaID names a file that was uploaded, or that came with a message.
	MediaID string
	// InvitationID names an invitation to a workspace.
	InvitationID string
	// ContactID names a person on the network whom devices of a workspace know.
	ContactID string
)

// NewWorkspaceID generates an id.
func NewWorkspaceID() WorkspaceID { return WorkspaceID(newID("ws_")) }

// NewKeyID generates an id.
func NewKeyID() KeyID { return KeyID(newID("key_")) }

// NewDeviceID generates an id.
func NewDeviceID() DeviceID { return DeviceID(newID("dev_")) }

// NewLinkID generates an id.
func NewLinkID() LinkID { return LinkID(newID("lnk_")) }

// NewMessageID generates an id.
func NewMessageID() MessageID { return MessageID(newID("msg_")) }

// NewEventID generates an id.
func NewEventID() EventID { return EventID(newID("evt_")) }

// NewEndpointID generates an id.
func NewEndpointID() EndpointID { return EndpointID(newID("whk_")) }

// NewDeliveryID generates an id.
func NewDeliveryID() DeliveryID { return DeliveryID(newID("dlv_")) }

// NewReplayID generates an id.
func NewReplayID() ReplayID { return ReplayID(newID("rpl_")) }

// NewUserID generates an id.
func NewUserID() UserID { return UserID(newID("usr_")) }

// NewMediaID generates an id.
func NewMediaID() MediaID { return MediaID(newID("med_")) }

// NewInvitationID generates an id.
func NewInvitationID() InvitationID { return InvitationID(newID("inv_")) }

// NewContactID generates an id.
func NewContactID() ContactID { return ContactID(newID("ct_")) }

// NewNodeID generates an id for a server.
func NewNodeID() string { return newID("node_") }

// NewRequestID generates an id for an API request.
func NewRequestID() string { return newID("req_") }

func newID(prefix string) string {
	return prefix + ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String()
}

// NewNetworkID generates the id of a message on the network. It has the form that the
// vendor's own web client uses (3EB0 and 18 hex digits), so that our messages look the
// same.
func NewNetworkID() string {
	var b [9]byte
	rand.Read(b[:]) // never fails (Go 1.24)
	return "3EB0" + strings.ToUpper(hex.EncodeToString(b[:]))
}

// The places for which values are encrypted. A value opens only in its own place, so the text of a place
// never changes. A new place needs a line among the columns of package secretkey, by which its values are
// encrypted again when the secret key is rotated.

// HeadersPlace is the place for which the endpoint's own headers are encrypted.
func (id EndpointID) HeadersPlace() string { return "endpoint.headers " + string(id) }

// SigningKeyPlace is the place for which the endpoint's ed25519 key is encrypted.
func (id EndpointID) SigningKeyPlace() string { return "endpoint.signing_key " + string(id) }

// SecretPlace is the place for which the gateway encrypts the endpoint's signing secret,
// and for which the dispatcher opens it.
func (id EndpointID) SecretPlace() string { return "endpoint.secret " + string(id) }

// AlertPlace is the place for which the address of the workspace's alerts is encrypted.
func (id WorkspaceID) AlertPlace() string { return "alert.url " + string(id) }

// ProxyPlace is the place for which the device's proxy is encrypted.
func (id DeviceID) ProxyPlace() string { return "device.proxy " + string(id) }

// CodePlace is the place for which the code of a link attempt is encrypted.
func (id LinkID) CodePlace() string { return "link.code " + string(id) }

// PasskeyPlace is the place for which is encrypted what a link attempt and the owner of a passkey tell each other.
func (id LinkID) PasskeyPlace() string { return "link.passkey " + string(id) }

// SourcePlace is the place for which is encrypted where a file is fetched, and what the network knows of it.
func (id MediaID) SourcePlace() string { return "media " + string(id) }

// AppPlace is the place for which the secret of the user's authenticator app is encrypted.
func (id UserID) AppPlace() string { return "totp " + string(id) }

// PasskeyPlace is the place for which a passkey of the user is encrypted.
func (id UserID) PasskeyPlace() string { return "passkey " + string(id) }

// AnswerPlace is the place for which the response to an idempotent request is encrypted.
func (id WorkspaceID) AnswerPlace(method, path, key string) string {
	return "idempotency.answer " + string(id) + " " + method + " " + path + " " + key
}

// RequestPlace is the place for which a request to a session, and its outcome, are encrypted.
func RequestPlace(id string) string { return "session_request " + id }

// PresencePlace is the place for which it is encrypted what servers tell each other of a device that somebody reads.
func PresencePlace(id DeviceID) string { return "presence " + string(id) }

// HistoryPlace is the place for which it is encrypted where a part of a phone's history is.
func HistoryPlace(device, networkID string) string { return "history_part " + device + " " + networkID }

// SessionKeyPlace is the place for which a key of an account is encrypted.
func SessionKeyPlace(account, kind, name string) string {
	return "session_key " + account + " " + kind + " " + name
}
