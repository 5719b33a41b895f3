package dash

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

func deviceIn(r *http.Request) postern.DeviceID { return postern.DeviceID(r.PathValue("id")) }

func pathOf(id postern.DeviceID) string { return "/devices/" + url.PathEscape(string(id)) }

func (d *dash) newDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.show(w, r, http.StatusOK, page.DeviceForm(d.frame(r, v, "Add a device", "/devices"), page.DeviceFormView{}))
}

func (d *dash) createDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	name := r.PostFormValue("name")
	made, err := d.g.Devices.Create(r.Context(), v.caller, gateway.NewDevice{Name: name}, nil)
	if wrong, ok := faults(err); ok {
		return d.show(w, r, http.StatusUnprocessableEntity, page.DeviceForm(d.frame(r, v, "Add a device", "/devices"), page.DeviceFormView{
			Name: page.Field{Value: name, Error: wrong["name"]}, Problem: "The device was not added.",
		}))
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The device is added. Link a phone to it now.", pathOf(made.Value.ID))
}

func (d *dash) device(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showDevice(w, r, v, http.StatusOK, func(*page.DeviceView) {})
}

// showDevice is the page of a device; edit adds what a form has come to.
func (d *dash) showDevice(w http.ResponseWriter, r *http.Request, v visit, status int, edit func(*page.DeviceView)) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	view := page.DeviceView{
		Device: deviceOf(one), Account: string(one.DisplayName), Linked: timeOf(one.LinkedAt),
		Change: v.caller.Permit(postern.DevicesWrite) == nil, Sandbox: one.Mode == "sandbox" && v.caller.Permit(postern.SandboxWrite) == nil,
	}
	if view.Change { // whoever sees the code can link a phone
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
	view.Resumes = one.Status == postern.Paused
	view.Pauses = linked && !view.Resumes
	edit(&view)
	return d.show(w, r, status, page.OneDevice(d.frame(r, v, one.Name, "/devices"), view))
}

func timeOf(t postern.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Std()
}

// link is the newest attempt to link a phone, as long as it says something.
func (d *dash) link(ctx context.Context, c access.Caller, one postern.Device) (v page.LinkView, err error) {
	l, err := d.g.Links.Get(ctx, c, one.ID)
	if postern.ReasonOf(err) == postern.NotFound || err == nil && isPast(l, one) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v = page.LinkView{State: string(l.Status), Number: l.PhoneNumber, Cancels: l.Status.Open(), Why: why(string(l.Reason))}
	switch {
	case l.Status == postern.LinkPasskey:
		v.State = "passkey"
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
	v.Scanning = (v.State == "scan" || v.State == "enter") && one.Mode == "sandbox" && c.Permit(postern.SandboxWrite) == nil
	return v, nil
}

// isPast tells whether an attempt says nothing of the device any more.
func isPast(l postern.Link, one postern.Device) bool {
	switch {
	case l.Status.Open():
		return false
	case l.Status == postern.LinkLinked && one.Status != postern.Connected && one.Status != postern.Connecting:
		return true
	}
	return time.Since(l.ExpiresAt.Std()) > shownAfter
}

// shownAfter is how long after its time the outcome of an attempt is shown.
const shownAfter = 10 * time.Minute

// why says the reason of an attempt that failed.
func why(reason string) string {
	switch reason {
	case "other-number", "unexpected-number":
		return "The phone has another number than the one that was expected."
	case "wrong-code":
		return "The code that was entered is not the one that was shown."
	case "number-unknown":
		return "The number is not known to the network."
	case "number-taken":
		return "The number is linked in another workspace."
	case "rate-limited":
		return "The network asks to wait before another code is made for this number."
	case "not-receiving", "dial", "handshake":
		return "The network could not be reached. Try again in a moment."
	case "canceled":
		return "It was stopped."
	case "plan-limit":
		return "The plan has no room for another device."
	}
	return "The network refused it (" + reason + ")."
}

func (d *dash) openLink(w http.ResponseWriter, r *http.Request, v visit) error {
	in := gateway.NewLink{PhoneNumber: r.PostFormValue("number")}
	if r.PostForm.Has("number") {
		in.Method = postern.ByCode
	}
	_, err := d.g.Links.Open(r.Context(), v.caller, deviceIn(r), in, nil)
	if wrong, ok := faults(err); ok {
		return d.showDevice(w, r, v, http.StatusUnprocessableEntity, func(p *page.DeviceView) {
			p.Enter = page.Field{Value: in.PhoneNumber, Error: wrong["phoneNumber"]}
		})
	}
	return d.after(w, r, err, "")
}

// after goes back to the page of the device.
func (d *dash) after(w http.ResponseWriter, r *http.Request, err error, notice string) error {
	if err != nil {
		return err
	}
	if notice == "" {
		return seeOther(w, r, pathOf(deviceIn(r)))
	}
	return d.done(w, r, notice, pathOf(deviceIn(r)))
}

func (d *dash) cancelLink(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.after(w, r, d.g.Links.Cancel(r.Context(), v.caller, deviceIn(r)), "")
}

// shareLink makes a page for whoever holds the phone, and shows its address once.
func (d *dash) shareLink(w http.ResponseWriter, r *http.Request, v visit) error {
	made, err := d.g.LinkPages.Open(r.Context(), v.caller, deviceIn(r), nil)
	if err != nil {
		return err
	}
	return d.showDevice(w, r, v, http.StatusCreated, func(p *page.DeviceView) { p.Share = d.base + "/link/" + made.Value.Token })
}

func (d *dash) pauseDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Pause(r.Context(), v.caller, deviceIn(r))
	return d.after(w, r, err, "The device is paused. It sends and receives nothing until it is resumed.")
}

func (d *dash) resumeDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Resume(r.Context(), v.caller, deviceIn(r))
	return d.after(w, r, err, "The device is resumed.")
}

func (d *dash) unlinkDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	_, err := d.g.Devices.Unlink(r.Context(), v.caller, deviceIn(r))
	return d.after(w, r, err, "The phone is being unlinked.")
}
