package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/mail"
	"postern/internal/people"
	"postern/internal/postern"
)

func (d invitations) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in := people.NewInvitation{
		Email: r.PostFormValue("email"), Role: postern.Role(r.PostFormValue("role")), ByMail: d.mail != nil,
	}
	i, token, err := d.p.Invitations.Create(r.Context(), v.actor, v.workspace(), in)
	if err == nil && in.ByMail {
		err = d.sendMail(r, v, i, token)
	}
	if wrong, ok := faults(err); ok {
		return members{d.core}.showAs(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{
			Email: page.Field{Value: in.Email, Error: wrong["email"]}, Role: string(in.Role), RoleError: wrong["role"],
			Problem: "The invitation was not created.",
		})
	}
	if err != nil {
		return err
	}
	if in.ByMail {
		return d.done(w, r, "The invitation was sent to "+i.Email+".", "/people")
	}
	return d.write(w, r, http.StatusCreated, page.InvitationShown(d.frame(
		r, v, "Invitation created", "/people",
	), page.InvitationShownView{
		Email: i.Email, Role: word(string(i.Role)), Link: d.joinLink(token), Expires: i.ExpiresAt.Std(),
	}))
}

func (d invitations) revoke(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.p.Invitations.Revoke(
		r.Context(), v.actor, v.workspace(), postern.InvitationID(r.PathValue("id")),
	); err != nil {
		return err
	}
	return d.done(w, r, "The invitation was revoked. Its link no longer works.", "/people")
}

// sendMail sends the link of an invitation only to its address, so that joining proves access
// to the mailbox. An invitation that cannot be sent is revoked.
func (d invitations) sendMail(r *http.Request, v visit, i postern.Invitation, token string) error {
	ctx := context.WithoutCancel(r.Context()) // a browser that disconnects must cancel neither
	err := d.mail.Send(ctx, mail.Message{
		To: i.Email, Subject: "Invitation to " + i.Workspace,
		Text: fmt.Sprintf("%s invited you to the workspace “%s” with the role “%s”.\n\n"+
			"To join, open this link:\n%s\n\n"+
			"The link works once, until %s, and only for %s.\n"+
			"If you did not expect this invitation, you can ignore it.\n\nPostern at %s\n",
			i.Inviter, i.Workspace, i.Role, d.joinLink(token), i.ExpiresAt.Std().Format(mailTime), i.Email, d.base),
	})
	if err == nil {
		return nil
	}
	d.log.WarnContext(ctx, "an invitation was not mailed", "error", err)
	// A newer invitation, or the removal of its inviter, may have revoked it already.
	if err := d.p.Invitations.Revoke(ctx, v.actor, v.workspace(), i.ID); err != nil &&
		postern.ReasonOf(err) != postern.NotFound {
		return err
	}
	if refused, ok := errors.AsType[*mail.RefusedError](err); ok {
		return postern.Invalid("/email", "%s", refused)
	}
	return postern.Errorf(
		postern.Unavailable,
		"the mail server did not accept the invitation, so it was not created; the reason is in the server's log",
	)
}

// show shows the page of an invitation.
func (d invitations) show(w http.ResponseWriter, r *http.Request) error {
	l, err := d.p.Invitations.Get(r.Context(), r.PathValue("token"))
	if err != nil {
		return err
	}
	return d.showAs(w, r, l)
}

func (d invitations) showAs(w http.ResponseWriter, r *http.Request, l people.JoinLink) error {
	present, err := d.present(r)
	if err != nil {
		return err
	}
	view, status := d.joinView(r, l), http.StatusOK
	switch {
	case present != "" && present != l.Email:
		view.Step, view.Present, status = "other", present, http.StatusForbidden
	case l.ChoosesPassword():
		view.Step = "password"
	case present == "":
		view.Step = "signin"
	default:
		view.Step = "join"
	}
	return d.write(w, r, status, page.Join(view))
}

func (d invitations) joinView(r *http.Request, l people.JoinLink) page.JoinView {
	v := page.JoinView{
		Token: r.PathValue("token"), Workspace: l.Invitation.Workspace, Role: word(string(l.Invitation.Role)),
		Email:        l.Email,
		PasswordHint: passwordHint,
	}
	if !l.Known { // an existing account joins by signing in
		v.SignOn = d.signOnName()
	}
	return v
}

// present returns the email address of the signed-in user; "" if nobody is signed in.
func (d invitations) present(r *http.Request) (string, error) {
	id := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
	if id == "" {
		return "", nil
	}
	return d.p.Users.Email(r.Context(), d.self(r, id))
}

// join accepts an invitation for the signed-in account, or creates an account with a password.
// Only the password comes from the form; everything else comes from the link.
func (d invitations) join(w http.ResponseWriter, r *http.Request) error {
	token := r.PathValue("token")
	l, err := d.p.Invitations.Get(r.Context(), token)
	if err != nil {
		return err
	}
	present, err := d.present(r)
	if err != nil {
		return err
	}
	if present != "" && present != l.Email || present == "" && !l.ChoosesPassword() {
		return d.showAs(w, r, l)
	}
	if !l.ChoosesPassword() {
		user := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
		ws, err := d.p.Invitations.JoinAs(r.Context(), d.self(r, user), token)
		if err != nil {
			return err
		}
		return d.joined(w, r, ws)
	}
	u, ws, err := d.p.Invitations.Join(r.Context(), token, d.address(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		view := d.joinView(r, l)
		view.Step, view.Password = "password", page.Field{Error: wrong["password"]}
		return d.write(w, r, http.StatusUnprocessableEntity, page.Join(view))
	}
	if err != nil {
		return err
	}
	if ws == "" { // a new password for an existing account
		d.tell(r, u.ID, newPassword())
		return d.pass(w, r, u, "/", now())
	}
	if err := d.enter(w, r, u, now()); err != nil {
		return err
	}
	return d.joined(w, r, ws)
}

// joined switches to the workspace that the user has joined.
func (d invitations) joined(w http.ResponseWriter, r *http.Request, ws postern.WorkspaceID) error {
	d.sessions.Put(r.Context(), keyWorkspace, string(ws))
	return d.done(w, r, "Welcome! You are now a member of this workspace.", "/")
}

func (d *core) joinLink(token string) string {
	return strings.TrimRight(d.base, "/") + "/join/" + token
}
