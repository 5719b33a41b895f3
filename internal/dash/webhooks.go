package dash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/dash/charts"
	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const (
	hooksShown = 20                 // per page: each needs a query for its hours
	healthTime = 24 * time.Hour     // the range of an endpoint's health
	lastTime   = 7 * 24 * time.Hour // the range for the last success and failure
)

func (d webhooks) list(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Webhooks.List(r.Context(), v.caller, paging.Page{Cursor: r.FormValue("after"), Limit: hooksShown})
	if err != nil {
		return err
	}
	view := page.WebhooksView{Change: v.mayHook(postern.WebhooksWrite), Plan: v.caller.Plan.API}
	for _, e := range list.Data {
		one, err := d.summary(r, v, e)
		if err != nil {
			return err
		}
		view.Webhooks = append(view.Webhooks, one)
	}
	if list.Next != "" {
		view.More = "/webhooks?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Webhooks(d.frame(r, v, "Webhooks", "/webhooks"), view))
}

// summary returns an endpoint with its recent health.
func (d webhooks) summary(r *http.Request, v visit, e postern.Endpoint) (page.Webhook, error) {
	one := page.Webhook{
		ID: string(e.ID), URL: e.URL, Description: e.Description, Status: string(e.Status), Events: e.Events,
	}
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
	good, bad, err := d.g.Webhooks.LastAttempts(r.Context(), v.caller, e.ID)
	one.LastSuccess, one.LastFailure = later(one.LastSuccess, good.Std()), later(one.LastFailure, bad.Std())
	return one, err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// eventChoices lists all patterns and marks the chosen ones.
func eventChoices(chosen []string) (list []page.EventChoice) {
	about := map[string]string{
		"*": "All events except webhook.disabled.", "message.*": "All message events.", "device.*": "All device events.",
		string(postern.MessageReceived):      "A message from a contact was received.",
		string(postern.MessageEcho):          "A message was sent from the account's phone or another linked device.",
		string(postern.MessageUndecryptable): "A received message could not be decrypted.",
		string(postern.MessageSent):          "The network accepted a message.",
		string(postern.MessageDelivered):     "A message was delivered to the recipient's phone.",
		string(postern.MessageRead):          "The recipient read a message.",
		string(postern.MessagePlayed):        "The recipient played a voice message or a video.",
		string(postern.MessageFailed):        "A message could not be sent.",
		string(postern.MessageExpired):       "A message expired before it was sent.",
		string(postern.MessageCanceled):      "A message was canceled before it was sent.",
		string(postern.MessageReaction):      "Somebody reacted to a message.",
		string(postern.MessageEdited):        "The text of a message was changed.",
		string(postern.MessageDeleted):       "A message was deleted for everyone.",
		string(postern.MessagePinned):        "A message was pinned in its conversation.",
		string(postern.MessageUnpinned):      "A message was unpinned.",
		string(postern.MessageStarred):       "The account starred a message, here or on its phone.",
		string(postern.MessageUnstarred):     "The account removed the star of a message, here or on its phone.",
		string(postern.PollVote):             "Somebody voted in a poll.",
		string(postern.MediaReadyEv):         "The file of a received message can be read.",
		string(postern.MediaFailedEv):        "The file of a received message could not be fetched.",
		string(postern.CallReceived):         "A contact called.",
		string(postern.ContactIdentified):    "The number of a contact became known.",
		string(postern.DeviceLinking):        "A link attempt was opened, needs the passkey of the account, or has ended without a link.",
		string(postern.DevicePhoneUnseen):    "The account's phone has not been seen for ten days.",
		string(postern.DeviceLimited):        "The account may not start chats.",
		string(postern.DeviceUnlimited):      "The account may start chats again.",
		string(postern.GroupJoined):          "The account joined a group.",
		string(postern.GroupLeft):            "The account left a group.",
		string(postern.GroupUpdated):         "A group was changed.",
		string(postern.GroupParticipants):    "People joined or left a group, or became administrators.",
		string(postern.DeviceLinked):         "A phone was linked.",
		string(postern.DeviceConnected):      "A device connected.",
		string(postern.DeviceDisconnected):   "A device lost its connection and is reconnecting.",
		string(postern.DeviceRestricted):     "The network restricted an account.",
		string(postern.DeviceLoggedOutEv):    "A device was logged out by the network or on the phone.",
		string(postern.DeviceBanned):         "The network banned an account.",
		string(postern.DeviceConflict):       "A device's session was opened elsewhere.",
		string(postern.DeviceUnlinked):       "A device was unlinked in Postern.",
		string(postern.DevicePaused):         "A device was paused.",
		string(postern.WebhookDisabled):      "A webhook was disabled automatically.",
	}
	for _, p := range eventPatterns() {
		list = append(list, page.EventChoice{Pattern: p, Text: about[p], Chosen: slices.Contains(chosen, p)})
	}
	return list
}

// eventPatterns lists all patterns that an endpoint can subscribe to: everything, then each
// family with more than one type, followed by its types.
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

func (d webhooks) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in, err := hookForm(r)
	var made gateway.Created[gateway.EndpointWithSecret]
	if err == nil {
		made, err = d.g.Webhooks.Create(r.Context(), v.caller, in, nil)
	}
	if status, view, ok := refusedWebhook(r, err); ok {
		view.Problem = cmp.Or(view.Problem, "The webhook was not added.")
		return d.showForm(w, r, v, status, view, devicesIn(r))
	}
	if err != nil {
		return err
	}
	return d.showSecret(w, r, v, http.StatusCreated, page.WebhookSecretView{
		ID: string(made.Value.ID), URL: made.Value.URL, Secret: made.Value.Secret, Made: true,
	})
}

func (d webhooks) showSecret(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.WebhookSecretView,
) error {
	return d.write(w, r, status, page.WebhookSecret(d.frame(r, v, "Signing secret", "/webhooks"), view))
}

func hookID(r *http.Request) postern.EndpointID { return postern.EndpointID(r.PathValue("id")) }

func hookPath(id postern.EndpointID) string { return "/webhooks/" + string(id) }

func (d webhooks) show(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	now := time.Now()
	hours, err := d.g.Webhooks.Hours(r.Context(), v.caller, e.ID, postern.TimeOf(now.Add(-healthTime)), 0)
	if err != nil {
		return err
	}
	view := page.WebhookView{
		Webhook: page.Webhook{
			ID: string(e.ID), URL: e.URL, Description: e.Description, Status: string(e.Status), Events: e.Events,
		},
		Pending: string(e.PendingURL), Why: whyEndpoint(v.caller.Plan, e), Tries: e.Attempts,
		TriesOf:  postern.HandshakeTries,
		Ordered:  e.Ordered,
		Headers:  e.Headers,
		Signed:   e.Handshake == postern.HandshakeSigned,
		LastFour: e.SecretLastFour, Created: e.CreatedAt.Std(), Verified: e.VerifiedAt.Std(),
		Chart:  charts.Attempts(lastDay(hours.Data, now), charts.LastDay()),
		Change: v.may(postern.WebhooksWrite), Plan: v.caller.Plan.API, InFlight: e.MaxInFlight,
		Key: string(e.PublicKey),
	}
	// DueAt is zero if no attempt is scheduled.
	view.Asked = e.DueAt != 0 && (e.Status == postern.EndpointPending || e.PendingURL != "")
	if view.Asked && e.Attempts > 0 {
		view.NextTry = e.DueAt.Std()
	}
	if view.Devices, err = d.devicesNamed(r.Context(), v, e.DeviceIDs); err != nil {
		return err
	}
	if view.Backlog, err = d.backlogOf(r, v); err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.WebhookPage(d.frame(r, v, "Webhook", "/webhooks"), view))
}

// lastDay returns the last 24 hours, including hours without attempts.
func lastDay(hours []postern.EndpointHour, now time.Time) (list []postern.EndpointHour) {
	for at := now.UTC().Truncate(time.Hour).Add(-23 * time.Hour); !at.After(now); at = at.Add(time.Hour) {
		h := postern.EndpointHour{Hour: postern.TimeOf(at)}
		for _, one := range hours {
			if one.Hour == h.Hour {
				h = one
			}
		}
		list = append(list, h)
	}
	return list
}

func (d webhooks) edit(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.showForm(w, r, v, http.StatusOK, page.WebhookFormView{
		ID: string(e.ID), URL: page.Field{Value: wantedURL(e)}, Description: page.Field{Value: e.Description},
		Events: eventChoices(e.Events), Ordered: e.Ordered,
		Headers: page.Field{Value: headerLines(e.Headers)}, InFlight: page.Field{Value: strconv.Itoa(e.MaxInFlight)},
		V1a:    slices.Contains(e.Signatures, postern.SignatureEd25519),
		Signed: e.Handshake == postern.HandshakeSigned, Seen: stateOfHook(e),
	}, e.DeviceIDs)
}

// stateOfHook identifies what the form of a webhook is filled with.
func stateOfHook(e postern.Endpoint) string {
	return stateOf(
		wantedURL(e), e.Description, e.Events, e.Ordered, e.DeviceIDs, e.Headers, e.MaxInFlight, e.Signatures,
		e.Handshake,
	)
}

// wantedURL is the URL of the endpoint, or the one it is moving to.
func wantedURL(e postern.Endpoint) string { return cmp.Or(string(e.PendingURL), e.URL) }

func (d webhooks) change(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	form, err := hookForm(r)
	in := changeTo(form, e)
	if err == nil && form.URL == "" {
		err = postern.Invalid("/url", "enter the URL")
	}
	if err = cmp.Or(err, checkState(r, stateOfHook(e))); err == nil {
		_, err = d.g.Webhooks.Change(r.Context(), v.caller, e.ID, in)
	}
	if status, view, ok := refusedWebhook(r, err); ok {
		view.ID, view.Problem = string(e.ID), cmp.Or(view.Problem, "The webhook was not changed.")
		if view.Seen = r.PostFormValue("seen"); errors.Is(err, errOutdated) {
			view.Seen = stateOfHook(e)
		}
		return d.showForm(w, r, v, status, view, devicesIn(r))
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The webhook was changed.", hookPath(e.ID))
}

// command runs one operation on an endpoint and shows the endpoint.
func (d webhooks) command(
	w http.ResponseWriter, r *http.Request, v visit,
	do func(context.Context, access.Caller, postern.EndpointID) (postern.Endpoint, error), said string,
) error {
	e, err := do(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.done(w, r, said, onward(r, hookPath(e.ID)))
}

func (d webhooks) verify(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(w, r, v, d.g.Webhooks.Verify, "A new challenge is being sent.")
}

func (d webhooks) pause(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(
		w, r, v, d.g.Webhooks.Pause,
		"The webhook is paused. When you resume it, it receives the events it missed in the last 72 hours.",
	)
}

func (d webhooks) resume(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(
		w, r, v, d.g.Webhooks.Resume, "A challenge is being sent. After that, the webhook receives the events it missed.",
	)
}

// recover attempts everything at once that waits for another attempt.
func (d webhooks) recover(w http.ResponseWriter, r *http.Request, v visit) error {
	n, err := d.g.Deliveries.RetryWaiting(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	progress := fmt.Sprintf("%s?retried=%d&at=%d", hookPath(hookID(r)), n, time.Now().UnixMilli())
	return d.done(w, r, numbers.Many(n, "delivery is", "deliveries are")+" being attempted again.", onward(r, progress))
}

// backlog returns what a webhook has not received, for its page, which asks for it again.
func (d webhooks) backlog(w http.ResponseWriter, r *http.Request, v visit) error {
	view, err := d.backlogOf(r, v)
	if err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.Backlog(view))
}

func (d webhooks) backlogOf(r *http.Request, v visit) (view page.BacklogView, err error) {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return view, err
	}
	retried, _ := strconv.Atoi(r.FormValue("retried")) // 0 for anything else
	at, _ := strconv.ParseInt(r.FormValue("at"), 10, 64)
	b, err := d.g.Deliveries.Backlog(r.Context(), v.caller, e.ID, 0, postern.Time(at))
	if err != nil {
		return view, err
	}
	active := e.Status == postern.EndpointActive
	view = page.BacklogView{
		Webhook: string(e.ID), Active: active, FailingSince: timeOf(b.FailingSince),
		Retried: min(max(retried, 0), gateway.Counted), At: at, Older: b.Older,
		Waiting: b.Waiting, WaitingSince: timeOf(b.WaitingSince), WaitingText: counted(b.Waiting, "event", "events"),
		Failed: b.Failed, FailedText: upTo(b.Failed, gateway.MostFailed, "event", "events"),
		RetryLabel: "Retry " + numbers.Of(b.Waiting) + " now",
		Retry:      active && v.mayHook(postern.WebhooksWrite),
		Replay:     active && v.mayHook(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead),
	}
	if b.Failed < gateway.MostFailed {
		view.FailedSince = timeOf(b.FailedSince)
	}
	if b.FailingSince > 0 {
		view.Failures = d.failures(r.Context(), v, hookID(r), b.FailingSince)
	}
	return view, err
}

func (d webhooks) test(w http.ResponseWriter, r *http.Request, v visit) error {
	made, err := d.g.Webhooks.Test(r.Context(), v.caller, hookID(r), nil)
	if err != nil {
		return err
	}
	return d.done(w, r, "A test event is being sent.", deliveryPath(made.Value))
}

func (d webhooks) rotateSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	overlap, err := duration("/overlap", r.PostFormValue("overlap"))
	if err != nil {
		return err
	}
	made, err := d.g.Webhooks.RotateSecret(r.Context(), v.caller, hookID(r), gateway.NewSecret{Overlap: &overlap}, nil)
	if err != nil {
		return err
	}
	view := page.WebhookSecretView{ID: string(made.Value.ID), URL: made.Value.URL, Secret: made.Value.Secret}
	if overlap > 0 {
		view.Old = time.Now().Add(overlap)
	}
	return d.showSecret(w, r, v, http.StatusCreated, view)
}

func (d webhooks) askSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.askSecretAs(w, r, v, http.StatusOK, page.WebhookRevealView{ID: string(e.ID)})
}

func (d webhooks) askSecretAs(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.WebhookRevealView,
) (err error) {
	if view.Again, err = d.again(r, v, r.URL.Path); err != nil {
		return err
	}
	return d.write(w, r, status, page.WebhookReveal(d.frame(r, v, "Signing secret", "/webhooks"), view))
}

func (d webhooks) revealSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.RevealSecret(r.Context(), v.caller, hookID(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.askSecretAs(w, r, v, http.StatusUnprocessableEntity, page.WebhookRevealView{
			ID: r.PathValue("id"), Password: page.Field{Error: wrong["password"]},
		})
	}
	if err != nil {
		return err
	}
	return d.showSecret(w, r, v, http.StatusOK, page.WebhookSecretView{ID: string(e.ID), URL: e.URL, Secret: e.Secret})
}

func (d webhooks) delete(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.g.Webhooks.Delete(r.Context(), v.caller, hookID(r)); err != nil {
		return err
	}
	return d.done(w, r, "The webhook was deleted.", "/webhooks")
}

func (d webhooks) form(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := v.caller.PermitWebhooks(); err != nil {
		return err
	}
	return d.showForm(w, r, v, http.StatusOK, page.WebhookFormView{Events: eventChoices([]string{"*"})}, nil)
}

// showForm shows the form with the chosen devices.
func (d webhooks) showForm(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.WebhookFormView, chosen []postern.DeviceID,
) error {
	var err error
	if view.Devices, err = d.deviceChoices(r, v, chosen); err != nil {
		return err
	}
	title := "New webhook"
	if view.ID != "" {
		title = "Edit webhook"
	}
	return d.write(w, r, status, page.WebhookForm(d.frame(r, v, title, "/webhooks"), view))
}

// deviceChoices lists devices to choose from, and always the chosen ones.
func (d *core) deviceChoices(
	r *http.Request, v visit, chosen []postern.DeviceID,
) (list []page.DeviceChoice, err error) {
	names, err := d.deviceNames(r.Context(), v, chosen...)
	for _, id := range chosen {
		names[id] = cmp.Or(names[id], string(id))
	}
	for _, c := range choices(names, "") {
		list = append(list, page.DeviceChoice{
			ID: c.Value, Name: c.Label, Chosen: slices.Contains(chosen, postern.DeviceID(c.Value)),
		})
	}
	return list, err
}

// hookForm reads the form of a webhook. A form without events means no events, not all of them.
func hookForm(r *http.Request) (in gateway.NewEndpoint, err error) {
	in = gateway.NewEndpoint{
		URL: r.PostFormValue("url"), Description: r.PostFormValue("description"),
		Ordered: r.PostFormValue("ordered") != "",
		Events:  append([]string{}, r.PostForm["event"]...), DeviceIDs: devicesIn(r),
		Signatures: []string{postern.SignatureHMAC}, Handshake: postern.HandshakeEcho,
	}
	if r.PostFormValue("signed") != "" {
		in.Handshake = postern.HandshakeSigned
	}
	if r.PostFormValue("v1a") != "" {
		in.Signatures = append(in.Signatures, postern.SignatureEd25519)
	}
	if n := strings.TrimSpace(r.PostFormValue("inFlight")); n != "" {
		var ok bool
		if in.MaxInFlight, ok = numbers.Read(n); !ok || in.MaxInFlight < 1 {
			return in, postern.Invalid("/maxInFlight", "enter a number from 1 to 64")
		}
	}
	in.Headers, err = headersIn(r.PostFormValue("headers"))
	return in, err
}

// devicesIn returns the devices chosen in a form; nil means all.
func devicesIn(r *http.Request) (list []postern.DeviceID) {
	for _, id := range r.PostForm["device"] {
		list = append(list, postern.DeviceID(id))
	}
	return list
}

// headersIn reads one header from each non-empty line.
func headersIn(text string) (map[string]string, error) {
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || hasHeader(headers, name) {
			return nil, postern.Invalid("/headers",
				"enter each header once, on its own line, for example X-Tenant: acme")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// hasHeader reports whether the headers include a name, in any case.
func hasHeader(headers map[string]string, name string) bool {
	for other := range headers {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// headerLines shows the names of headers. Their values are not shown again.
func headerLines(names []string) (text string) {
	for _, name := range names {
		text += name + ":\n"
	}
	return text
}

// headerChange returns the change from the headers of an endpoint to those of a form. A name
// without a value keeps the value that it has.
func headerChange(form map[string]string, e postern.Endpoint) gateway.Change[map[string]gateway.Change[string]] {
	list := map[string]gateway.Change[string]{}
	for _, name := range e.Headers {
		list[name] = gateway.Change[string]{Given: true}
	}
	for name, value := range form {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if _, has := list[name]; has && value == "" {
			delete(list, name)
		} else {
			list[name] = gateway.Change[string]{Given: true, Value: &value}
		}
	}
	return gateway.Change[map[string]gateway.Change[string]]{Given: true, Value: &list}
}

// changeTo returns the change from an endpoint to a form. An unchanged URL needs no
// verification, and unchanged signatures keep their keys.
func changeTo(form gateway.NewEndpoint, e postern.Endpoint) gateway.EndpointChange {
	in := gateway.EndpointChange{
		URL: form.URL, Description: &form.Description, Ordered: &form.Ordered, Events: form.Events,
		DeviceIDs: gateway.Change[[]postern.DeviceID]{Given: true},
		Headers:   headerChange(form.Headers, e), MaxInFlight: form.MaxInFlight, Signatures: form.Signatures,
		Handshake: form.Handshake,
	}
	if form.DeviceIDs != nil {
		in.DeviceIDs.Value = &form.DeviceIDs
	}
	if form.URL == wantedURL(e) {
		in.URL = ""
	}
	if slices.Equal(form.Signatures, e.Signatures) {
		in.Signatures = nil
	}
	return in
}

// refusedWebhook returns the form again if its fields were refused.
func refusedWebhook(r *http.Request, err error) (status int, view page.WebhookFormView, ok bool) {
	wrong, is := faults(err)
	if !is && postern.ReasonOf(err) != postern.EndpointLimit && !errors.Is(err, errOutdated) {
		return 0, view, false
	}
	view = page.WebhookFormView{
		URL:         page.Field{Value: r.PostFormValue("url"), Error: wrong["url"]},
		Description: page.Field{Value: r.PostFormValue("description"), Error: wrong["description"]},
		Events:      eventChoices(r.PostForm["event"]), EventsError: wrong["events"],
		Ordered: r.PostFormValue("ordered") != "", DevicesError: wrong["deviceIds"],
		Headers:  page.Field{Value: r.PostFormValue("headers"), Error: wrong["headers"]},
		InFlight: page.Field{Value: r.PostFormValue("inFlight"), Error: wrong["maxInFlight"]},
		V1a:      r.PostFormValue("v1a") != "", Signed: r.PostFormValue("signed") != "",
	}
	if !is {
		view.Problem = word(err.Error()) + "."
	}
	return http.StatusUnprocessableEntity, view, true
}
