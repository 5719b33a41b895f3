package page

import "time"

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
