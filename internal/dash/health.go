package dash

import (
	"net/http"
	"net/url"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const healthShown = 5 // changes on the page of a device

// health is the newest part of what became of a device; nothing for those who may
// not read events.
func (d *dash) health(r *http.Request, v visit, id postern.DeviceID, p paging.Page) (h page.Health, err error) {
	if !v.may(postern.DevicesRead, postern.EventsRead) {
		return h, nil
	}
	list, err := d.g.Devices.Health(r.Context(), v.caller, id, p)
	for _, one := range list.Data {
		status := strings.TrimPrefix(string(one.Type), "device.")
		h.Changes = append(h.Changes, page.HealthChange{Status: status, Text: healthWords(one), Reason: one.Reason, At: one.At.Std()})
	}
	if list.Next != "" {
		h.More = pathOf(id) + "/health?after=" + url.QueryEscape(list.Next)
	}
	return h, err
}

// healthWords says what an event means for the device.
func healthWords(h gateway.Health) string {
	switch h.Type { //nolint:exhaustive // the others are not about a device
	case postern.DeviceLinked:
		return strings.TrimSuffix("A phone was linked: "+h.Number, ": ")
	case postern.DeviceConnected:
		return "The session is live."
	case postern.DeviceDisconnected:
		return "The session was lost; it is tried again."
	case postern.DeviceRestricted:
		return "The network restricts the account."
	case postern.DeviceLoggedOutEv:
		return "The link was removed by the network or on the phone."
	case postern.DeviceBanned:
		return "The network has banned the account."
	case postern.DeviceConflict:
		return "The session was opened elsewhere."
	case postern.DeviceUnlinked:
		return "The phone was unlinked here."
	case postern.DevicePaused:
		return "It was paused."
	}
	return ""
}

func (d *dash) deviceHealth(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	h, err := d.health(r, v, one.ID, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	return d.show(w, r, http.StatusOK, page.DeviceHealth(d.frame(r, v, "Health of a device", "/devices"), page.DeviceHealthView{Device: deviceOf(one), Health: h}))
}
