package dash

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
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
	showChats(r, one, list, &view)
	sent, err := d.g.Messages.List(r.Context(), v.caller, gateway.MessageQuery{
		Page: paging.Page{Limit: sentMessages}, DeviceID: one.ID, Direction: postern.Outbound,
	})
	if err != nil {
		return err
	}
	for _, m := range sent.Data {
		view.Sent = append(view.Sent, page.SentMessage{
			ID: string(m.ID), To: cmp.Or(string(m.To), m.ChatID), Body: gist(m.Content), Status: string(m.Status),
		})
	}
	for _, kind := range gateway.SandboxFaults() {
		view.Faults = append(view.Faults, page.Choice{Value: kind, Label: faultWords(kind)})
	}
	return d.write(w, r, status, page.Phone(d.frame(r, v, "Simulated phone", "/devices"), view))
}

// showChats adds the chats of the phone, and the messages of the one that is open: the chosen one, or the one with the
// newest message.
func showChats(r *http.Request, one postern.Device, list []gateway.PhoneMessage, view *page.PhoneView) {
	in := func(m gateway.PhoneMessage) string {
		if m.From == string(one.PhoneNumber) || postern.NumberOfChat(m.To) == "" {
			return m.To // which may be a group, a channel, or the status
		}
		return m.From
	}
	for _, m := range slices.Backward(list) {
		if !slices.Contains(view.Chats, in(m)) {
			view.Chats = append(view.Chats, in(m))
		}
	}
	if chat := r.FormValue("chat"); slices.Contains(view.Chats, chat) {
		view.Chosen = chat
	}
	if view.Chats = view.Chats[:min(len(view.Chats), phoneChats)]; view.Chosen != "" && !slices.Contains(view.Chats, view.Chosen) {
		view.Chats = append(view.Chats, view.Chosen)
	}
	if view.Chat = view.Chosen; view.Chat == "" && len(view.Chats) > 0 {
		view.Chat = view.Chats[0]
	}
	for _, m := range list {
		if in(m) == view.Chat {
			shown := phoneMessage(one.ID, m)
			shown.Out = m.From == string(one.PhoneNumber)
			view.Messages = append(view.Messages, shown)
		}
	}
	view.Messages = view.Messages[max(0, len(view.Messages)-phoneMessages):]
}

// phoneMessage returns a message as the phone shows it.
func phoneMessage(device postern.DeviceID, m gateway.PhoneMessage) page.Message {
	c := postern.Content{Kind: m.Type, Text: m.Body, Extra: m.Extra}
	if f := m.Media; f != nil {
		c.Media = &postern.Media{
			MIMEType: f.MIMEType, Size: f.Size, SHA256: f.SHA256, Filename: f.Filename, Status: postern.MediaReady,
			Duration: f.Duration, Width: f.Width, Height: f.Height,
		}
	}
	p := messageOf(postern.Message{From: postern.Maybe(m.From), Content: c, CreatedAt: m.At}, nil, bubbleLength)
	p.Starred = m.Starred
	if p.File.Poster = ""; p.File.Src != "" {
		p.File.Src = pathOf(device) + "/phone/files/" + url.PathEscape(m.ID)
	}
	return p
}

const (
	phoneMessages = 50 // shown by the phone, of a chat
	phoneChats    = 20
	sentMessages  = 10
)

func (d phones) scan(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.SandboxPhones.Scan(r.Context(), v.caller, deviceIn(r), r.PostFormValue("number"), "")
	return devices(d).back(w, r, err, "")
}

// usePasskey answers the network's request with the passkey of the simulated phone.
func (d phones) usePasskey(w http.ResponseWriter, r *http.Request, v visit) error {
	credential, err := d.g.SandboxPhones.Passkey(r.Context(), v.caller, deviceIn(r), "", "")
	if err == nil {
		_, err = d.g.Links.AnswerPasskey(r.Context(), v.caller, deviceIn(r), credential)
	}
	return devices(d).back(w, r, err, "")
}

// receive lets a contact write what a form says, or call.
func (d phones) receive(w http.ResponseWriter, r *http.Request, v visit) error {
	if r.PostFormValue("type") == string(postern.KindCall) {
		return d.call(w, r, v)
	}
	file, caller, err := d.takeFile(w, r, v)
	v.caller = caller
	var in gateway.SandboxInbound
	if err == nil {
		in, err = inboundIn(r, file)
	}
	if err == nil {
		_, err = d.g.SandboxPhones.Inbound(r.Context(), v.caller, deviceIn(r), in)
	}
	wrong, ok := faults(err)
	if !ok && !isImpossible(err) {
		return d.back(w, r, err, "The contact's message was sent.")
	}
	view := phoneForm(r)
	view.From.Error, view.Body.Error = wrong["from"], wrong["body"]
	view.Problem = cmp.Or(wrong["location"], wrong["contacts"], wrong["poll"], wrong["media"], "The message was not sent.")
	if !ok {
		view.Problem = word(err.Error()) + "."
	}
	return d.showAs(w, r, v, http.StatusUnprocessableEntity, view)
}

// call lets a contact call the device.
func (d phones) call(w http.ResponseWriter, r *http.Request, v visit) error {
	view := phoneForm(r)
	_, err := d.g.SandboxPhones.Call(
		r.Context(), v.caller, deviceIn(r), view.From.Value, postern.Call{Video: view.Video, Group: view.Group},
	)
	if wrong, ok := faults(err); ok {
		view.From.Error, view.Problem = wrong["from"], "The call was not made."
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, view)
	}
	return d.back(w, r, err, "The contact called the device.")
}

// phoneForm returns what was entered.
func phoneForm(r *http.Request) page.PhoneView {
	return page.PhoneView{
		From: page.Field{Value: strings.TrimSpace(r.PostFormValue("from"))}, Body: page.Field{Value: written(r)},
		Type: r.PostFormValue("type"), Latitude: r.PostFormValue("latitude"), Longitude: r.PostFormValue("longitude"),
		Place: r.PostFormValue("place"), Address: r.PostFormValue("address"), Contact: r.PostFormValue("name"),
		Phone: r.PostFormValue("phone"), Organization: r.PostFormValue("organization"),
		Question: r.PostFormValue("question"), Options: r.PostFormValue("options"), Many: r.PostFormValue("many") != "",
		Video: r.PostFormValue("video") != "", Group: r.PostFormValue("group") != "",
	}
}

// inboundIn returns the message of a contact that a form describes.
func inboundIn(r *http.Request, file postern.Media) (in gateway.SandboxInbound, err error) {
	form := phoneForm(r)
	in = gateway.SandboxInbound{From: form.From.Value, Content: postern.Text(form.Body.Value)}
	switch form.Type {
	case string(postern.KindLocation):
		in.Content.Kind = postern.KindLocation
		in.Content.Location, err = locationIn(form)
	case string(postern.KindContact):
		in.Content.Kind = postern.KindContact
		in.Content.Contacts = []postern.Contact{
			{Name: form.Contact, Organization: form.Organization, PhoneNumbers: []string{form.Phone}},
		}
	case string(postern.KindPoll):
		in.Content.Kind, in.Content.Poll = postern.KindPoll, pollIn(form)
	default:
		if file.ID != "" {
			in.Content.Kind = kindOfFile(file.MIMEType, r.PostFormValue("kind"))
			in.Media = &gateway.NewMedia{ID: file.ID}
			in.Content.ViewOnce = r.PostFormValue("once") != ""
		}
	}
	return in, err
}

func locationIn(form page.PhoneView) (*postern.Location, error) {
	lat, err := strconv.ParseFloat(strings.TrimSpace(form.Latitude), 64)
	lon, err2 := strconv.ParseFloat(strings.TrimSpace(form.Longitude), 64)
	if err != nil || err2 != nil {
		return nil, postern.Invalid("/location", "write degrees as numbers, such as 52.5163")
	}
	return &postern.Location{Latitude: lat, Longitude: lon, Name: form.Place, Address: form.Address}, nil
}

// pollIn reads the options, one a line.
func pollIn(form page.PhoneView) *postern.Poll {
	p := &postern.Poll{Question: form.Question, MaxSelections: 1}
	if form.Many {
		p.MaxSelections = 0
	}
	for line := range strings.Lines(form.Options) {
		if option := strings.TrimSpace(line); option != "" {
			p.Options = append(p.Options, option)
		}
	}
	return p
}

func (d phones) back(w http.ResponseWriter, r *http.Request, err error, notice string) error {
	if err != nil {
		return err
	}
	to := pathOf(deviceIn(r)) + "/phone"
	if chat := r.PostFormValue("chat"); chat != "" {
		to += "?chat=" + url.QueryEscape(chat)
	}
	return d.done(w, r, notice, to)
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
		"", status)
	return d.back(w, r, err, said)
}

func (d phones) fault(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.g.SandboxPhones.Fault(r.Context(), v.caller, deviceIn(r), r.PostFormValue("kind"))
	return d.back(w, r, err, "The problem was simulated. The device page shows its effect.")
}

func faultWords(kind string) string {
	return map[string]string{
		"drop": "Drop the connection", "silence": "Stop responding", "conflict": "Open the session elsewhere",
		"restrict": "Restrict the account", "limit": "Forbid new chats", "unlimit": "Allow new chats",
		"logout": "Log out on the phone", "ban": "Ban the account", "phone-unseen": "Leave the phone unused for ten days",
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
