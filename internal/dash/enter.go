package dash

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"
)

const passwordHint = "At least ten characters. A few words make a good one." //nolint:gosec // what one must be

// enterRoutes are the ways in, which everybody may see.
func (d *dash) enterRoutes() {
	d.open("GET /setup/{token}", d.showSetUp)
	d.open("POST /setup/{token}", d.setUp)
	d.open("GET /signin", d.showSignIn)
	d.open("POST /signin", d.signIn)
	d.open("GET /signin/second", d.showSecond)
	d.open("POST /signin/second", d.second)
	d.open("POST /signout", d.signOut)
	d.open("GET /join/{token}", d.showJoin)
	d.open("POST /join/{token}", d.join)
	if d.mail != nil {
		d.open("GET /signin/forgotten", d.showForgotten)
		d.open("POST /signin/forgotten", d.forgotten)
	}
}

// showSetUp is the form for the first user.
func (d *dash) showSetUp(w http.ResponseWriter, r *http.Request) error {
	if err := d.p.Users.CheckSetUp(r.Context(), r.PathValue("token")); err != nil {
		return err
	}
	return d.show(w, r, http.StatusOK, page.SetUp(page.SetUpView{Token: r.PathValue("token"), PasswordHint: passwordHint}))
}

// setUp makes the first user and signs the browser in.
func (d *dash) setUp(w http.ResponseWriter, r *http.Request) error {
	in := people.SetUp{Workspace: r.PostFormValue("workspace"), Email: r.PostFormValue("email"), Password: r.PostFormValue("password")}
	u, err := d.p.Users.SetUp(r.Context(), r.PathValue("token"), d.address(r), in)
	if wrong, ok := faults(err); ok {
		return d.show(w, r, http.StatusUnprocessableEntity, page.SetUp(page.SetUpView{
			Token: r.PathValue("token"), PasswordHint: passwordHint, Problem: "Something is missing.",
			Workspace: page.Field{Value: in.Workspace, Error: wrong["workspace"]}, Email: page.Field{Value: in.Email, Error: wrong["email"]}, Password: page.Field{Error: wrong["password"]},
		}))
	}
	if err != nil {
		return err
	}
	if err := d.enter(r, u); err != nil {
		return err
	}
	return seeOther(w, r, "/")
}

func (d *dash) showSignIn(w http.ResponseWriter, r *http.Request) error {
	if d.sessions.GetString(r.Context(), keyUser) != "" {
		return seeOther(w, r, r.FormValue("next"))
	}
	return d.showSignInAs(w, r, http.StatusOK, page.SignInView{Next: local(r.FormValue("next"))})
}

// showSignInAs adds to a form the other ways in that there are.
func (d *dash) showSignInAs(w http.ResponseWriter, r *http.Request, status int, v page.SignInView) error {
	v.SignOn, v.Mail = d.signOnName(), d.mail != nil
	return d.show(w, r, status, page.SignIn(v))
}

func (d *dash) signIn(w http.ResponseWriter, r *http.Request) error {
	email, next := r.PostFormValue("email"), local(r.PostFormValue("next"))
	u, err := d.p.Users.SignIn(r.Context(), d.address(r), email, r.PostFormValue("password"))
	if postern.ReasonOf(err) == postern.Unauthorized {
		return d.showSignInAs(w, r, http.StatusUnauthorized, page.SignInView{Next: next, Email: email, Problem: "The e-mail address or the password is wrong."})
	}
	if err != nil {
		return err
	}
	return d.pass(w, r, u, next)
}

// enter signs the browser in, with a new token: whoever had given it the one
// before has nothing.
func (d *dash) enter(r *http.Request, u postern.User) error {
	return d.begin(r, map[string]string{
		keyUser: string(u.ID), keyEpoch: strconv.FormatInt(u.Epoch, 10), keyBrowser: r.UserAgent(), keyAddress: d.address(r), keySeen: now(),
	})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// within tells whether a time that now wrote is not long ago.
func within(text string, limit time.Duration) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(at) < limit
}

// begin gives the browser a session with a new token, which holds nothing else.
func (d *dash) begin(r *http.Request, values map[string]string) error {
	ctx := r.Context()
	if err := errors.Join(d.sessions.Clear(ctx), d.sessions.RenewToken(ctx)); err != nil {
		return err
	}
	for name, value := range values {
		d.sessions.Put(ctx, name, value)
	}
	if _, _, err := d.sessions.Commit(ctx); err != nil { // now, so that a page can say why it was refused
		return errors.Join(err, d.sessions.Destroy(ctx))
	}
	return nil
}

func (d *dash) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := d.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	return seeOther(w, r, "/signin")
}
