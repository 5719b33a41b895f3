package postern

// Status is the state of a device's session.
type Status string

// The states, as in the contract's table.
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

// HoldsSlot tells whether a device in this state counts towards the plan's
// number of linked devices.
func (s Status) HoldsSlot() bool {
	switch s {
	case Linking, Connecting, Connected, Disconnected, Paused, Restricted, Conflict:
		return true
	case Unlinked, LoggedOut, Banned:
	}
	return false
}

// Desired is what the owner wants of a device; the session engine works
// towards it.
type Desired string

// What can be wanted.
const (
	WantIdle    Desired = "idle"    // nothing: not linked, or ended by the vendor
	WantLink    Desired = "link"    // a link attempt is open
	WantConnect Desired = "connect" // keep a live session
	WantUnlink  Desired = "unlink"  // remove the link at the vendor, keep the device
	WantDelete  Desired = "delete"  // remove the link at the vendor, then everything else
)

// Device is a linked messaging account, or one that waits to be linked.
type Device struct {
	ID           DeviceID          `json:"id" doc:"Opaque id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Status       Status            `json:"status" doc:"State of the session; sends can succeed while it is connected." enum:"unlinked,linking,connecting,connected,disconnected,paused,restricted,conflict,logged_out,banned" example:"connected"`
	Name         string            `json:"name" doc:"Name given by the owner." example:"Support"`
	StatusReason Maybe             `json:"statusReason" nullable:"true" doc:"Why the device is in this state." example:"socket-closed"`
	Mode         string            `json:"mode" enum:"live,sandbox" doc:"Whether the account lives on the real network or on the simulated one." example:"live"`
	PhoneNumber  Maybe             `json:"phoneNumber" nullable:"true" doc:"The account's number, once linked." example:"+15550001111"`
	DisplayName  Maybe             `json:"displayName" nullable:"true" doc:"The account's own name on the network." example:"Acme"`
	Metadata     map[string]string `json:"metadata" doc:"The owner's own labels."`
	CreatedAt    Time              `json:"createdAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	LinkedAt     Time              `json:"linkedAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	ConnectedAt  Time              `json:"connectedAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	LastSeenAt   Time              `json:"lastSeenAt" format:"date-time" nullable:"true" doc:"Last sign of life from the network." example:"2026-11-21T09:00:00.000Z"`

	WorkspaceID WorkspaceID `json:"-"`
	Account     string      `json:"-"` // the network's own name for the link; "" when not linked
	Desired     Desired     `json:"-"`
}

// LinkStatus is the state of a link attempt.
type LinkStatus string

// The states of a link attempt.
const (
	LinkPending LinkStatus = "pending"
	LinkLinked  LinkStatus = "linked"
	LinkExpired LinkStatus = "expired"
	LinkFailed  LinkStatus = "failed"
)

// Link is one attempt to link a device by showing a code to a phone.
type Link struct {
	ID          LinkID     `json:"id" doc:"Opaque id of the attempt." example:"lnk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	DeviceID    DeviceID   `json:"deviceId" example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Method      string     `json:"method" enum:"qr" example:"qr"`
	Status      LinkStatus `json:"status" enum:"pending,linked,expired,failed" example:"pending"`
	QR          Maybe      `json:"qr" nullable:"true" doc:"Text of the QR code to show now. It changes; see qrExpiresAt."`
	QRExpiresAt Time       `json:"qrExpiresAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:20.000Z"`
	PairingCode Maybe      `json:"pairingCode" nullable:"true"`
	ExpiresAt   Time       `json:"expiresAt" format:"date-time" nullable:"true" example:"2026-11-21T09:03:00.000Z"`
	Reason      Maybe      `json:"reason" nullable:"true" doc:"Why the attempt ended without a link." example:"timeout"`

	WorkspaceID WorkspaceID `json:"-"`
}
