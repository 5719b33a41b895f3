package dash

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"postern/internal/access"
	"postern/internal/mail"
	"postern/internal/postern"
)

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
