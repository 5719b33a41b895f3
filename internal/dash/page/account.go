package page

import "time"

// AccountView is the person's own page.
type AccountView struct {
	Sessions     []Session
	Current      Field  // the present password; its value is never shown
	Password     Field  // the new one; its value is never shown
	PasswordHint string // what a password must be, as a sentence
	Problem      string // what is wrong with the change of the password; "": nothing
	Second       string // what the person proves beside the password, in words; "": nothing
	SignOn       string // what the provider is called at which people may sign in; "": there is none
	Connected    int    // identities that sign the person in
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
	Address  string // where it came from last
	LastSeen time.Time
	Current  bool // it is the one that asks
}

func (v AccountView) faults() []fault {
	return faults(fault{"current", v.Current.Error}, fault{"password", v.Password.Error})
}

// Again is how a person shows again who it is: by the password, when it is zero.
type Again struct {
	None bool   // the person has no password
	Sure bool   // and has just signed in at the provider again
	Name string // what the provider is called; "": there is none
	Href string // where to sign in there again
}

// Ready tells whether a form can be sent.
func (v Again) Ready() bool { return !v.None || v.Sure }

func (v AccountView) changeLabel() string {
	if v.Again.None {
		return "Set password"
	}
	return "Change password"
}

// IdentitiesView is who a person is at providers.
type IdentitiesView struct {
	Identities []Identity
	SignOn     string // what the provider is called; "": there is none now
	Keep       bool   // none can be disconnected, since there is no password
}

func (v IdentitiesView) connectLabel() string {
	if len(v.Identities) > 0 {
		return "Connect another account at "
	}
	return "Connect "
}

// Identity is who a person is at a provider.
type Identity struct {
	Issuer, Subject string
	Created         time.Time
}

// SecondView is the second step of a sign-in.
type SecondView struct {
	Next     string // where the person wanted to go, sent back as it is
	App      bool   // there is an authenticator app
	Passkey  string // what the browser is asked, as JSON; "": there is no passkey
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
	Next     string // where the person wanted to go, sent back as it is
	Password Field  // its value is never shown
	Again    Again
}

// FactorsView is what a person proves beside the password.
type FactorsView struct {
	App      bool // an authenticator app is in use
	Passkeys []Passkey
	Recovery int    // codes that are left
	Offer    string // what the browser is asked for a new passkey, as JSON; "": none can be added
	Off      string // why not, as a sentence
	Name     Field
	Problem  string // what went wrong; "": nothing
}

// Any tells whether there is something beside the password.
func (v FactorsView) Any() bool { return v.App || len(v.Passkeys) > 0 }

// Passkey is one of a person's.
type Passkey struct {
	ID, Name      string
	Created, Used time.Time
}

// AppView shows the secret of an authenticator app until a code of it was typed.
type AppView struct {
	Picture string // the QR code as SVG, ours
	Secret  string // for those who cannot scan
	Code    Field
}

// RecoveryView shows recovery codes, once.
type RecoveryView struct {
	Codes string // one on each line
	Added string // what was added, as a sentence; "": the codes alone are new
}
