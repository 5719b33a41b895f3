package page

import "time"

// AccountView is the person's own page.
type AccountView struct {
	Sessions     []Session
	Acts         []Act  // the last ones on the account, the newest first
	Current      Field  // the current password; its value is never shown
	Password     Field  // the new one; its value is never shown
	PasswordHint string // what a password must be, as a sentence
	Problem      string // what is wrong with the password change; "": nothing
	Second       string // the second factors, in words; "": none
	SignOn       string // the name of the sign-in provider; "": there is none
	Connected    int    // connected identities
	Again        Again
}

func (v AccountView) secondLabel() string {
	if v.Second == "" {
		return "Set up two-step authentication"
	}
	return "Manage two-step authentication"
}

// Session is a browser that is signed in.
type Session struct {
	Browser  string // "Firefox on Linux"
	Address  string // its last IP address
	LastSeen time.Time
	Current  bool // the browser of this request
}

func (v AccountView) faults() []fault {
	return faults(fault{"current", v.Current.Error}, fault{"password", v.Password.Error})
}

// Again is how a user confirms their identity. The zero value asks for the password.
type Again struct {
	None bool   // the person has no password
	Sure bool   // and has recently signed in at the provider again
	Name string // the name of the provider; "": there is none
	Href string // where to sign in there again
}

// Ready reports whether the form can be sent.
func (v Again) Ready() bool { return !v.None || v.Sure }

func (v AccountView) changeLabel() string {
	if v.Again.None {
		return "Set password"
	}
	return "Change password"
}

// IdentitiesView lists a user's identities at providers.
type IdentitiesView struct {
	Identities []Identity
	SignOn     string // the name of the provider; "": there is none now
	Keep       bool   // none can be disconnected, since there is no password
}

func (v IdentitiesView) connectLabel() string {
	if len(v.Identities) > 0 {
		return "Connect another "
	}
	return "Connect your "
}

// Identity is a user's identity at a provider.
type Identity struct {
	Issuer, Subject string
	Created         time.Time
}

// SecondView is the second step of a sign-in.
type SecondView struct {
	Next     string // where the user wanted to go, sent back unchanged
	App      bool   // there is an authenticator app
	Passkey  string // the options of the passkey request, as JSON; "": there is no passkey
	Code     Field  // its value is never shown
	Problem  string // what is wrong with the passkey; "": nothing
	Recovery int    // codes that are left
}

func (v SecondView) label() string {
	switch {
	case v.App && v.Recovery > 0:
		return "Authentication code or recovery code"
	case v.App:
		return "Authentication code"
	}
	return "Recovery code"
}

// SureView asks for the password again.
type SureView struct {
	Next     string // where the user wanted to go, sent back unchanged
	Password Field  // its value is never shown
	Again    Again
}

// FactorsView lists a user's second factors.
type FactorsView struct {
	App      bool // an authenticator app is in use
	Passkeys []Passkey
	Recovery int    // codes that are left
	Offer    string // the options for a new passkey, as JSON; "": none can be added
	Off      string // why not, as a sentence
	Name     Field
	Problem  string // what went wrong; "": nothing
}

// Any reports whether there is a second factor.
func (v FactorsView) Any() bool { return v.App || len(v.Passkeys) > 0 }

// Passkey is a passkey of the user.
type Passkey struct {
	ID, Name      string
	Created, Used time.Time
}

// AppView shows the secret of an authenticator app until a code confirms it.
type AppView struct {
	Picture string // the QR code as SVG, ours
	Secret  string // for users who cannot scan
	Code    Field
}

// RecoveryView shows recovery codes, once.
type RecoveryView struct {
	Codes string // one on each line
	Added string // what was added, as a sentence; "": only the codes are new
}
