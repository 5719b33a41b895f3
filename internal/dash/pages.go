package dash

import (
	"net/http"
	"net/url"
	"strconv"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// overview is the first page: what to do next, and what is used of the plan.
func (d *dash) overview(w http.ResponseWriter, r *http.Request, v visit) error {
	usage, err := d.g.Usage(r.Context(), v.caller)
	if err != nil {
		return err
	}
	view := page.OverviewView{Tiles: []page.Tile{
		{Label: "Messages sent this month", Value: number(usage.Messages.Used), Note: "of " + number(usage.Messages.Limit)},
		{Label: "Devices linked", Value: number(usage.Devices.Used), Note: "of " + number(usage.Devices.Limit)},
	}}
	view.Steps = []page.Step{
		{Title: "Add a device and link a phone", Text: "The page shows a code for the phone to scan. In the sandbox a simulated phone scans it.", Href: "/devices/new", Done: usage.Devices.Used > 0},
		{Title: "Make an API key", Text: "Your backend sends it with every request.", Href: "/keys/new", Done: d.hasKey(r, v)},
		{Title: "Send a message", Text: "POST /v1/messages with the device and a number.", Href: "/docs", Done: usage.Messages.Used > 0},
		{Title: "Register a webhook", Text: "What happens is posted to your backend, signed.", Href: "/webhooks/new", Done: d.hasWebhook(r, v)},
	}
	return d.show(w, r, http.StatusOK, page.Overview(d.frame(r, v, "Overview", "/"), view))
}

// number writes a number with its thousands apart: 1,000,000.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// hasWebhook tells whether there is a webhook; those who may not see any are not
// told.
func (d *dash) hasWebhook(r *http.Request, v visit) bool {
	if v.caller.Permit(postern.WebhooksRead) != nil {
		return false
	}
	list, err := d.g.Endpoints(r.Context(), v.caller, gateway.Page{Limit: 1})
	return err == nil && len(list.Data) > 0
}

// hasKey tells whether there is a key; those who may not see keys are not told.
func (d *dash) hasKey(r *http.Request, v visit) bool {
	has, err := d.g.HasKey(r.Context(), v.actor, v.workspace())
	return err == nil && has
}

func (d *dash) devices(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Devices(r.Context(), v.caller, gateway.Page{Cursor: r.FormValue("after")})
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
	return d.show(w, r, http.StatusOK, page.Devices(d.frame(r, v, "Devices", "/devices"), view))
}

func deviceOf(one postern.Device) page.Device {
	v := page.Device{ID: string(one.ID), Name: one.Name, Number: string(one.PhoneNumber), Status: string(one.Status), Reason: string(one.StatusReason), Mode: one.Mode}
	if one.LastSeenAt != 0 {
		v.LastSeen = one.LastSeenAt.Std()
	}
	return v
}
