package dash

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/qrcode"
)

func (d devices) list(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Devices.List(r.Context(), v.caller, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.DevicesView{Live: r.URL.RequestURI()}
	if v.caller.Permit(postern.DevicesWrite) == nil {
		view.Add = "/devices/new"
	}
	for _, one := range list.Data {
		view.Devices = append(view.Devices, deviceOf(one))
	}
	if list.Next != "" {
		view.More = "/devices?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Devices(d.frame(r, v, "Devices", "/devices"), view))
}

func deviceOf(one postern.Device) page.Device {
	return page.Device{
		ID: string(one.ID), Name: one.Name, Number: string(one.PhoneNumber), Status: string(one.Status),
		Reason: because(string(one.StatusReason)), Mode: one.Mode, LastSeen: timeOf(one.LastSeenAt),
		Until: timeOf(one.RestrictedUntil), Limited: !one.NewChats.Allowed, LimitEnds: timeOf(one.NewChats.Until),
		Slowed: int(one.NewChats.Slowed),
	}
}

func deviceIn(r *http.Request) postern.DeviceID { return postern.DeviceID(r.PathValue("id")) }

func pathOf(id postern.DeviceID) string { return "/devices/" + url.PathEscape(string(id)) }

func (d devices) form(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.write(w, r, http.StatusOK, page.DeviceForm(d.frame(r, v, "Add a device", "/devices"),
		page.DeviceFormView{}))
}

func (d devices) create(w http.ResponseWriter, r *http.Request, v visit) error {
	name := r.PostFormValue("name")
	made, err := d.g.Devices.Create(r.Context(), v.caller, gateway.NewDevice{Name: name}, nil)
	if wrong, ok := faults(err); ok {
		return d.write(w, r, http.StatusUnprocessableEntity, page.DeviceForm(d.frame(
			r, v, "Add a device", "/devices",
		), page.DeviceFormView{
			Name: page.Field{Value: name, Error: wrong["name"]}, Problem: "The device was not added.",
		}))
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The device was added. Link a phone to it next.", pathOf(made.Value.ID))
}

func (d devices) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, func(*page.DeviceView) {})
}

// showAs shows a device; edit adds the outcome of a form.
func (d devices) showAs(
	w http.ResponseWriter, r *http.Request, v visit, status int, edit func(*page.DeviceView),
) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	view := page.DeviceView{
		Device: deviceOf(one), Account: string(one.DisplayName), Linked: timeOf(one.LinkedAt),
		Change:  v.caller.Permit(postern.DevicesWrite) == nil,
		Sandbox: one.Mode == "sandbox" && v.caller.Permit(postern.SandboxWrite) == nil,
	}
	if view.Change { // seeing the code is enough to link a phone
		if view.Link, err = d.link(r.Context(), v.caller, one); err != nil {
			return err
		}
	}
	if view.Health, err = d.health(r, v, one.ID, paging.Page{Limit: healthShown}); err != nil {
		return err
	}
	if view.Health.More != "" {
		view.Health.More = pathOf(one.ID) + "/health"
	}
	open := view.Link.Cancels
	linked := one.Status.HoldsSlot() && one.Status != postern.Linking
	view.Links, view.Unlinks = !open && !linked, linked
	view.Resumes, view.ResumeLabel = gateway.Resumes(one), "Reconnect"
	if one.Status == postern.Paused {
		view.ResumeLabel = "Resume"
	}
	view.Pauses = linked && one.Status != postern.Paused
	edit(&view)
	return d.write(w, r, status, page.OneDevice(d.frame(r, v, one.Name, "/devices"), view))
}

// settings shows the form with the settings of a device.
func (d devices) settings(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	pace := one.Pace.Or(postern.Pace{})
	return d.showSettings(w, r, v, http.StatusOK, page.DeviceSettingsView{
		ID: string(one.ID), Title: one.Name, Seen: stateOfSettings(one), Name: page.Field{Value: one.Name},
		PerMinute: rateField(pace.PerMinute), NewChats: rateField(pace.NewChatsPerMinute),
		Receives: receives(func(name string) bool { return *receiveOf(&one.Receive, name) }), Media: string(one.Receive.Media),
	})
}

// stateOfSettings identifies what the form of a device's settings is filled with.
func stateOfSettings(d postern.Device) string { return stateOf(d.Name, d.Pace, d.Receive, d.Proxy) }

func (d devices) showSettings(w http.ResponseWriter, r *http.Request, v visit, status int, view page.DeviceSettingsView) error {
	return d.write(w, r, status, page.DeviceSettings(d.frame(r, v, "Settings of a device", "/devices"), view))
}

func rateField(rate postern.Rate) page.Field {
	if rate == 0 {
		return page.Field{}
	}
	return page.Field{Value: strconv.Itoa(int(rate))}
}

// receives are what a device can receive.
func receives(chosen func(name string) bool) []page.ReceiveChoice {
	list := []page.ReceiveChoice{
		{Name: "direct", Label: "Direct chats", Text: "Messages from individuals."},
		{Name: "groups", Label: "Groups", Text: "Messages in groups, and what changes in them."},
		{Name: "channels", Label: "Channels", Text: "Posts of channels that the account follows."},
		{Name: "status", Label: "Status", Text: "Status posts of contacts, which last for a day."},
		{Name: "calls", Label: "Calls", Text: "Incoming calls are reported, not answered."},
		{Name: "viewOnce", Label: "View-once files", Text: "Files that can be viewed once are kept like others."},
		{Name: "history", Label: "History", Text: "What the phone had before it was linked. Turn it on before you link the device."},
	}
	for i := range list {
		list[i].Chosen = chosen(list[i].Name)
	}
	return list
}

// receiveOf returns the setting with a name of [receives].
func receiveOf(in *postern.Receive, name string) *bool {
	return map[string]*bool{
		"direct": &in.Direct, "groups": &in.Groups, "channels": &in.Channels, "status": &in.Status, "calls": &in.Calls,
		"viewOnce": &in.ViewOnce, "history": &in.History,
	}[name]
}

// changeSettings changes the settings of a device to those of the form.
func (d devices) changeSettings(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	view := page.DeviceSettingsView{
		ID: string(one.ID), Title: one.Name, Seen: r.PostFormValue("seen"),
		Name:      page.Field{Value: r.PostFormValue("name")},
		NoProxy:   r.PostFormValue("noProxy") != "",
		PerMinute: page.Field{Value: r.PostFormValue("perMinute")}, NewChats: page.Field{Value: r.PostFormValue("newChats")},
		Proxy: page.Field{Value: r.PostFormValue("proxy")}, Media: r.PostFormValue("media"),
		Receives: receives(func(name string) bool { return slices.Contains(r.PostForm["receive"], name) }),
	}
	view.Problem = "Nothing was changed."
	change, ok := settingsIn(&view)
	if old := checkState(r, stateOfSettings(one)); ok && old != nil {
		view.Problem, view.Seen, ok = word(old.Error())+".", stateOfSettings(one), false
	}
	if ok {
		_, err = d.g.Devices.Change(r.Context(), v.caller, one.ID, change)
		wrong, is := faults(err)
		if !is {
			return d.back(w, r, err, "The settings were saved.")
		}
		view.Name.Error, view.Proxy.Error = wrong["name"], wrong["proxyUrl"]
	}
	return d.showSettings(w, r, v, http.StatusUnprocessableEntity, view)
}

// settingsIn reads a form. ok is false if a field is wrong, which the view says then.
func settingsIn(view *page.DeviceSettingsView) (c gateway.DeviceChange, ok bool) {
	pace := gateway.PaceChange{PerMinute: rateIn(&view.PerMinute), NewChatsPerMinute: rateIn(&view.NewChats)}
	if c.Name = view.Name.Value; c.Name == "" {
		view.Name.Error = "Enter a name."
	}
	c.Pace = given(pace)
	c.Receive = given(receiveChange(view))
	switch proxy := strings.TrimSpace(view.Proxy.Value); {
	case proxy != "" && view.NoProxy:
		view.Proxy.Error = "Enter a proxy, or choose to connect without one."
	case proxy != "":
		c.ProxyURL = given(proxy)
	default:
		c.ProxyURL.Given = view.NoProxy
	}
	return c, view.Name.Error+view.PerMinute.Error+view.NewChats.Error+view.Proxy.Error == ""
}

func given[T any](value T) gateway.Change[T] { return gateway.Change[T]{Given: true, Value: &value} }

// receiveChange returns what the form says of received messages; an unknown mode of files changes nothing.
func receiveChange(view *page.DeviceSettingsView) (c gateway.ReceiveChange) {
	var in postern.Receive
	for _, choice := range view.Receives {
		*receiveOf(&in, choice.Name) = choice.Chosen
	}
	c = gateway.ReceiveChange{
		Direct: given(in.Direct), Groups: given(in.Groups), Channels: given(in.Channels), Status: given(in.Status),
		Calls: given(in.Calls), ViewOnce: given(in.ViewOnce), History: given(in.History),
	}
	switch mode := postern.MediaMode(view.Media); mode {
	case postern.MediaEager, postern.MediaLazy, postern.MediaOff:
		c.Media = given(mode)
	}
	return c
}

// mostPerMinute is the highest pace, as in the API.
const mostPerMinute = 1000

// rateIn reads a pace; an empty field means the server's default.
func rateIn(f *page.Field) gateway.Change[postern.Rate] {
	text := strings.TrimSpace(f.Value)
	if text == "" {
		return gateway.Change[postern.Rate]{Given: true}
	}
	n, ok := numbers.Read(text)
	if !ok || n < 1 || n > mostPerMinute {
		f.Error = "Enter a number from 1 to 1,000, or nothing."
	}
	return given(postern.Rate(n))
}

func timeOf(t postern.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Std()
}

// link returns the newest attempt to link a phone, as long as it is worth showing.
func (d devices) link(ctx context.Context, c access.Caller, one postern.Device) (v page.LinkView, err error) {
	l, err := d.g.Links.Get(ctx, c, one.ID)
	if postern.ReasonOf(err) == postern.NotFound || err == nil && isPast(l, one) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v = page.LinkView{
		State: string(l.Status), Number: l.PhoneNumber, Cancels: l.Status.Open(),
		Why: because(string(l.Reason)),
	}
	switch {
	case l.Passkey != nil:
		v.State = "passkey"
	case l.ConfirmationCode != "":
		v.State, v.Code = "compare", string(l.ConfirmationCode)
	case l.Status == postern.LinkPasskey || l.Status == postern.LinkConfirm:
		v.State = "checking"
	case l.Status == postern.LinkPending && l.QR != "":
		v.State, v.Seconds = "scan", max(int(time.Until(l.QRExpiresAt.Std()).Seconds()), 0)
		picture, err := qrcode.SVG(string(l.QR))
		if err != nil {
			return v, err
		}
		v.Picture = string(picture)
	case l.Status == postern.LinkPending && l.PairingCode != "":
		v.State, v.Code = "enter", string(l.PairingCode)
	case l.Status == postern.LinkPending:
		v.State = "wait"
	}
	sandbox := one.Mode == "sandbox" && c.Permit(postern.SandboxWrite) == nil
	v.Scanning = sandbox && (v.State == "scan" || v.State == "enter")
	v.Answers = sandbox && v.State == "passkey"
	return v, nil
}

// isPast reports whether an attempt is no longer worth showing.
func isPast(l postern.Link, one postern.Device) bool {
	switch {
	case l.Status.Open():
		return false
	case l.Status == postern.LinkLinked && one.Status != postern.Connected && one.Status != postern.Connecting:
		return true
	}
	return time.Since(l.ExpiresAt.Std()) > shownAfter
}

// shownAfter is how long the outcome of an attempt is shown after it expired.
const shownAfter = 10 * time.Minute

// because says in a sentence why a device or a link attempt has its status; "" if there is nothing to
// say.
func because(reason string) string {
	s, known := problem.StateOf(reason)
	switch {
	case reason == "":
		return ""
	case known:
		return s.Means
	case reason == string(postern.NumberAlreadyLinked):
		return "Another device of this workspace is linked to this number."
	}
	return "The network gave the reason “" + reason + "”."
}

func (d devices) openLink(w http.ResponseWriter, r *http.Request, v visit) error {
	in := gateway.NewLink{PhoneNumber: strings.TrimSpace(r.PostFormValue("number"))}
	if r.PostForm.Has("number") {
		in.Method = postern.ByCode
	}
	_, err := d.g.Links.Open(r.Context(), v.caller, deviceIn(r), in, nil)
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, func(p *page.DeviceView) {
			p.Enter = page.Field{Value: in.PhoneNumber, Error: wrong["phoneNumber"]}
		})
	}
	return d.back(w, r, err, "")
}

// back redirects to the page of the device.
func (d devices) back(w http.ResponseWriter, r *http.Request, err error, notice string) error {
	if err != nil {
		return err
	}
	if notice == "" {
		return seeOther(w, r, pathOf(deviceIn(r)))
	}
	return d.done(w, r, notice, pathOf(deviceIn(r)))
}

func (d devices) cancelLink(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.back(w, r, d.g.Links.Cancel(r.Context(), v.caller, deviceIn(r)), "")
}

// shareLink creates a link page for the person who has the phone and shows its address once.
func (d devices) shareLink(w http.ResponseWriter, r *http.Request, v visit) error {
	made, err := d.g.LinkPages.Open(r.Context(), v.caller, deviceIn(r), nil)
	if err != nil {
		return err
	}
	return d.showAs(
		w, r, v, http.StatusCreated, func(p *page.DeviceView) { p.Share = d.base + "/link/" + made.Value.Token },
	)
}

// leadLink creates a link page, which leads to the network's page and back, and goes there.
func (d devices) leadLink(w http.ResponseWriter, r *http.Request, v visit) error {
	made, err := d.g.LinkPages.Open(r.Context(), v.caller, deviceIn(r), nil)
	if err != nil {
		return err
	}
	return seeOther(w, r, "/link/"+made.Value.Token)
}

// confirmLink says that the phone shows the same code.
func (d devices) confirmLink(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Links.Confirm(r.Context(), v.caller, deviceIn(r))
	return d.back(w, r, err, "")
}

func (d devices) pause(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Pause(r.Context(), v.caller, deviceIn(r))
	return d.back(w, r, err, "The device is paused. It sends and receives nothing until you resume it.")
}

func (d devices) resume(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Resume(r.Context(), v.caller, deviceIn(r))
	if to := r.PostFormValue("next"); to != "" && err == nil {
		return d.done(w, r, "The device is connecting.", local(to))
	}
	return d.back(w, r, err, "The device is connecting.")
}

func (d devices) unlink(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Unlink(r.Context(), v.caller, deviceIn(r))
	return d.back(w, r, err, "The phone is being unlinked.")
}

const healthShown = 5 // changes shown on the page of a device

// health returns a part of the device's health history; it is empty for members who may not
// read events.
func (d devices) health(r *http.Request, v visit, id postern.DeviceID, p paging.Page) (h page.Health, err error) {
	if !v.may(postern.DevicesRead, postern.EventsRead) {
		return h, nil
	}
	list, err := d.g.Devices.Health(r.Context(), v.caller, id, p)
	for _, one := range list.Data {
		status := strings.TrimPrefix(string(one.Type), "device.")
		if one.Type == postern.DeviceLinking && one.Status != "" { // an attempt may have ended, too
			status = string(one.Status)
		}
		h.Changes = append(h.Changes, page.HealthChange{
			Status: status, Text: healthWords(one), Reason: because(one.Reason), At: one.At.Std(),
		})
	}
	if list.Next != "" {
		h.More = pathOf(id) + "/health?after=" + url.QueryEscape(list.Next)
	}
	return h, err
}

// healthWords describes an event of the device.
func healthWords(h gateway.Health) string {
	switch h.Type { //nolint:exhaustive // the others are not about a device
	case postern.DeviceLinked:
		return strings.TrimSuffix("A phone was linked: "+h.Number, ": ")
	case postern.DeviceConnected:
		return "The device connected."
	case postern.DeviceDisconnected:
		return "The connection was lost. Postern is reconnecting."
	case postern.DeviceRestricted:
		return "The network restricted the account."
	case postern.DeviceLoggedOutEv:
		return "The device was logged out by the network or on the phone."
	case postern.DeviceBanned:
		return "The network banned the account."
	case postern.DeviceConflict:
		return "The session was opened elsewhere."
	case postern.DeviceUnlinked:
		return "The phone was unlinked in Postern."
	case postern.DevicePaused:
		return "The device was paused."
	case postern.DeviceLinking:
		if h.Status != postern.Linking && h.Status != "" {
			return "A link attempt ended without a link."
		}
		return "A link attempt was opened."
	case postern.DeviceLimited:
		return "The network does not let the account start chats."
	case postern.DeviceUnlimited:
		return "The account may start chats again."
	case postern.DevicePhoneUnseen:
		return "The phone of the account has not been seen for ten days."
	}
	return ""
}

func (d devices) showHealth(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	h, err := d.health(r, v, one.ID, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	return d.write(
		w, r, http.StatusOK,
		page.DeviceHealth(d.frame(r, v, "Health history", "/devices"), page.DeviceHealthView{
			Device: deviceOf(one), Health: h,
		}),
	)
}

func (d devices) askDelete(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showDelete(w, r, v, http.StatusOK, "")
}

func (d devices) showDelete(w http.ResponseWriter, r *http.Request, v visit, status int, wrong string) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	view := page.RemovalView{
		Device: deviceOf(one), Linked: one.Status.HoldsSlot() && one.Status != postern.Linking,
		Password: page.Field{Error: wrong},
	}
	if view.Again, err = d.again(r, v, r.URL.Path); err != nil {
		return err
	}
	return d.write(w, r, status, page.Removal(d.frame(r, v, "Delete a device", "/devices"), view))
}

func (d devices) delete(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.g.Devices.DeleteByPassword(r.Context(), v.caller, deviceIn(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.showDelete(w, r, v, http.StatusUnprocessableEntity, wrong["password"])
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The device was deleted.", "/devices")
}
