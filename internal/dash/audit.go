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
)

// audit shows what was done; an unknown kind asks for all.
func (d *dash) audit(w http.ResponseWriter, r *http.Request, v visit) error {
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
		view.More = "/people/audit?" + url.Values{"who": {view.Who.Value}, "kind": {view.Kind}, "after": {list.Next}}.Encode()
	}
	return d.show(w, r, http.StatusOK, page.Audit(d.frame(r, v, "Audit log", "/people"), view))
}

func actOf(a people.Act) page.Act {
	who := cmp.Or(a.Email, string(a.UserID), "The operator")
	return page.Act{At: a.At.Std(), Who: who, What: actWords(a.Act), Subject: cmp.Or(a.Name, a.Subject), Address: a.Address}
}

func kindWords(kind string) string {
	return map[string]string{
		"device": "Devices", "webhook": "Webhooks", "message": "Messages", "key": "API keys", "member": "Members", "invitation": "Invitations", "user": "Users", "workspace": "The workspace",
	}[kind]
}

// actWords says an act in plain words. One without words of its own is still told:
// "webhook.paused" is "Webhook paused".
func actWords(act string) string {
	words, ok := map[string]string{ //nolint:gosec // words about secrets, and none of them
		"key.created": "Created an API key", "key.rotated": "Rotated an API key", "key.revoked": "Revoked an API key",
		"user.set-up": "Set the server up", "user.created": "Added a user",
		"invitation.created": "Invited", "invitation.revoked": "Revoked an invitation", "invitation.accepted": "Joined",
		"member.removed": "Removed from the workspace",
		"device.created": "Added a device", "device.deleted": "Deleted a device", "device.unlinked": "Unlinked a device",
		"device.paused": "Paused a device", "device.resumed": "Resumed a device",
		"device.link-opened": "Started to link a phone", "device.link-shared": "Shared a page to link a phone", "device.link-canceled": "Stopped the linking of a phone",
		"webhook.tested": "Sent a test event to a webhook", "webhook.delivery-retried": "Had an event delivered again", "webhook.replay-stopped": "Stopped a replay",
		"message.exported": "Exported messages",
		"webhook.created":  "Added a webhook", "webhook.changed": "Changed a webhook", "webhook.deleted": "Deleted a webhook",
		"webhook.verified-again": "Sent a webhook its challenge again",
		"webhook.paused":         "Paused a webhook", "webhook.resumed": "Resumed a webhook", "webhook.replayed": "Replayed events to a webhook",
		"webhook.secret-revealed": "Saw the secret of a webhook", "webhook.secret-rotated": "Rotated the secret of a webhook",
		"message.sent":      "Sent a message by hand",
		"workspace.created": "Created the workspace", "workspace.plan-changed": "Changed the plan", "workspace.limits-changed": "Changed the overrides of the plan",
	}[act]
	if ok {
		return words
	}
	if role, ok := strings.CutPrefix(act, "member.made-"); ok {
		return "Changed the role to " + role
	}
	return word(strings.NewReplacer(".", " ", "-", " ").Replace(act))
}
