package dash

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func deliveryPath(of postern.Delivery) string {
	return hookPath(of.EndpointID) + "/deliveries/" + string(of.ID)
}

func (d deliveries) list(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	view := page.DeliveriesView{
		ID: string(e.ID), URL: e.URL, Type: r.FormValue("type"),
		Types: append(eventPatterns()[1:], string(postern.WebhookTest), string(postern.WebhookVerification)),
	}
	q := gateway.DeliveryQuery{Page: paging.Page{Cursor: r.FormValue("after")}}
	switch s := postern.DeliveryStatus(r.FormValue("status")); s {
	case postern.DeliveryPending, postern.DeliverySucceeded, postern.DeliveryExhausted: // any other value selects all
		q.Status, view.Status = string(s), string(s)
	}
	if view.Type != "" {
		q.Types = []string{view.Type}
	}
	list, err := d.g.Deliveries.List(r.Context(), v.caller, e.ID, q)
	if err != nil {
		return err
	}
	for _, one := range list.Data {
		view.Deliveries = append(view.Deliveries, deliveryOf(one))
	}
	if list.Next != "" {
		view.More = hookPath(e.ID) + "/deliveries?" + url.Values{
			"status": {view.Status}, "type": {view.Type}, "after": {list.Next},
		}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Deliveries(d.frame(r, v, "Deliveries", "/webhooks"), view))
}

func deliveryOf(one postern.Delivery) page.Delivery {
	p := page.Delivery{
		ID: string(one.ID), Event: string(one.EventID), Type: string(one.Type), Status: string(one.Status),
		Attempts: one.Attempts,
		Created:  one.CreatedAt.Std(), Outcome: outcome(one),
	}
	if one.Status == postern.DeliveryPending {
		p.Next = one.NextAttemptAt.Std()
	}
	return p
}

// outcome describes the result of the last attempt.
func outcome(one postern.Delivery) string {
	switch {
	case one.Attempts == 0:
		return "None yet"
	case one.LastReason == "challenge":
		return "Wrong challenge"
	case one.LastReason == "signature":
		return "Wrong signature"
	case one.LastStatus != 0:
		return "HTTP " + strconv.Itoa(one.LastStatus)
	}
	return cmp.Or(whyAttempt(string(one.LastReason)).What, "No response")
}

// get returns the one in the path, if it belongs to the endpoint in the path.
func (d deliveries) get(r *http.Request, v visit) (gateway.DeliveryLog, error) {
	l, err := d.g.Deliveries.Get(r.Context(), v.caller, postern.DeliveryID(r.PathValue("delivery")))
	if err == nil && l.EndpointID != hookID(r) {
		err = postern.Errorf(postern.NotFound, "this delivery does not exist")
	}
	return l, err
}

func (d deliveries) show(w http.ResponseWriter, r *http.Request, v visit) error {
	l, err := d.get(r, v)
	if err != nil {
		return err
	}
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, l.EndpointID)
	if err != nil {
		return err
	}
	view := page.DeliveryView{
		Webhook: string(e.ID), URL: e.URL, Delivery: deliveryOf(l.Delivery),
		Logged: v.may(postern.EventsRead) && !strings.HasPrefix(string(l.Type), "webhook."),
		Body:   indented(l.Body), Hidden: d.hidden(v, l),
		Headers: []page.Header{
			{Name: "Content-Type", Value: "application/json"}, {Name: "webhook-id", Value: string(l.EventID)},
		},
		Retry: v.mayHook(postern.WebhooksWrite) && e.Status == postern.EndpointActive &&
			l.Type != postern.WebhookVerification,
	}
	if l.DeviceID != "" {
		of, err := d.devicesNamed(r.Context(), v, []postern.DeviceID{l.DeviceID})
		if err != nil {
			return err
		}
		view.Device = of[0]
	}
	if v.may(postern.MessagesRead) {
		view.Message = messageIn(l.Body)
	}
	for _, a := range l.Attempts {
		view.Attempts = append(view.Attempts, page.Attempt{
			Number: a.Number, At: a.At.Std(), Signed: a.At.Std(), DurationMs: a.DurationMs, Status: a.Status,
			Why:  whyAnswer(string(a.Reason), a.Status, l.Status == postern.DeliveryPending),
			Good: a.Reason == "", Answer: a.Answer,
		})
	}
	return d.write(w, r, http.StatusOK, page.DeliveryPage(d.frame(r, v, "Delivery", "/webhooks"), view))
}

// messageIn returns the id of the message that an event is about; "" if it is about none.
func messageIn(body []byte) string {
	var in struct {
		Message struct {
			ID string `json:"id"`
		} `json:"message"`
	}
	if json.Unmarshal(body, &in) != nil {
		return ""
	}
	return in.Message.ID
}

// hidden explains why there is no body to show.
func (deliveries) hidden(v visit, l gateway.DeliveryLog) string {
	switch {
	case l.Body != nil:
		return ""
	case !v.may(postern.MessagesRead, postern.EventsRead):
		return "Your role cannot read events."
	}
	return "The body is no longer stored."
}

// indented formats JSON for reading and returns anything else unchanged.
func indented(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return string(body)
	}
	return b.String()
}

func (d deliveries) retry(w http.ResponseWriter, r *http.Request, v visit) error {
	l, err := d.get(r, v)
	if err != nil {
		return err
	}
	if _, err := d.g.Deliveries.Retry(r.Context(), v.caller, l.ID, nil); err != nil {
		return err
	}
	return d.done(w, r, "The delivery is being attempted again.", deliveryPath(l.Delivery))
}

// whyEndpoint explains the state of an endpoint. Without a plan with webhooks nothing else
// matters.
func whyEndpoint(plan postern.Plan, e postern.Endpoint) page.Why {
	switch {
	case !plan.API:
		return stateReasons()["plan"]
	case e.Status == postern.EndpointPending && e.StatusReason == "":
		return page.Why{
			What: "Postern is sending a challenge to the URL.",
			Do:   "Your endpoint must respond with the challenge from the request body. After that, it receives events.",
		}
	case e.StatusReason == "":
		return page.Why{}
	}
	w, ok := stateReasons()[string(e.StatusReason)]
	if !ok {
		return whyAttempt(string(e.StatusReason))
	}
	return w
}

// stateReasons explains the reasons that only an endpoint's state has.
func stateReasons() map[string]page.Why {
	return map[string]page.Why{
		"gone": {
			What: "The endpoint responded with 410 Gone, so deliveries to it stopped.",
			Do: "Make the endpoint respond again, then press Resume. It then receives the events it missed in the last 72 " +
				"hours.",
		},
		"failing": {
			What: "No delivery has succeeded for five days.",
			Do:   "Check the deliveries, fix the receiver, then press Resume. To send events older than 72 hours, use a replay.",
		},
		"user": {
			What: "The webhook is paused.",
			Do: "Press Resume to send a challenge. After that, the webhook receives the events it missed " +
				"in the last 72 hours.",
		},
		"plan": {
			What: "The workspace's plan does not include webhooks.",
			Do:   "After the plan has been changed, the webhook receives the events it missed in the last 72 hours.",
		},
	}
}

// whyAnswer explains why an attempt failed, with advice for the status that the endpoint responded with. again tells
// whether there will be another attempt.
func whyAnswer(reason string, status int, again bool) page.Why {
	why := whyAttempt(reason)
	switch {
	case reason != "status":
		return why
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		why.Do = "Check the webhook's custom headers, or accept requests without a login and verify their signature. A " +
			"firewall may also have refused this request."
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		why.Do = "Check the path in the URL, and that the receiver accepts POST requests there."
	case status == http.StatusTooManyRequests:
		why.Do = "If this happens often, lower “Concurrent deliveries” for this webhook."
	case status >= http.StatusInternalServerError:
		why.Do = "The receiver failed, or is not running behind its proxy. Check its logs."
	}
	if again {
		why.Do += " Postern tries again later."
	}
	return why
}

// whyAttempt explains why a POST failed; "" means that it did not.
func whyAttempt(reason string) page.Why {
	known := map[string]page.Why{
		"dns": {What: "The host name in the URL was not found.", Do: "Check its spelling and that it is in public DNS."},
		"connect": {
			What: "The connection failed.",
			Do:   "Check that the server is running, listens on this port, and is not blocked by a firewall.",
		},
		"tls": {
			What: "The TLS handshake failed.",
			Do: "Use a certificate for this host name from a public certificate authority, include all intermediate " +
				"certificates, and support TLS 1.2 or later.",
		},
		"timeout": {
			What: "The endpoint did not respond in time.",
			Do: "Respond first and process the event afterwards. The limit is 10 seconds for a challenge and 15 seconds for " +
				"an event.",
		},
		"reset": {
			What: "The connection was closed before a response arrived.",
			Do:   "Check the logs of the server and of any proxy in front of it.",
		},
		"redirect": {
			What: "The endpoint responded with a redirect. Postern does not follow redirects.",
			Do:   "Enter the URL that it redirects to. Often only https or a trailing slash is missing.",
		},
		"blocked": {
			What: "The URL leads to a private or reserved address, which is not allowed.",
			Do:   "Use a public address. The server's operator can allow private networks.",
		},
		"status": {
			What: "The endpoint responded with a status other than 2xx.",
			Do:   "Accept POST requests without a login, verify the signature, and respond with 200.",
		},
		"body": {
			What: "The response could not be read. It is malformed or incomplete, or its headers are too large.",
			Do:   "Check what the server and any proxy in front of it return.",
		},
		"challenge": {
			What: "The endpoint responded, but not with the challenge.",
			Do: `Respond with {"challenge":"…"} using the challenge from the request body, or with the challenge ` +
				`as plain text. The sample receivers shown with the secret do this.`,
		},
		"signature": {
			What: "The endpoint responded with the challenge, but its signature is wrong or missing.",
			Do: `Respond with {"challenge":"…","signature":"v1,…"}, where the signature is the base64 form of ` +
				`HMAC-SHA256 over the challenge. The sample receivers shown with the secret do this.`,
		},
	}
	w, ok := known[reason]
	if !ok && reason != "" {
		return page.Why{What: "The attempt failed: " + reason + "."}
	}
	return w
}

// formTime is the time format of form fields.
const formTime = "2006-01-02T15:04"

// form shows the form for a replay of the last day, or from the time and of the failed events that a link names.
func (d replays) form(w http.ResponseWriter, r *http.Request, v visit) error {
	yesterday := time.Now().UTC().Add(-healthTime).Format(formTime)
	return d.showForm(w, r, v, http.StatusOK, page.ReplayFormView{
		Since: page.Field{Value: cmp.Or(r.FormValue("since"), yesterday)}, Types: eventChoices(nil)[1:],
		OnlyFailed: r.FormValue("failed") != "",
	})
}

// failed says how many failed events a replay from a time would send.
func (d replays) failed(w http.ResponseWriter, r *http.Request, v visit) error {
	since, err := timeIn(r, "since")
	if err != nil {
		return d.write(w, r, http.StatusOK, page.FailedEvents(""))
	}
	b, err := d.g.Deliveries.Backlog(r.Context(), v.caller, hookID(r), since, 0)
	if err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.FailedEvents(upTo(b.Failed, gateway.MostFailed, "event", "events")))
}

func (d replays) showForm(w http.ResponseWriter, r *http.Request, v visit, status int, view page.ReplayFormView) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	view.ID, view.URL = string(e.ID), e.URL
	return d.write(w, r, status, page.ReplayForm(d.frame(r, v, "Replay events", "/webhooks"), view))
}

func (d replays) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in, err := replayForm(r)
	var made gateway.Created[postern.Replay]
	if err == nil {
		made, err = d.g.Replays.Create(r.Context(), v.caller, hookID(r), in, nil)
	}
	wrong, ok := faults(err)
	if reason := postern.ReasonOf(err); ok || reason == postern.ReplayLimit || reason == postern.EndpointNotActive {
		view := page.ReplayFormView{
			Since: page.Field{Value: r.PostFormValue("since"), Error: wrong["since"]},
			Until: page.Field{Value: r.PostFormValue("until"), Error: wrong["until"]},
			Types: eventChoices(r.PostForm["type"])[1:], TypesError: wrong["types"], OnlyFailed: in.OnlyFailed,
			Problem: "The replay was not started.",
		}
		if !ok {
			view.Problem = word(err.Error()) + "."
		}
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, view)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, replayPath(made.Value))
}

func replayForm(r *http.Request) (in gateway.NewReplay, err error) {
	in = gateway.NewReplay{Types: r.PostForm["type"], OnlyFailed: r.PostFormValue("failed") != ""}
	if in.Since, err = timeIn(r, "since"); err == nil {
		in.Until, err = timeIn(r, "until")
	}
	return in, err
}

// timeIn reads a time in UTC from a form field; 0 if it is empty.
func timeIn(r *http.Request, name string) (postern.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	for _, layout := range []string{formTime, formTime + ":05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return postern.TimeOf(t), nil
		}
	}
	return 0, postern.Invalid("/"+name, "enter a time such as 2026-11-21T09:00")
}

func replayPath(of postern.Replay) string {
	return hookPath(of.EndpointID) + "/replays/" + string(of.ID)
}

// get returns the one in the path, if it belongs to the endpoint in the path.
func (d replays) get(r *http.Request, v visit) (postern.Replay, error) {
	one, err := d.g.Replays.Get(r.Context(), v.caller, postern.ReplayID(r.PathValue("replay")))
	if err == nil && one.EndpointID != hookID(r) {
		err = postern.Errorf(postern.NotFound, "this replay does not exist")
	}
	return one, err
}

func (d replays) show(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.get(r, v)
	if err != nil {
		return err
	}
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, one.EndpointID)
	if err != nil {
		return err
	}
	view := replayOf(one)
	view.URL, view.Stop = e.URL, v.may(postern.WebhooksWrite)
	return d.write(w, r, http.StatusOK, page.ReplayPage(d.frame(r, v, "Replay", "/webhooks"), view))
}

func replayOf(one postern.Replay) page.ReplayView {
	return page.ReplayView{
		Webhook: string(one.EndpointID), ID: string(one.ID), Status: string(one.Status), Since: one.Since.Std(),
		Until: one.Until.Std(), Types: one.Types, OnlyFailed: one.OnlyFailed,
		Matched: one.Matched, Pending: one.AlreadyPending, Delivered: one.Delivered, Failed: one.Failed, Created: one.CreatedAt.Std(),
		Ended: one.EndedAt.Std(),
	}
}

func (d replays) list(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	list, err := d.g.Replays.List(r.Context(), v.caller, e.ID, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.ReplaysView{
		ID: string(e.ID), URL: e.URL, Replay: v.mayHook(postern.WebhooksWrite, postern.MessagesRead,
			postern.EventsRead),
	}
	for _, one := range list.Data {
		view.Replays = append(view.Replays, replayOf(one))
	}
	if list.Next != "" {
		view.More = hookPath(e.ID) + "/replays?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Replays(d.frame(r, v, "Replays", "/webhooks"), view))
}

func (d replays) stop(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.get(r, v)
	if err != nil {
		return err
	}
	if err := d.g.Replays.Stop(r.Context(), v.caller, one.ID); err != nil {
		return err
	}
	return d.done(w, r, "The replay was stopped. Deliveries that are already queued continue.", replayPath(one))
}
