package dash

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func deliveryPath(of postern.Delivery) string {
	return hookPath(of.EndpointID) + "/deliveries/" + string(of.ID)
}

func (d *dash) deliveries(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	view := page.DeliveriesView{ID: string(e.ID), URL: e.URL, Type: r.FormValue("type"), Types: append(eventPatterns()[1:], string(postern.WebhookTest))}
	q := gateway.DeliveryQuery{Page: paging.Page{Cursor: r.FormValue("after")}}
	switch s := postern.DeliveryStatus(r.FormValue("status")); s {
	case postern.DeliveryPending, postern.DeliverySucceeded, postern.DeliveryExhausted: // an unknown one asks for all
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
		view.More = hookPath(e.ID) + "/deliveries?" + url.Values{"status": {view.Status}, "type": {view.Type}, "after": {list.Next}}.Encode()
	}
	return d.show(w, r, http.StatusOK, page.Deliveries(d.frame(r, v, "Deliveries", "/webhooks"), view))
}

func deliveryOf(one postern.Delivery) page.Delivery {
	p := page.Delivery{
		ID: string(one.ID), Event: string(one.EventID), Type: string(one.Type), Status: string(one.Status), Attempts: one.Attempts,
		Created: one.CreatedAt.Std(), Outcome: outcome(one),
	}
	if one.Status == postern.DeliveryPending {
		p.Next = one.NextAttemptAt.Std()
	}
	return p
}

// outcome says what the last attempt came to.
func outcome(one postern.Delivery) string {
	switch {
	case one.Attempts == 0:
		return "None yet"
	case one.LastStatus != 0:
		return "Answered " + strconv.Itoa(one.LastStatus)
	}
	return cmp.Or(whyAttempt(string(one.LastReason)).What, "No answer")
}

// theDelivery is that of the path, if it is one to the endpoint of the path.
func (d *dash) theDelivery(r *http.Request, v visit) (gateway.DeliveryLog, error) {
	l, err := d.g.Deliveries.Get(r.Context(), v.caller, postern.DeliveryID(r.PathValue("delivery")))
	if err == nil && l.EndpointID != hookID(r) {
		err = postern.Errorf(postern.NotFound, "there is no such delivery")
	}
	return l, err
}

func (d *dash) delivery(w http.ResponseWriter, r *http.Request, v visit) error {
	l, err := d.theDelivery(r, v)
	if err != nil {
		return err
	}
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, l.EndpointID)
	if err != nil {
		return err
	}
	view := page.DeliveryView{
		Webhook: string(e.ID), URL: e.URL, Delivery: deliveryOf(l.Delivery), Device: string(l.DeviceID), Body: indented(l.Body), Hidden: d.hidden(v, l),
		Headers: []page.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "webhook-id", Value: string(l.EventID)}},
		Retry:   v.may(postern.WebhooksWrite) && e.Status == postern.EndpointActive,
	}
	for _, a := range l.Attempts {
		view.Attempts = append(view.Attempts, page.Attempt{
			Number: a.Number, At: a.At.Std(), Signed: a.At.Std(), DurationMs: a.DurationMs, Status: a.Status, Why: whyAttempt(string(a.Reason)), Good: a.Reason == "", Answer: a.Answer,
		})
	}
	return d.show(w, r, http.StatusOK, page.DeliveryPage(d.frame(r, v, "Delivery", "/webhooks"), view))
}

// hidden says why there is no body to show.
func (*dash) hidden(v visit, l gateway.DeliveryLog) string {
	switch {
	case l.Body != nil:
		return ""
	case !v.may(postern.MessagesRead, postern.EventsRead):
		return "Your role does not read events."
	}
	return "The body is kept no more."
}

// indented is JSON for reading; anything else stays as it is.
func indented(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return string(body)
	}
	return b.String()
}

func (d *dash) retryDelivery(w http.ResponseWriter, r *http.Request, v visit) error {
	l, err := d.theDelivery(r, v)
	if err != nil {
		return err
	}
	if _, err := d.g.Deliveries.Retry(r.Context(), v.caller, l.ID, nil); err != nil {
		return err
	}
	return d.done(w, r, "It is tried again.", deliveryPath(l.Delivery))
}
