package dash

import (
	"net/http"

	"postern/internal/dash/page"
	"postern/internal/postern"
)

// deviceRoutes are the pages behind that of a device.
func (d *dash) deviceRoutes() {
	d.member("GET /devices/{id}/delete", d.askDelete, postern.DevicesWrite)
	d.member("GET /devices/{id}/health", d.deviceHealth, postern.DevicesRead, postern.EventsRead)
	d.member("POST /devices/{id}/delete", d.deleteDevice, postern.DevicesWrite)
	d.member("POST /devices/{id}/phone/delivered/{message}", d.messageArrives, postern.SandboxWrite)
	d.member("POST /devices/{id}/phone/offline", d.phoneLeaves, postern.SandboxWrite)
}

func (d *dash) askDelete(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showRemoval(w, r, v, http.StatusOK, "")
}

func (d *dash) showRemoval(w http.ResponseWriter, r *http.Request, v visit, status int, wrong string) error {
	one, err := d.g.Devices.Get(r.Context(), v.caller, deviceIn(r))
	if err != nil {
		return err
	}
	view := page.RemovalView{Device: deviceOf(one), Linked: one.Status.HoldsSlot() && one.Status != postern.Linking, Password: page.Field{Error: wrong}}
	if view.Again, err = d.again(r, v, r.URL.Path); err != nil {
		return err
	}
	return d.show(w, r, status, page.Removal(d.frame(r, v, "Delete a device", "/devices"), view))
}

func (d *dash) deleteDevice(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.g.Devices.DeleteByPassword(r.Context(), v.caller, deviceIn(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.showRemoval(w, r, v, http.StatusUnprocessableEntity, wrong["password"])
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The device was deleted.", "/devices")
}
