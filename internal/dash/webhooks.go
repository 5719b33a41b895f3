package dash

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const (
	hooksShown = 20                 // on a page: each is asked for its hours
	healthTime = 24 * time.Hour     // that the health of an endpoint is about
	lastTime   = 7 * 24 * time.Hour // that a last success or failure is looked for in
)

// webhookRoutes ask for the scopes that the API asks for (api/scopes.go).
func (d *dash) webhookRoutes() {
	const read, write = postern.WebhooksRead, postern.WebhooksWrite
	d.member("GET /webhooks", d.webhooks, read)
	d.member("GET /webhooks/new", d.newWebhook, write, postern.MessagesRead, postern.EventsRead)
	d.member("POST /webhooks", d.createWebhook, write, postern.MessagesRead, postern.EventsRead)
	d.hook("GET /webhooks/{id}", d.webhook, read)
	d.hook("POST /webhooks/{id}", d.changeWebhook, write)
	d.hook("GET /webhooks/{id}/edit", d.editWebhook, write)
	d.hook("POST /webhooks/{id}/verify", d.verifyWebhook, write)
	d.hook("POST /webhooks/{id}/test", d.testWebhook, write)
	d.hook("POST /webhooks/{id}/pause", d.pauseWebhook, write)
	d.hook("POST /webhooks/{id}/resume", d.resumeWebhook, write)
	d.hook("POST /webhooks/{id}/rotate", d.rotateSecret, write)
	d.hook("GET /webhooks/{id}/secret", d.askSecret, write)
	d.hook("POST /webhooks/{id}/secret", d.revealSecret, write)
	d.hook("POST /webhooks/{id}/delete", d.deleteWebhook, write)
	d.hook("GET /webhooks/{id}/deliveries", d.deliveries, read)
	d.hook("GET /webhooks/{id}/deliveries/{delivery}", d.delivery, read) // its body needs more: gateway.Delivery
	d.hook("POST /webhooks/{id}/deliveries/{delivery}/retry", d.retryDelivery, write)
	d.hook("GET /webhooks/{id}/replays", d.replays, read)
	d.hook("GET /webhooks/{id}/replay", d.newReplay, write, postern.MessagesRead, postern.EventsRead)
	d.hook("POST /webhooks/{id}/replay", d.createReplay, write, postern.MessagesRead, postern.EventsRead)
	d.hook("GET /webhooks/{id}/replays/{replay}", d.replay, read)
	d.hook("POST /webhooks/{id}/replays/{replay}/stop", d.stopReplay, write)
}

// hook serves a page of one endpoint. A member may see all that the workspace has,
// so that what must not be used is another workspace's: it is not there.
func (d *dash) hook(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope) {
	d.member(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		err := serve(w, r, v)
		if reason := postern.ReasonOf(err); reason == postern.ResourceNotAllowed || reason == postern.NotFound {
			return postern.Errorf(postern.NotFound, "there is no such webhook, or what was asked of it is gone")
		}
		return err
	}, scopes...)
}

func (d *dash) webhooks(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Webhooks.List(r.Context(), v.caller, paging.Page{Cursor: r.FormValue("after"), Limit: hooksShown})
	if err != nil {
		return err
	}
	view := page.WebhooksView{Change: v.may(postern.WebhooksWrite)}
	for _, e := range list.Data {
		one, err := d.webhookOf(r, v, e)
		if err != nil {
			return err
		}
		view.Webhooks = append(view.Webhooks, one)
	}
	if list.Next != "" {
		view.More = "/webhooks?after=" + url.QueryEscape(list.Next)
	}
	return d.show(w, r, http.StatusOK, page.Webhooks(d.frame(r, v, "Webhooks", "/webhooks"), view))
}

// may tells whether what needs the scopes is offered.
func (v visit) may(scopes ...postern.Scope) bool { return v.caller.Permit(scopes...) == nil }

// webhookOf is an endpoint with how it is doing.
func (d *dash) webhookOf(r *http.Request, v visit, e postern.Endpoint) (page.Webhook, error) {
	one := page.Webhook{ID: string(e.ID), URL: e.URL, Description: e.Description, Status: string(e.Status), Events: e.Events}
	now := time.Now()
	hours, err := d.g.Webhooks.Hours(r.Context(), v.caller, e.ID, postern.TimeOf(now.Add(-lastTime)), 0)
	if err != nil {
		return one, err
	}
	for _, h := range hours.Data {
		at := h.Hour.Std()
		if at.After(now.Add(-healthTime)) {
			one.Succeeded += int(h.Succeeded)
			one.Failed += int(h.Failed)
		}
		if h.Succeeded > 0 && at.After(one.LastSuccess) {
			one.LastSuccess = at
		}
		if h.Failed > 0 && at.After(one.LastFailure) {
			one.LastFailure = at
		}
	}
	return one, nil
}

// eventChoices are all patterns, some of them chosen.
func eventChoices(chosen []string) (list []page.EventChoice) {
	about := map[string]string{
		"*": "Everything but webhook.disabled.", "message.*": "All about messages.", "device.*": "All about devices.",
		string(postern.MessageReceived): "A contact wrote.", string(postern.MessageEcho): "The account wrote from its phone or elsewhere.",
		string(postern.MessageUndecryptable): "A message came that could not be read.", string(postern.MessageSent): "The network took a message.",
		string(postern.MessageDelivered): "A message arrived at the phone.", string(postern.MessageRead): "The recipient has read a message.",
		string(postern.MessageFailed): "A message was not sent.", string(postern.MessageExpired): "A message was given up.",
		string(postern.DeviceLinked): "A phone scanned the code.", string(postern.DeviceConnected): "The session is live.",
		string(postern.DeviceDisconnected): "The session was lost; it is tried again.", string(postern.DeviceRestricted): "The network restricts the account.",
		string(postern.DeviceLoggedOutEv): "The link was removed.", string(postern.DeviceBanned): "The network has banned the account.",
		string(postern.DeviceConflict): "The session was opened elsewhere.", string(postern.DeviceUnlinked): "Somebody unlinked the device.",
		string(postern.DevicePaused): "The device was paused.", string(postern.WebhookDisabled): "A webhook was given up.",
	}
	for _, p := range eventPatterns() {
		list = append(list, page.EventChoice{Pattern: p, Text: about[p], Chosen: slices.Contains(chosen, p)})
	}
	return list
}

// eventPatterns are all that an endpoint may ask for: everything, then each family
// of more than one before its kinds.
func eventPatterns() []string {
	list, of := []string{"*"}, map[string]int{}
	for _, t := range postern.EventTypes() {
		of[family(t)]++
	}
	for _, t := range postern.EventTypes() {
		if f := family(t); of[f] > 1 && !slices.Contains(list, f) {
			list = append(list, f)
		}
		list = append(list, string(t))
	}
	return list
}

func family(t postern.EventType) string {
	name, _, _ := strings.Cut(string(t), ".")
	return name + ".*"
}

func (d *dash) createWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	in, err := hookForm(r)
	var made gateway.Created[gateway.EndpointWithSecret]
	if err == nil {
		made, err = d.g.Webhooks.Create(r.Context(), v.caller, in, nil)
	}
	if status, view, ok := refusedWebhook(r, err); ok {
		view.Problem = cmp.Or(view.Problem, "The webhook was not added.")
		return d.showWebhookForm(w, r, v, status, view, devicesIn(r))
	}
	if err != nil {
		return err
	}
	return d.showSecret(w, r, v, http.StatusCreated, page.WebhookSecretView{ID: string(made.Value.ID), URL: made.Value.URL, Secret: made.Value.Secret, Made: true})
}

func (d *dash) showSecret(w http.ResponseWriter, r *http.Request, v visit, status int, view page.WebhookSecretView) error {
	return d.show(w, r, status, page.WebhookSecret(d.frame(r, v, "Signing secret", "/webhooks"), view))
}
