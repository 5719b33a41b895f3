package dash

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

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
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	known, err := d.devicesNamed(r.Context(), v, chosen)
	if err != nil {
		return err
	}
	for _, c := range known {
		names[postern.DeviceID(c.Value)] = c.Label
	}
	for _, c := range choices(names, "") {
		view.Devices = append(view.Devices, page.DeviceChoice{
			ID: c.Value, Name: c.Label, Chosen: slices.Contains(chosen, postern.DeviceID(c.Value)),
		})
	}
	title := "New webhook"
	if view.ID != "" {
		title = "Edit webhook"
	}
	return d.write(w, r, status, page.WebhookForm(d.frame(r, v, title, "/webhooks"), view))
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
	if n := r.PostFormValue("inFlight"); n != "" {
		if in.MaxInFlight, err = strconv.Atoi(n); err != nil || in.MaxInFlight < 1 {
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
	if !is && postern.ReasonOf(err) != postern.EndpointLimit {
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
