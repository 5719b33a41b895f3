package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"postern/internal/dash/page"
	"postern/internal/mail"
	"postern/internal/postern"
)

const (
	mailsAtOnce = 8 // that nobody waits for
	mailTime    = "2 January 2006 at 15:04 UTC"
)

// mailInvitation sends the link of an invitation to its address alone: whoever joins
// reads mail there. An invitation that cannot be sent is none.
func (d *dash) mailInvitation(r *http.Request, v visit, i postern.Invitation, token string) error {
	ctx := context.WithoutCancel(r.Context()) // a browser that leaves takes neither along
	err := d.mail.Send(ctx, mail.Message{
		To: i.Email, Subject: "Invitation to " + i.Workspace,
		Text: fmt.Sprintf("%s invites you to the workspace “%s”, with the role: %s.\n\nJoin by this link:\n%s\n\nIt works once, until %s, and only for %s.\nIf you did not expect it, do nothing.\n\nPostern at %s\n",
			i.Inviter, i.Workspace, i.Role, d.joinLink(token), i.ExpiresAt.Std().Format(mailTime), i.Email, d.base),
	})
	if err == nil {
		return nil
	}
	d.log.WarnContext(ctx, "an invitation was not mailed", "error", err)
	// It may be revoked already, by a newer one or with its inviter.
	if err := d.p.Invitations.Revoke(ctx, v.actor, v.workspace(), i.ID); err != nil && postern.ReasonOf(err) != postern.NotFound {
		return err
	}
	if refused, ok := errors.AsType[*mail.RefusedError](err); ok {
		return postern.Invalid("/email", "%s", refused)
	}
	return postern.Errorf(postern.Unavailable, "the mail server did not take the mail, so nobody was invited; the server's log says why")
}

func (d *dash) showForgotten(w http.ResponseWriter, r *http.Request) error {
	return d.show(w, r, http.StatusOK, page.Forgotten(page.ForgottenView{}))
}

// forgotten sends a link to a mailbox, if an account has its address. What the page
// says, and when, is the same if none has.
func (d *dash) forgotten(w http.ResponseWriter, r *http.Request) error {
	entered := r.PostFormValue("email")
	email, err := d.p.PasswordLinks.Forgot(r.Context(), d.address(r), entered)
	if wrong, ok := faults(err); ok {
		return d.show(w, r, http.StatusUnprocessableEntity, page.Forgotten(page.ForgottenView{Email: page.Field{Value: entered, Error: wrong["email"]}}))
	}
	if err != nil {
		return err
	}
	d.mailLater(r, email)
	return d.show(w, r, http.StatusOK, page.Forgotten(page.ForgottenView{Sent: email}))
}

// mailLater sends the link when nobody waits for it any more. One too many is not sent,
// and only the log says so: places are long taken by those alone who have an account, and
// a refusal would tell of them.
func (d *dash) mailLater(r *http.Request, email string) {
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

func (d *dash) mailPassword(ctx context.Context, address, email string) error {
	token, err := d.p.PasswordLinks.ByMail(ctx, address, email)
	if err != nil || token == "" {
		return err
	}
	return d.mail.Send(ctx, mail.Message{
		To: email, Subject: "A new password",
		Text: fmt.Sprintf("Somebody asked for a new password for %s.\n\nChoose one by this link, within an hour:\n%s\n\nIt works once. If it was not you, do nothing: your password stays as it is.\n\nPostern at %s\n", email, d.joinLink(token), d.base),
	})
}
