package dash

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/mail"
	"postern/internal/people"
	"postern/internal/postern"
)

// a hint, not a secret
const passwordHint = "Use at least 10 characters. A few words work well."

// showSetUp is the form for the first user.
func (d signIns) showSetUp(w http.ResponseWriter, r *http.Request) error {
	if err := d.p.Users.CheckSetUp(r.Context(), r.PathValue("token")); err != nil {
		return err
	}
	return d.write(
		w, r, http.StatusOK, page.SetUp(page.SetUpView{Token: r.PathValue("token"), PasswordHint: passwordHint}),
	)
}

// setUp makes the first user and signs the browser in.
func (d signIns) setUp(w http.ResponseWriter, r *http.Request) error {
	in := people.SetUp{
		Workspace: r.PostFormValue("workspace"), Email: r.PostFormValue("email"), Password: r.PostFormValue("password"),
	}
	u, err := d.p.Users.SetUp(r.Context(), r.PathValue("token"), d.address(r), in)
	if wrong, ok := faults(err); ok {
		return d.write(w, r, http.StatusUnprocessableEntity, page.SetUp(page.SetUpView{
			Token: r.PathValue("token"), PasswordHint: passwordHint, Problem: "The workspace was not created.",
			Workspace: page.Field{Value: in.Workspace, Error: wrong["workspace"]},
			Email:     page.Field{Value: in.Email, Error: wrong["email"]},
			Password:  page.Field{Error: wrong["password"]},
		}))
	}
	if err != nil {
		return err
	}
	if err := d.enter(w, r, u, now()); err != nil {
		return err
	}
	return seeOther(w, r, "/")
}

func (d signIns) show(w http.ResponseWriter, r *http.Request) error {
	if d.sessions.GetString(r.Context(), keyUser) != "" {
		return seeOther(w, r, r.FormValue("next"))
	}
	return d.showAs(w, r, http.StatusOK, page.SignInView{Next: local(r.FormValue("next"))})
}

// showAs adds the other ways to sign in.
func (d signIns) showAs(w http.ResponseWriter, r *http.Request, status int, v page.SignInView) error {
	v.SignOn, v.Mail = d.signOnName(), d.mail != nil
	return d.write(w, r, status, page.SignIn(v))
}

func (d signIns) signIn(w http.ResponseWriter, r *http.Request) error {
	email, next := r.PostFormValue("email"), local(r.PostFormValue("next"))
	u, err := d.p.Users.SignIn(r.Context(), people.Credentials{
		Email: email, Password: r.PostFormValue("password"), Address: d.address(r), Browser: d.known(r),
	})
	if postern.ReasonOf(err) == postern.Unauthorized {
		return d.showAs(w, r, http.StatusUnauthorized, page.SignInView{
			Next: next, Email: email, Problem: "The email address or password is incorrect.",
		})
	}
	if err != nil {
		return err
	}
	return d.pass(w, r, u, next, now())
}

func (d signIns) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := d.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	return seeOther(w, r, "/signin")
}

// pending is the user who recently entered the right password in this browser.
func (d signIns) pending(r *http.Request) (u postern.User, ok bool) {
	ctx := r.Context()
	u.ID = postern.UserID(d.sessions.GetString(ctx, keyPending))
	u.Epoch, _ = strconv.ParseInt(d.sessions.GetString(ctx, keyEpoch), 10, 64) // ours
	return u, u.ID != "" && within(d.sessions.GetString(ctx, keySince), secondTime)
}

func (d signIns) showSecond(w http.ResponseWriter, r *http.Request) error {
	return d.askSecond(w, r, http.StatusOK, page.SecondView{Next: local(r.FormValue("next"))})
}

// signInFor is the path of the first step, which leads to a page.
func signInFor(next string) string {
	if next == "" || next == "/" {
		return "/signin"
	}
	return "/signin?" + url.Values{"next": {next}}.Encode()
}

// askSecond asks for the second step after the right password.
func (d signIns) askSecond(w http.ResponseWriter, r *http.Request, status int, view page.SecondView) error {
	u, ok := d.pending(r)
	if !ok {
		return seeOther(w, r, signInFor(view.Next))
	}
	who := access.Pending{ID: u.ID, Address: d.address(r)}
	factors, err := d.p.SecondFactors.Asked(r.Context(), who)
	if err != nil {
		return err
	}
	view.App, view.Recovery = factors.App, factors.Recovery
	if len(factors.Passkeys) > 0 && d.p.SecondFactors.PasskeysOff() == nil {
		if view.Passkey, err = d.ask(r, who); err != nil {
			return err
		}
	}
	return d.write(w, r, status, page.Second(view))
}

// second checks the second step: a code, or the response of a passkey.
func (d signIns) second(w http.ResponseWriter, r *http.Request) error {
	u, ok := d.pending(r)
	if !ok {
		return seeOther(w, r, signInFor(local(r.PostFormValue("next"))))
	}
	who := access.Pending{ID: u.ID, Address: d.address(r), Browser: d.known(r)}
	var err error
	if answer := r.PostFormValue("passkey"); answer != "" {
		asked := d.sessions.PopString(r.Context(), keyCeremony) // once
		err = d.p.SecondFactors.UsePasskey(r.Context(), who, []byte(asked), []byte(answer))
	} else {
		err = d.p.SecondFactors.UseCode(r.Context(), who, r.PostFormValue("code"))
	}
	next := local(r.PostFormValue("next"))
	if wrong, ok := faults(err); ok {
		return d.askSecond(w, r, http.StatusUnprocessableEntity, page.SecondView{
			Next: next, Code: page.Field{Error: wrong["code"]}, Problem: wrong["passkey"],
		})
	}
	if err != nil {
		return err
	}
	return d.in(w, r, u, next, d.sessions.GetString(r.Context(), keyEntered))
}

func (d signIns) showForgotten(w http.ResponseWriter, r *http.Request) error {
	return d.write(w, r, http.StatusOK, page.Forgotten(page.ForgottenView{}))
}

// forgotten sends a link to an email address if an account has it. The page and its timing are
// the same if no account has it.
func (d signIns) forgotten(w http.ResponseWriter, r *http.Request) error {
	entered := r.PostFormValue("email")
	email, err := d.p.PasswordLinks.Forgot(r.Context(), d.address(r), entered)
	if wrong, ok := faults(err); ok {
		return d.write(
			w, r, http.StatusUnprocessableEntity,
			page.Forgotten(page.ForgottenView{Email: page.Field{Value: entered, Error: wrong["email"]}}),
		)
	}
	if err != nil {
		return err
	}
	d.mailLater(r, email)
	return d.write(w, r, http.StatusOK, page.Forgotten(page.ForgottenView{Sent: email}))
}

const (
	mailsAtOnce   = 8  // links for new passwords, in the background
	noticesAtOnce = 64 // notices, likewise; further ones are dropped
	mailTime      = "2 January 2006 at 15:04 UTC"
)

// mailLater sends the link in the background. If all slots are taken, the mail is dropped and
// only the log says so: slots are held only by existing accounts, so a refusal would reveal
// them.
func (d signIns) mailLater(r *http.Request, email string) {
	ctx, address := context.WithoutCancel(r.Context()), d.address(r)
	const failed = "a link for a new password was not mailed"
	select {
	case d.mailing <- struct{}{}:
	default:
		d.log.WarnContext(ctx, failed, "error", "too many are under way")
		return
	}
	d.later(func() {
		defer func() { <-d.mailing }()
		if err := d.mailPassword(ctx, address, email); err != nil {
			d.log.WarnContext(ctx, failed, "error", err)
		}
	})
}

func (d signIns) mailPassword(ctx context.Context, address, email string) error {
	token, err := d.p.PasswordLinks.ByMail(ctx, address, email)
	if err != nil || token == "" {
		return err
	}
	return d.mail.Send(ctx, mail.Message{
		To: email, Subject: "Reset your password",
		Text: fmt.Sprintf(
			"Someone requested a new password for %s.\n\n"+
				"To set one, open this link within one hour:\n%s\n\n"+
				"The link works once. If you did not request it, you can ignore this email. "+
				"Your password stays the same.\n\nPostern at %s\n",
			email, d.joinLink(token), d.base,
		),
	})
}

// notice is a mail that tells a person what was done to the account, so that they notice if
// somebody else did it.
type notice struct{ subject, what string }

func newSignIn() notice {
	return notice{"New sign-in", "Someone signed in to your account from a new browser."}
}

func newPassword() notice {
	return notice{"Your password was changed", "The password of your account was changed."}
}

func addedMethod(method string) notice {
	return notice{"A sign-in method was added", "You can now sign in with " + method + "."}
}

func removedMethod(method string) notice {
	return notice{"A sign-in method was removed", method + " was removed from your account."}
}

func newRecoveryCodes() notice {
	return notice{"New recovery codes", "The recovery codes of your account were replaced."}
}

func newKey(key, workspace string) notice {
	return notice{"A new API key", fmt.Sprintf(
		"The API key “%s” was created with your account in the workspace “%s”.", key, workspace,
	)}
}

// tell mails a notice to a person in the background. The action does not depend on it: a
// notice that cannot be sent is only logged.
func (d *core) tell(r *http.Request, id postern.UserID, n notice) {
	if d.mail == nil {
		return
	}
	ctx, self := context.WithoutCancel(r.Context()), access.Self{ID: id, Address: d.address(r)}
	text := fmt.Sprintf("%s\n\nTime: %s\nIP address: %s\nBrowser: %s\n\n"+
		"If this was not you, change your password and sign out all browsers on the Account page, "+
		"and ask an admin to look at the API keys:\n%s\n\nPostern at %s\n",
		n.what, time.Now().UTC().Format(mailTime), self.Address, browser(r.UserAgent()), d.base+"/account", d.base)
	const failed = "a notice was not mailed"
	select {
	case d.noticing <- struct{}{}:
	default:
		d.log.WarnContext(ctx, failed, "user", id, "error", "too many are under way")
		return
	}
	d.later(func() {
		defer func() { <-d.noticing }()
		to, err := d.p.Users.NoticeTo(ctx, self)
		if err == nil {
			err = d.mail.Send(ctx, mail.Message{To: to, Subject: n.subject, Text: text})
		}
		if err != nil {
			d.log.WarnContext(ctx, failed, "user", id, "error", err)
		}
	})
}
