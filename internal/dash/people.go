package dash

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/internal/dash/page"
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
	return d.write(w, r, status, page.People(d.frame(r, v, "People", "/people"), view))
}

// roleChoices lists the roles that a member may assign.
func roleChoices(mine postern.Role) (list []page.Choice) {
	about := map[postern.Role]string{
		postern.Owner:     "full access, including managing owners",
		postern.Admin:     "everything a developer can do, and manages members",
		postern.Developer: "sends messages, changes devices and webhooks, and creates API keys",
		postern.Viewer:    "sees devices, messages, and webhooks, but cannot change them",
	}
	for _, role := range postern.Roles() {
		if mine.Invites(role) {
			list = append(list, page.Choice{Value: string(role), Label: word(string(role)) + ": " + about[role]})
		}
	}
	return list
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
	for _, a := range list.Data {
		view.Acts = append(view.Acts, actOf(a))
	}
	if list.Next != "" {
		view.More = "/people/audit?" + url.Values{"who": {view.Who.Value}, "kind": {view.Kind},
			"after": {list.Next}}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Audit(d.frame(r, v, "Audit log", "/people"), view))
}

func actOf(a people.Act) page.Act {
	return page.Act{
		At: a.At.Std(), Who: actorOf(a), What: actWords(a.Act), Subject: cmp.Or(a.Name, a.Subject), Address: a.Address,
	}
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
		"invitation": "Invitations", "user": "Users", "workspace": "Workspace",
	}[kind]
}

// actWords describes an act. An act without its own description is spelled out:
// "webhook.paused" becomes "Webhook paused".
func actWords(act string) string {
	words, ok := map[string]string{ //nolint:gosec // words about secrets, and none of them
		"key.created": "Created an API key", "key.rotated": "Rotated an API key", "key.revoked": "Revoked an API key",
		"user.sign-in-failed":     "Entered a wrong password at the sign-in",
		"user.second-step-failed": "Entered a wrong code at the sign-in",
		"user.password-refused":   "Entered a wrong password to confirm a change",
		"user.set-up":             "Set up the server", "user.created": "Added a user",
		"invitation.created": "Invited", "invitation.revoked": "Revoked an invitation", "invitation.accepted": "Joined",
		"member.removed": "Removed a member",
		"device.created": "Added a device", "device.deleted": "Deleted a device", "device.unlinked": "Unlinked a device",
		"device.paused": "Paused a device", "device.resumed": "Resumed a device",
		"device.link-opened": "Started to link a phone", "device.link-shared": "Shared a link page",
		"device.link-canceled": "Canceled linking a phone",
		"webhook.tested":       "Sent a test event to a webhook", "webhook.delivery-retried": "Retried a delivery",
		"webhook.replay-stopped": "Stopped a replay",
		"message.exported":       "Exported messages",
		"webhook.created":        "Added a webhook",
		"webhook.changed":        "Changed a webhook", "webhook.deleted": "Deleted a webhook",
		"webhook.verified-again": "Verified a webhook again",
		"webhook.paused":         "Paused a webhook", "webhook.resumed": "Resumed a webhook",
		"webhook.replayed":        "Replayed events to a webhook",
		"webhook.secret-revealed": "Revealed the secret of a webhook",
		"webhook.secret-rotated":  "Rotated the secret of a webhook",
		"message.sent":            "Sent a message from the dashboard",
		"workspace.created":       "Created the workspace", "workspace.plan-changed": "Changed the plan",
		"workspace.limits-changed": "Changed the plan overrides",
	}[act]
	if ok {
		return words
	}
	if role, ok := strings.CutPrefix(act, "member.made-"); ok {
		return "Changed the role to " + role
	}
	return word(strings.NewReplacer(".", " ", "-", " ").Replace(act))
}
