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
