package page

import (
	"net/url"
	"time"
)

// KeysView is a page of the list of API keys.
type KeysView struct {
	Keys   []Key
	More   string // where the next page is; "": this is the last
	Change bool   // the person may create, rotate and revoke
}

// Key is a line of the list of API keys.
type Key struct {
	ID          string
	Name        string
	Shown       string // its recognizable part: "pst_…Ab3d"
	Environment string
	Scopes      []string
	Devices     []Choice // that it is limited to; nil: all
	Created     time.Time
	LastUsed    time.Time
	Expires     time.Time // zero: never
	Status      string    // "active", "expiring", "expired" or "revoked"
}

// reach says in short what the key may do, and with which devices.
func (k Key) reach() string {
	devices := "all devices"
	if k.Devices != nil {
		devices = count(len(k.Devices), "device", "devices")
	}
	return count(len(k.Scopes), "scope", "scopes") + ", " + devices
}

// works reports whether the key can be rotated or revoked.
func (k Key) works() bool { return k.Status != "expired" && k.Status != "revoked" }

// dialog is the id of the key's dialog. Ids have no spaces.
func (k Key) dialog(verb string) string { return verb + "-" + url.PathEscape(k.ID) }

// Overlaps lists how long an old key or secret can keep working, as Go durations. The first one is chosen, and has the
// focus when a dialog opens.
func Overlaps() []Choice {
	return []Choice{
		{"24h", "24 hours"},
		{"168h", "7 days"},
		{"1h", "1 hour"},
		{"0s", "It stops working immediately"},
	}
}

// KeyFormView is the form that creates an API key.
type KeyFormView struct {
	Name        Field
	Environment Field // a label, such as "production"
	Scopes      []ScopeChoice
	ScopesError string
	Devices     []DeviceChoice

	DevicesError string

	Expiry      string   // the value of the chosen one of Expiries
	Expiries    []Choice // nil: Expiries()
	ExpiryError string
	Problem     string // what is wrong with the form; "": nothing
	Ask         bool   // for the password, which was entered too long ago
	Password    Field
	Again       Again
}

// ready reports whether the form can be sent.
func (v KeyFormView) ready() bool { return !v.Ask || v.Again.Ready() }

// ScopeChoice is a permission that a key can have.
type ScopeChoice struct {
	Name   string // "devices:read"
	Text   string // what it allows, as a sentence
	Chosen bool
}

// Expiries lists how long a new key can work, as Go durations; "" means forever.
func Expiries() []Choice {
	return []Choice{
		{"", "Never"},
		{"168h", "After 7 days"},
		{"720h", "After 30 days"},
		{"2160h", "After 90 days"},
		{"8760h", "After a year"},
	}
}

func (v KeyFormView) expiries() []Choice {
	if v.Expiries == nil {
		return Expiries()
	}
	return v.Expiries
}

func (v KeyFormView) faults() []fault {
	return faults(
		fault{"name", v.Name.Error}, fault{"environment", v.Environment.Error}, fault{"scopes", v.ScopesError},
		fault{"devices", v.DevicesError}, fault{"expiry", v.ExpiryError}, fault{"password", v.Password.Error},
	)
}

// KeyShownView is a new key, with its secret shown once.
type KeyShownView struct {
	Name    string
	Secret  string
	BaseURL string    // of the API, without "/v1": "https://gateway.example.com"
	Old     time.Time // when the rotated key stops working; zero: there is none
	Ends    time.Time // when the new key stops working; zero: never
}
