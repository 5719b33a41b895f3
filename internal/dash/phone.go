package dash

import (
	"net/http"
	"strconv"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// phone is the simulated phone of a device.
func (d *dash) phone(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showPhone(w, r, v, http.StatusOK, page.PhoneView{From: page.Field{Value: "+15551234567"}})
}

func (d *dash) showPhone(w http.ResponseWriter, r *http.Request, v visit, status int, view page.PhoneView) error {
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
		view.Messages = append(view.Messages, page.PhoneMessage{From: m.From, To: m.To, Body: m.Body, At: m.At.Std()})
	}
	sent, err := d.g.Messages.List(r.Context(), v.caller, gateway.MessageQuery{Page: paging.Page{Limit: sentMessages}, DeviceID: one.ID, Direction: postern.Outbound})
	if err != nil {
		return err
	}
	for _, m := range sent.Data {
		view.Sent = append(view.Sent, page.SentMessage{ID: string(m.ID), To: string(m.To), Body: m.Content.Text, Status: string(m.Status)})
	}
	for _, kind := range gateway.SandboxFaults() {
		view.Faults = append(view.Faults, page.Choice{Value: kind, Label: faultWords(kind)})
	}
	return d.show(w, r, status, page.Phone(d.frame(r, v, "The simulated phone", "/devices"), view))
}

const (
	phoneMessages = 50 // that the phone shows
	sentMessages  = 10
)

func (d *dash) phoneScans(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.SandboxPhones.Scan(r.Context(), v.caller, deviceIn(r), "", "")
	return d.after(w, r, err, "")
}

func (d *dash) contactWrites(w http.ResponseWriter, r *http.Request, v visit) error {
	from, body := r.PostFormValue("from"), r.PostFormValue("body")
	_, err := d.g.SandboxPhones.Inbound(r.Context(), v.caller, deviceIn(r), from, postern.Text(body))
	if wrong, ok := faults(err); ok {
		return d.showPhone(w, r, v, http.StatusUnprocessableEntity, page.PhoneView{
			From: page.Field{Value: from, Error: wrong["from"]}, Body: page.Field{Value: body, Error: wrong["body"]}, Problem: "Nothing was sent.",
		})
	}
	return d.toPhone(w, r, err, "The contact has written to the device.")
}

func (d *dash) toPhone(w http.ResponseWriter, r *http.Request, err error, notice string) error {
	if err != nil {
		return err
	}
	return d.done(w, r, notice, pathOf(deviceIn(r))+"/phone")
}

func (d *dash) messageArrives(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.confirms(w, r, v, postern.Delivered, "The message has arrived at the contact's phone.")
}

func (d *dash) contactReads(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.confirms(w, r, v, postern.Read, "The contact has read the message.")
}

// confirms lets the recipient of a message confirm it.
func (d *dash) confirms(w http.ResponseWriter, r *http.Request, v visit, status postern.MessageStatus, said string) error {
	err := d.g.SandboxPhones.Receipt(r.Context(), v.caller, deviceIn(r), postern.MessageID(r.PathValue("message")), status)
	return d.toPhone(w, r, err, said)
}

func (d *dash) phoneFails(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.g.SandboxPhones.Fault(r.Context(), v.caller, deviceIn(r), r.PostFormValue("kind"))
	return d.toPhone(w, r, err, "It went wrong. The device shows what follows.")
}

func faultWords(kind string) string {
	return map[string]string{
		"drop": "Cut the connection", "silence": "Let the network fall silent", "conflict": "Open it elsewhere",
		"restrict": "Restrict the account", "logout": "Log out on the phone", "ban": "Ban the account",
	}[kind]
}

func (d *dash) phoneLeaves(w http.ResponseWriter, r *http.Request, v visit) error {
	seconds, err := strconv.Atoi(r.PostFormValue("seconds"))
	if err != nil {
		return postern.Invalid("/seconds", "choose one of the times")
	}
	said := "The device is offline. What is sent to it waits."
	if seconds == 0 {
		said = "The device may come back: its next try succeeds."
	}
	return d.toPhone(w, r, d.g.SandboxPhones.Offline(r.Context(), v.caller, deviceIn(r), seconds), said)
}
