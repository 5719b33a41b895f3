package dash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/mail"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
)

func (d members) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, page.PeopleView{Role: string(postern.Viewer)})
}

func (d members) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.PeopleView) error {
	members, err := d.p.Members.List(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	invitations, err := d.p.Invitations.List(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	keys, err := d.p.Members.Keys(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	mine := v.caller.Member.Role
	for _, m := range members {
		view.Members = append(view.Members, page.Person{
			ID: string(m.UserID), Email: m.Email, Role: word(string(m.Role)), Value: string(m.Role),
			Joined: m.JoinedAt.Std(),
			You:    m.UserID == v.user(), Change: mine.Invites(m.Role), Keys: keys[m.UserID],
		})
	}
	for _, i := range invitations {
		view.Invitations = append(view.Invitations, page.Invited{
			ID: string(i.ID), Email: i.Email, Role: word(string(i.Role)), Inviter: i.Inviter,
			Expires: i.ExpiresAt.Std(),
			Change:  mine.Invites(i.Role),
		})
	}
	view.Roles, view.Mail = roleChoices(mine), d.mail != nil
	if view.Name == (page.Field{}) {
		view.Name.Value, view.Zone.Value = v.caller.Member.Workspace, v.caller.Member.TimeZone
	}
	return d.write(w, r, status, page.People(d.frame(r, v, "People", "/people"), view))
}

// roleChoices lists the roles that a member may assign.
func roleChoices(mine postern.Role) (list []page.Choice) {
	about := map[postern.Role]string{
		postern.Owner:     "full access, including managing owners",
		postern.Admin:     "everything a developer can do, and manages members",
		postern.Developer: "sends messages, changes devices and webhooks, and creates API keys",
		postern.Agent:     "sees what a viewer sees, sends, edits and deletes messages, and changes conversations",
		postern.Viewer:    "sees devices, messages, and webhooks, but cannot change them",
	}
	for _, role := range postern.Roles() {
		if mine.Invites(role) {
			list = append(list, page.Choice{Value: string(role), Label: word(string(role)) + ": " + about[role]})
		}
	}
	return list
}

// describe changes the name and the time zone of the workspace.
func (d members) describe(w http.ResponseWriter, r *http.Request, v visit) error {
	name, zone := r.PostFormValue("name"), v.caller.Member.TimeZone
	if r.PostForm.Has("timeZone") { // a page from before an upgrade has no such field
		zone = r.PostForm.Get("timeZone")
	}
	err := d.p.Members.DescribeWorkspace(r.Context(), v.actor, v.workspace(), name, zone)
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{
			Role: string(postern.Viewer), Name: page.Field{Value: name, Error: wrong["name"]},
			Zone: page.Field{Value: zone, Error: wrong["timeZone"]}, Problem: "Nothing was changed.",
		})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The workspace was changed.", "/people")
}

func (d members) changeRole(w http.ResponseWriter, r *http.Request, v visit) error {
	id := postern.UserID(r.PathValue("id"))
	err := d.p.Members.ChangeRole(r.Context(), v.actor, v.workspace(), id, postern.Role(r.PostFormValue("role")))
	return d.changed(w, r, v, id, err, "The role was changed.")
}

func (d members) remove(w http.ResponseWriter, r *http.Request, v visit) error {
	id := postern.UserID(r.PathValue("id"))
	in := people.Removal{RevokeKeys: r.PostFormValue("keys") == "revoke"}
	err := d.p.Members.Remove(r.Context(), v.actor, v.workspace(), id, in)
	return d.changed(w, r, v, id, err, "The member was removed.")
}

// changed redirects after a member was changed. Members who changed their own role may no
// longer see the page People.
func (d members) changed(
	w http.ResponseWriter, r *http.Request, v visit, id postern.UserID, err error, notice string,
) error {
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{
			Role: string(postern.Viewer), Problem: wrong["role"],
		})
	}
	if err != nil {
		return err
	}
	if id == v.user() {
		return d.done(w, r, "Your membership was changed.", "/")
	}
	return d.done(w, r, notice, "/people")
}

// audit shows the audit log; an unknown kind selects all.
func (d members) audit(w http.ResponseWriter, r *http.Request, v visit) error {
	view := page.AuditView{Who: page.Field{Value: r.FormValue("who")}}
	for _, kind := range people.ActKinds() {
		view.Kinds = append(view.Kinds, page.Choice{Value: kind, Label: kindWords(kind)})
	}
	if kind := r.FormValue("kind"); slices.Contains(people.ActKinds(), kind) {
		view.Kind = kind
	}
	q := people.ActQuery{Page: paging.Page{Cursor: r.FormValue("after")}, Email: view.Who.Value, Kind: view.Kind}
	list, err := d.p.Audit.List(r.Context(), v.actor, v.workspace(), q)
	if err != nil {
		return err
	}
	view.Acts = actsOf(list.Data)
	if list.Next != "" {
		view.More = "/people/audit?" + url.Values{
			"who": {view.Who.Value}, "kind": {view.Kind},
			"after": {list.Next},
		}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Audit(d.frame(r, v, "Audit log", "/people"), view))
}

func actsOf(acts []people.Act) (list []page.Act) {
	for _, a := range acts {
		list = append(list, page.Act{
			At: a.At.Std(), Who: actorOf(a), What: actWords(a.Act), Subject: cmp.Or(a.Name, a.Subject),
			Address: a.Address,
		})
	}
	return list
}

// actorOf names who did it. The name of an API key is its owner's choice, so the id is shown too.
func actorOf(a people.Act) string {
	if a.KeyID != "" {
		return "API key " + a.KeyName + " (" + string(a.KeyID) + ")"
	}
	return cmp.Or(a.Email, string(a.UserID), "The operator")
}

func kindWords(kind string) string {
	return map[string]string{
		"device": "Devices", "webhook": "Webhooks", "message": "Messages", "key": "API keys", "member": "Members",
		"invitation": "Invitations", "user": "Users", "workspace": "Workspace", "contact": "Contacts",
		"chat": "Conversations",
	}[kind]
}

// actWords describes an act. An act without its own description is spelled out:
// "webhook.paused" becomes "Webhook paused".
func actWords(act string) string {
	words, ok := map[string]string{ //nolint:gosec // words about secrets, and none of them
		"key.created": "Created an API key", "key.rotated": "Rotated an API key", "key.revoked": "Revoked an API key",
		"user.sign-in-failed":     "Entered a wrong password at sign-in",
		"user.second-step-failed": "Entered a wrong code at sign-in",
		"user.password-refused":   "Entered a wrong password to confirm a change",
		"user.set-up":             "Set up the server", "user.created": "Added a user",
		"user.signed-in":             "Signed in",
		"user.signed-out-everywhere": "Ended signed-in sessions",
		"user.password-changed":      "Changed the password",
		"user.password-mailed":       "Asked for a link to set a new password",
		"user.password-set":          "Set a password with a link",
		"user.password-reset":        "Created a password-reset link",
		"user.password-reset-alone":  "Created a password-reset link that removes second steps",
		"user.second-step-removed":   "Removed all second steps with a password-reset link",
		"user.app-added":             "Added an authenticator app",
		"user.app-removed":           "Removed an authenticator app",
		"user.passkey-added":         "Added a passkey",
		"user.passkey-removed":       "Removed a passkey",
		"user.recovery-codes-made":   "Created recovery codes",
		"user.recovery-code-used":    "Used a recovery code",
		"user.identity-connected":    "Connected a single sign-on account",
		"user.identity-disconnected": "Disconnected a single sign-on account",
		"user.made-operator":         "Made a user an operator",
		"user.no-operator":           "Removed an operator",
		"invitation.created":         "Invited", "invitation.revoked": "Revoked an invitation", "invitation.accepted": "Joined",
		"member.removed": "Removed a member",
		"device.created": "Added a device", "device.deleted": "Deleted a device", "device.unlinked": "Unlinked a device",
		"device.changed": "Changed the settings of a device",
		"device.paused":  "Paused a device", "device.resumed": "Resumed a device",
		"device.link-opened": "Started to link a phone", "device.link-shared": "Shared a link page",
		"device.link-canceled": "Canceled linking a phone",
		"webhook.tested":       "Sent a test event to a webhook", "webhook.delivery-retried": "Retried a delivery",
		"webhook.deliveries-retried": "Retried the deliveries that waited",
		"webhook.replay-stopped":     "Stopped a replay",
		"message.exported":           "Exported messages",
		"webhook.created":            "Added a webhook",
		"webhook.changed":            "Changed a webhook", "webhook.deleted": "Deleted a webhook",
		"webhook.verified-again": "Verified a webhook again",
		"webhook.paused":         "Paused a webhook", "webhook.resumed": "Resumed a webhook",
		"webhook.replayed":        "Replayed events to a webhook",
		"webhook.secret-revealed": "Revealed the secret of a webhook",
		"webhook.secret-rotated":  "Rotated the secret of a webhook",
		"message.sent":            "Sent a message from the dashboard",
		"workspace.created":       "Created the workspace", "workspace.plan-changed": "Changed the plan",
		"workspace.changed":             "Changed the name or time zone of the workspace",
		"workspace.renamed":             "Renamed the workspace",
		"workspace.limits-changed":      "Changed the plan overrides",
		"workspace.alert-url-changed":   "Changed the URL of alerts",
		"workspace.alert-url-removed":   "Removed the URL of alerts",
		"workspace.alert-mails-changed": "Changed who gets alerts by mail",
	}[act]
	if ok {
		return words
	}
	if role, ok := strings.CutPrefix(act, "member.made-"); ok {
		return "Changed the role to " + role
	}
	return word(strings.NewReplacer(".", " ", "-", " ").Replace(act))
}

func (d invitations) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in := people.NewInvitation{
		Email: r.PostFormValue("email"), Role: postern.Role(r.PostFormValue("role")), ByMail: d.mail != nil,
	}
	i, token, err := d.p.Invitations.Create(r.Context(), v.actor, v.workspace(), in)
	if err == nil && in.ByMail {
		err = d.sendMail(r, v, i, token)
	}
	if wrong, ok := faults(err); ok {
		return members(d).showAs(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{
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
