package page

import "net/url"

// SetUpView is the form that makes the first workspace and its owner.
type SetUpView struct {
	Token        string // of the address: the form goes to /setup/{token}
	Workspace    Field
	Email        Field
	Password     Field  // its value is never shown
	PasswordHint string // what a password must be, as a sentence
	Problem      string // what is wrong with the whole; "": nothing
}

func (v SetUpView) faults() []fault {
	return faults(
		fault{"workspace", v.Workspace.Error}, fault{"email", v.Email.Error}, fault{"password", v.Password.Error},
	)
}

// SignInView is the form to sign in.
type SignInView struct {
	Next    string // where the person wanted to go, sent back as it is
	Email   string // as it was entered
	Problem string // the same whatever was wrong; "": nothing
	SignOn  string // what the provider is called at which people may sign in; "": there is none
	Mail    bool   // a forgotten password can be asked for by mail
}

// ForgottenView is the form for a new password by mail, and what is said after it.
type ForgottenView struct {
	Email Field
	Sent  string // the address, once it was asked for
}

// title is the first that a screen reader says: it tells the answer from the form.
func (v ForgottenView) title() string {
	if v.Sent != "" {
		return "Check your email"
	}
	return "Reset your password"
}

func (v SignInView) signOn() string { return "/signin/oidc?next=" + url.QueryEscape(v.Next) }

// ProblemView is a page that could not be shown.
type ProblemView struct {
	Status int
	Title  string
	Text   string // what to do
	Home   string // where the way out leads; "": "/"
	Go     string // its text; "": "Go to Overview"
	Ref    string // the request's id, for those who look into the log; "": none
}
