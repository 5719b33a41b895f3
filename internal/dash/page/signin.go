package page

import "net/url"

// SetUpView is the form that creates the first workspace and its owner.
type SetUpView struct {
	Token        string // of the address: the form goes to /setup/{token}
	Workspace    Field
	Email        Field
	Password     Field  // its value is never shown
	PasswordHint string // what a password must be, as a sentence
	Problem      string // what is wrong with the form; "": nothing
}

func (v SetUpView) faults() []fault {
	return faults(
		fault{"workspace", v.Workspace.Error}, fault{"email", v.Email.Error}, fault{"password", v.Password.Error},
	)
}

// SignInView is the form to sign in.
type SignInView struct {
	Next    string // where the user wanted to go, sent back unchanged
	Email   string // as it was entered
	Problem string // the same for every wrong input; "": nothing
	SignOn  string // the name of the sign-in provider; "": there is none
	Mail    bool   // a forgotten password can be reset by email
}

// ForgottenView is the form to reset a password by email, and its confirmation.
type ForgottenView struct {
	Email Field
	Sent  string // the address, once it was asked for
}

// title differs between the form and its confirmation, because screen readers read it first.
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
	Home   string // the target of the button; "": "/"
	Go     string // its text; "": "Go to Overview"
	Ref    string // the request id, to find it in the log; "": none
}
