package page

import "time"

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
