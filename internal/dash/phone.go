package dash

import (
	"net/http"
	"strconv"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// show shows the simulated phone of a device.
func (d phones) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, page.PhoneView{From: page.Field{Value: "+15551234567"}})
}

func (d phones) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.PhoneView) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	list, err := d.g.SandboxPhones.List(r.Context(), v.caller, one.ID)
	if err != nil {
		return err
	}
	view.Device = deviceOf(one)
	for _, m := range list[max(0, len(list)-phoneMessages):] {
		body := shownText(postern.Content{Kind: m.Type, Text: m.Body, Extra: m.Extra})
		view.Messages = append(view.Messages, page.PhoneMessage{From: m.From, To: m.To, Body: body, At: m.At.Std()})
	}
	sent, err := d.g.Messages.List(r.Context(), v.caller, gateway.MessageQuery{
		Page: paging.Page{Limit: sentMessages}, DeviceID: one.ID, Direction: postern.Outbound,
	})
	if err != nil {
		return err
	}
	for _, m := range sent.Data {
		view.Sent = append(view.Sent, page.SentMessage{
			ID: string(m.ID), To: string(m.To), Body: shownText(m.Content), Status: string(m.Status),
		})
	}
	for _, kind := range gateway.SandboxFaults() {
		view.Faults = append(view.Faults, page.Choice{Value: kind, Label: faultWords(kind)})
	}
	return d.write(w, r, status, page.Phone(d.frame(r, v, "Simulated phone", "/devices"), view))
}

const (
	phoneMessages = 50 // shown by the phone
	sentMessages  = 10
)

func (d phones) scan(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.SandboxPhones.Scan(r.Context(), v.caller, deviceIn(r), "", "")
	return devices{d.core}.back(w, r, err, "")
}

func (d phones) receive(w http.ResponseWriter, r *http.Request, v visit) error {
	from, body := strings.TrimSpace(r.PostFormValue("from")), r.PostFormValue("body")
	_, err := d.g.SandboxPhones.Inbound(r.Context(), v.caller, deviceIn(r),
		gateway.SandboxInbound{From: from, Content: postern.Text(body)})
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.PhoneView{
			From: page.Field{Value: from, Error: wrong["from"]}, Body: page.Field{Value: body, Error: wrong["body"]},
			Problem: "The message was not sent.",
		})
	}
	return d.back(w, r, err, "The contact's message was sent.")
}

func (d phones) back(w http.ResponseWriter, r *http.Request, err error, notice string) error {
	if err != nil {
		return err
	}
	return d.done(w, r, notice, pathOf(deviceIn(r))+"/phone")
}

func (d phones) deliver(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.confirm(w, r, v, postern.Delivered, "The message was delivered to the contact.")
}

func (d phones) read(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.confirm(w, r, v, postern.Read, "The contact read the message.")
}

// confirm simulates a receipt for a message.
func (d phones) confirm(
	w http.ResponseWriter, r *http.Request, v visit, status postern.MessageStatus, said string,
) error {
	err := d.g.SandboxPhones.Receipt(r.Context(), v.caller, deviceIn(r), postern.MessageID(r.PathValue("message")),
		status)
	return d.back(w, r, err, said)
}

func (d phones) fault(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.g.SandboxPhones.Fault(r.Context(), v.caller, deviceIn(r), r.PostFormValue("kind"))
	return d.back(w, r, err, "The problem was simulated. The device page shows its effect.")
}

func faultWords(kind string) string {
	return map[string]string{
		"drop": "Drop the connection", "silence": "Stop responding", "conflict": "Open the session elsewhere",
		"restrict": "Restrict the account", "logout": "Log out on the phone", "ban": "Ban the account",
	}[kind]
}

func (d phones) offline(w http.ResponseWriter, r *http.Request, v visit) error {
	seconds, err := strconv.Atoi(r.PostFormValue("seconds"))
	if err != nil {
		return postern.Invalid("/seconds", "choose one of the listed times")
	}
	said := "The device is offline. Messages sent to it wait."
	if seconds == 0 {
		said = "The device can reconnect. Its next attempt succeeds."
	}
	return d.back(w, r, d.g.SandboxPhones.Offline(r.Context(), v.caller, deviceIn(r), seconds), said)
}
