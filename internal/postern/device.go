package postern

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Status is the state of a device's session.
type Status string

// The device states, as in the contract.
const (
	Unlinked     Status = "unlinked"
	Linking      Status = "linking"
	Connecting   Status = "connecting"
	Connected    Status = "connected"
	Disconnected Status = "disconnected"
	Paused       Status = "paused"
	Restricted   Status = "restricted"
	Conflict     Status = "conflict"
	LoggedOut    Status = "logged_out"
	Banned       Status = "banned"
)

// Statuses lists the states.
func Statuses() []Status {
	return []Status{
		Connected, Connecting, Linking, Disconnected, Restricted, Conflict, LoggedOut, Banned, Paused, Unlinked,
	}
}

// HoldsSlot reports whether a device in this state counts towards the plan's limit of
// linked devices.
func (s Status) HoldsSlot() bool {
	switch s {
	case Linking, Connecting, Connected, Disconnected, Paused, Restricted, Conflict:
		return true
	case Unlinked, LoggedOut, Banned:
	}
	return false
}

// Desired is the state that the owner wants for a device. The session engine works
// towards it.
type Desired string

// The desired states.
const (
	WantIdle    Desired = "idle"    // nothing: not linked, or ended by the vendor
	WantLink    Desired = "link"    // a link attempt is open
	WantConnect Desired = "connect" // keep a live session
	WantUnlink  Desired = "unlink"  // remove the link at the vendor, keep the device
	WantDelete  Desired = "delete"  // remove the link at the vendor, then everything else
)

// Device is a linked messaging account, or one that waits to be linked.
type Device struct {
	ID              DeviceID          `json:"id" doc:"Opaque id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Status          Status            `json:"status" doc:"State of the session; sends can succeed while it is connected." enum:"unlinked,linking,connecting,connected,disconnected,paused,restricted,conflict,logged_out,banned" example:"connected"`
	Name            string            `json:"name" doc:"Name given by the owner." example:"Support"`
	StatusReason    Maybe             `json:"statusReason" nullable:"true" doc:"Why the device is in this state." example:"socket-closed"`
	RestrictedUntil Time              `json:"restrictedUntil" format:"date-time" nullable:"true" doc:"When the restriction ends, if the status is restricted and the network gave a time." example:"2026-11-21T10:00:00.000Z"`
	NewChats        NewChats          `json:"newChats" doc:"Whether the account may write to people who have never written to it."`
	Mode            string            `json:"mode" enum:"live,sandbox" doc:"Whether the account is on the real network or on the simulated one." example:"live"`
	PhoneNumber     Maybe             `json:"phoneNumber" nullable:"true" doc:"The account's number, once linked." example:"+15550001111"`
	DisplayName     Maybe             `json:"displayName" nullable:"true" doc:"The account's own name on the network." example:"Acme"`
	Metadata        map[string]string `json:"metadata" doc:"The owner's own labels."`
	Pace            *Pace             `json:"pace" nullable:"true" doc:"Sending rate; null means the operator's default."`
	Receive         Receive           `json:"receive" doc:"Which kinds of chats are stored and make events. The others are acknowledged to the network and dropped."`
	Queued          *int              `json:"queued,omitempty" minimum:"0" maximum:"1000" doc:"How many messages wait to be sent; 1,000 if there are more. Absent from events." example:"0"`
	CreatedAt       Time              `json:"createdAt" format:"date-time" nullable:"true" doc:"When the device was created." example:"2026-11-21T09:00:00.000Z"`
	LinkedAt        Time              `json:"linkedAt" format:"date-time" nullable:"true" doc:"When the account was linked; null if it never was." example:"2026-11-21T09:00:00.000Z"`
	ConnectedAt     Time              `json:"connectedAt" format:"date-time" nullable:"true" doc:"When the session last became connected." example:"2026-11-21T09:00:00.000Z"`
	LastSeenAt      Time              `json:"lastSeenAt" format:"date-time" nullable:"true" doc:"When the network was last heard from." example:"2026-11-21T09:00:00.000Z"`
	PhoneSeenAt     Time              `json:"phoneSeenAt" format:"date-time" nullable:"true" doc:"When the account's phone last did something that linked devices learn of, such as writing, reading or confirming a message; at most an hour out of date. The network removes the link of a phone that is not used for 14 days. Null if it is not known." example:"2026-11-21T09:00:00.000Z"`

	WorkspaceID WorkspaceID `json:"-"`
	Account     string      `json:"-"` // the network's name for the link; "" if not linked
	Desired     Desired     `json:"-"`
	Turn        int         `json:"-"` // increases when the work in progress for the device must start over
	Crashes     int         `json:"-"` // of the process, while it processed what the network sent to the device
	Proxy       []byte      `json:"-"` // encrypted URL of the proxy to the network; empty: none
}

// WithoutLink is the desired state of the device when no link attempt is open: unlink, as
// long as the network has not confirmed that the previous account is unlinked.
func (d Device) WithoutLink() Desired {
	if d.Account != "" {
		return WantUnlink
	}
	return WantIdle
}

// NewChats tells whether an account may start chats. The vendor keeps some accounts from it for a time.
type NewChats struct {
	Allowed bool `json:"allowed" doc:"False while the network does not let the account start chats. Replies still work." example:"true"`
	Until   Time `json:"until" format:"date-time" nullable:"true" doc:"When the account may start chats again; null if it may, or if the network gave no time." example:"2026-11-22T09:00:00.000Z"`
	// Slowed is how many times the pace for new chats is halved.
	Slowed Slowdown `json:"pacePercent" doc:"How much of the device's pace for new chats applies, in percent. It is halved, to 6 at the least, each time the network keeps the account from starting chats, and doubled after each day in which that did not happen." example:"100"`
}

// Slowdown is a number of halvings, from 0 to [MostSlowed]. In JSON it is the share that is left, in percent.
type Slowdown int

// MostSlowed is a sixteenth: the pace of 5 new chats per minute becomes 5 in 16 minutes.
const MostSlowed Slowdown = 4

// MarshalJSONTo writes the share in percent.
func (s Slowdown) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteToken(jsontext.Int(100 >> int64(s)))
}

// MarshalJSON is MarshalJSONTo for encoding/json.
func (s Slowdown) MarshalJSON() ([]byte, error) { return EncodeJSON(s) }

// UnmarshalJSON reads the share in percent.
func (s *Slowdown) UnmarshalJSON(b []byte) error {
	percent, err := strconv.Atoi(string(b))
	if err != nil || percent < 1 || percent > 100 {
		return fmt.Errorf("%q is not a share in percent", b)
	}
	for *s = 0; 100>>*s > percent; *s++ {
	}
	return nil
}

// Rate is a number per minute. Zero, which is null in JSON, means the operator's default.
type Rate int

// MarshalJSONTo writes a number, or null for zero.
func (r Rate) MarshalJSONTo(e *jsontext.Encoder) error {
	if r == 0 {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.Int(int64(r)))
}

// MarshalJSON is MarshalJSONTo for encoding/json.
func (r Rate) MarshalJSON() ([]byte, error) { return EncodeJSON(r) }

// Pace limits how fast a device sends. It never applies to a reply within 24 hours of an
// inbound message.
type Pace struct {
	PerMinute         Rate `json:"perMinute" nullable:"true" doc:"Messages in any 60 seconds; null means the operator's default." example:"30"`
	NewChatsPerMinute Rate `json:"newChatsPerMinute" nullable:"true" doc:"How many of these may start a new chat; null means the operator's default." example:"5"`
}

// Or returns p with its zero rates replaced by those of the default.
func (p *Pace) Or(def Pace) Pace {
	if p == nil {
		return def
	}
	return Pace{cmp.Or(p.PerMinute, def.PerMinute), cmp.Or(p.NewChatsPerMinute, def.NewChatsPerMinute)}
}

// MaxQueued is how far [Device.Queued] counts. Every list of devices counts, so it must be cheap.
const MaxQueued = 1000

// Receive says from which kinds of chats a device receives messages.
type Receive struct {
	Direct   bool      `json:"direct" doc:"Chats with one person." example:"true"`
	Groups   bool      `json:"groups" doc:"Groups." example:"true"`
	Channels bool      `json:"channels" doc:"Channels that the account follows." example:"false"`
	Status   bool      `json:"status" doc:"Status posts of contacts, which last for a day." example:"false"`
	Calls    bool      `json:"calls" doc:"Calls of contacts. Nobody answers them here; they are only reported." example:"true"`
	History  bool      `json:"history" doc:"What the phone had before the account was linked, as far as it sends it; these messages cause no events. Turn it on before you link the device." example:"false"`
	Media    MediaMode `json:"media" enum:"eager,lazy,off" doc:"When the files of received messages are fetched. eager: at once. lazy: when somebody asks for one. off: never; the message arrives without its file." example:"eager"`
	ViewOnce bool      `json:"viewOnce" doc:"Whether the files of messages that can be viewed once are kept, like other files. Without this, the message arrives without its file." example:"false"`
}

// DefaultReceive is the setting for devices whose owner has chosen none.
func DefaultReceive() Receive {
	return Receive{Direct: true, Groups: true, Calls: true, Media: MediaEager}
}

// MediaMode is when the files of received messages are fetched.
type MediaMode string

// The modes.
const (
	MediaEager MediaMode = "eager" // at once
	MediaLazy  MediaMode = "lazy"  // when somebody asks for the file
	MediaOff   MediaMode = "off"   // never
)

// LinkStatus is the state of a link attempt.
type LinkStatus string

// The states of a link attempt.
const (
	LinkPending LinkStatus = "pending"
	LinkPasskey LinkStatus = "passkey_required" // still open: the network asks for the owner's passkey
	LinkConfirm LinkStatus = "confirm"          // still open: the owner is to compare a code
	LinkLinked  LinkStatus = "linked"
	LinkExpired LinkStatus = "expired"
	LinkFailed  LinkStatus = "failed"
)

// Open reports whether an attempt in this state can still succeed.
func (s LinkStatus) Open() bool { return s == LinkPending || s == LinkPasskey || s == LinkConfirm }

// The link methods.
const (
	ByQR   = "qr"   // the phone scans a QR code
	ByCode = "code" // the owner enters a code on the phone
)

// Link is one attempt to link a device by showing a code to a phone.
type Link struct {
	ID               LinkID          `json:"id" doc:"Opaque id of the attempt." example:"lnk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	DeviceID         DeviceID        `json:"deviceId" doc:"The device that is to be linked." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Method           string          `json:"method" enum:"qr,code" doc:"qr: the phone scans the code. code: its owner enters it." example:"qr"`
	Status           LinkStatus      `json:"status" enum:"pending,passkey_required,confirm,linked,expired,failed" doc:"State of the attempt. It is open while pending, passkey_required or confirm." example:"pending"`
	QR               Maybe           `json:"qr" nullable:"true" doc:"Text of the QR code to show now. It changes; see qrExpiresAt."`
	QRExpiresAt      Time            `json:"qrExpiresAt" format:"date-time" nullable:"true" doc:"When the code to show changes." example:"2026-11-21T09:00:20.000Z"`
	PairingCode      Maybe           `json:"pairingCode" nullable:"true" doc:"Code to enter on the phone, when the method is code." example:"7KQ2-M4XB"`
	Passkey          *PasskeyRequest `json:"passkey" nullable:"true" doc:"What the network asks the browser of the owner for, while the status is passkey_required; null once it has an answer."`
	ConfirmationCode Maybe           `json:"confirmationCode" nullable:"true" doc:"Code that the phone shows too, while the status is confirm. The owner compares the two." example:"K7QM-2XB4"`
	ExpiresAt        Time            `json:"expiresAt" format:"date-time" nullable:"true" doc:"When the attempt ends if no phone has been linked." example:"2026-11-21T09:03:00.000Z"`
	Reason           Maybe           `json:"reason" nullable:"true" doc:"Why the attempt ended without a link." example:"timeout"`

	WorkspaceID WorkspaceID `json:"-"`
	PhoneNumber string      `json:"-"` // of the phone that the code is entered on
}

// PasskeyRequest is a network's request for the passkey of an account.
type PasskeyRequest struct {
	PublicKey PasskeyOptions `json:"publicKey" doc:"Options for navigator.credentials.get(), in the JSON form of WebAuthn: pass them to PublicKeyCredential.parseRequestOptionsFromJSON() on a page of the domain rpId."`
}

// PasskeyOptions are the PublicKeyCredentialRequestOptionsJSON of WebAuthn. They print as "***", because the challenge
// is a secret while it waits for its answer.
type PasskeyOptions struct {
	Challenge        string           `json:"challenge" doc:"What the passkey has to sign, in base64url." example:"qJ0v3oY1n7S2k9dPpXc5TgWlRzEaHbUiMfVyKmNtQsA"`
	Timeout          int              `json:"timeout" doc:"How long the network waits, in milliseconds." example:"600000"`
	Domain           string           `json:"rpId" doc:"Domain of the network, to which the passkey belongs. Browsers use it only on pages of this domain." example:"whatsapp.com"`
	AllowCredentials []PasskeyAllowed `json:"allowCredentials" nullable:"false" doc:"The passkeys that the network accepts; empty if the browser may offer any of the domain."`
	UserVerification string           `json:"userVerification" doc:"Whether the authenticator must verify its owner, by a PIN or a fingerprint." example:"required"`
	Extensions       map[string]any   `json:"extensions" nullable:"false" doc:"Extensions of WebAuthn that the network asks for."`
}

// String returns "***".
func (PasskeyOptions) String() string { return "***" }

// GoString returns "***".
func (PasskeyOptions) GoString() string { return "***" }

// PasskeyAllowed is a passkey that a network accepts.
type PasskeyAllowed struct {
	ID         string   `json:"id" doc:"Id of the credential, in base64url." example:"AY1kZ0mWq3c8T5uHn2xRbA"`
	Type       string   `json:"type" doc:"Always public-key." example:"public-key"`
	Transports []string `json:"transports" nullable:"false" doc:"How the authenticator can be reached." example:"[\"hybrid\",\"internal\"]"`
}

// PasskeyCredential is a browser's answer to a [PasskeyRequest]: the AuthenticationResponseJSON of WebAuthn. It prints
// as "***".
type PasskeyCredential struct {
	ID       string          `json:"id"`
	RawID    string          `json:"rawId"`
	Type     string          `json:"type"`
	Response PasskeyResponse `json:"response"`
}

// String returns "***".
func (PasskeyCredential) String() string { return "***" }

// GoString returns "***".
func (PasskeyCredential) GoString() string { return "***" }

// PasskeyResponse is what the authenticator has signed. All its members are in base64url.
type PasskeyResponse struct {
	ClientData        string `json:"clientDataJSON"`
	AuthenticatorData string `json:"authenticatorData"`
	Signature         string `json:"signature"`
	UserHandle        Maybe  `json:"userHandle"`
}

// Limits of a profile, in characters: MAX_PUSHNAME_LENGTH of the vendor's web app, and what the documentation of the
// vendor's Business Platform allows for "about" of a profile.
const (
	MaxProfileName  = 25
	MaxProfileAbout = 139
)

// Profile is what other people see of an account.
type Profile struct {
	Name  Maybe  `json:"name" nullable:"true" doc:"The account's own name; null until its phone has told it." example:"Acme"`
	About string `json:"about" doc:"What the account says about itself." example:"We answer from 9 to 5"`
	Media *Media `json:"media,omitempty" doc:"The picture, as a media file of the device. Absent if the account has no picture."`
}

// CheckProfile checks a name and an about text, unless they are nil.
func CheckProfile(name, about *string) error {
	if name != nil && (!IsPlainText(*name) || strings.TrimSpace(*name) == "" || utf8.RuneCountInString(*name) > MaxProfileName) {
		return Invalid("/name", "write 1 to %d characters in one line", MaxProfileName)
	}
	if about != nil && utf8.RuneCountInString(*about) > MaxProfileAbout {
		return Invalid("/about", "write at most %d characters", MaxProfileAbout)
	}
	return nil
}
