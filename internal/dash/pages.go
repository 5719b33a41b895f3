package dash

import (
	"net/http"
	"net/url"

	"postern/internal/dash/page"
	"postern/internal/paging"
	"postern/internal/postern"
)

func (d *dash) devices(w http.ResponseWriter, r *http.Request, v visit) error {
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
	return d.show(w, r, http.StatusOK, page.Devices(d.frame(r, v, "Devices", "/devices"), view))
}

func deviceOf(one postern.Device) page.Device {
	v := page.Device{ID: string(one.ID), Name: one.Name, Number: string(one.PhoneNumber), Status: string(one.Status), Reason: string(one.StatusReason), Mode: one.Mode}
	if one.LastSeenAt != 0 {
		v.LastSeen = one.LastSeenAt.Std()
	}
	return v
}
