package dash

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/postern"
)

func TestDeviceIsDeletedWithThePasswordAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	c.says(path, `href="`+path+`/delete"`)
	c.says(path+"/delete", "Delete “Support”?", "all messages", `autocomplete="current-password"`)
	p := c.post(path+"/delete", url.Values{"password": {"not this one"}})
	if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, `id="password-error"`) ||
		!strings.Contains(p.body, "This password is not correct.") {
		t.Errorf("a wrong password: status %d", p.status)
	}
	c.want(c.get(path), http.StatusOK, "")
	c.want(c.post(path+"/delete", url.Values{"password": {password}}), http.StatusSeeOther, "/devices")
	c.says("/devices", "The device was deleted.")
	for _, gone := range []answer{
		c.get(path), c.get(path + "/delete"), c.post(path+"/delete", url.Values{"password": {password}}),
	} {
		c.want(gone, http.StatusNotFound, "")
	}
	c.says("/people/audit", "Deleted a device", "Support", email)
}

func TestDeletingADeviceIsRefusedToOthersAndToGuessers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	right := url.Values{"password": {password}}
	other := s.device()
	c.want(c.get(other+"/delete"), http.StatusNotFound, "")
	c.want(c.post(other+"/delete", right), http.StatusNotFound, "")
	c.want(c.do(http.MethodPost, path+"/delete", right, "Origin", "https://evil.example"), http.StatusForbidden, "")
	s.as(postern.Viewer)
	c.want(c.get(path+"/delete"), http.StatusForbidden, "")
	c.want(c.post(path+"/delete", right), http.StatusForbidden, "")
	if p := c.get(path); strings.Contains(p.body, path+"/delete") {
		t.Error("a viewer is offered to delete the device")
	}
	s.as(postern.Developer)
	tries := 0
	for p := c.post(path+"/delete", nil); p.status != http.StatusTooManyRequests; p = c.post(path+"/delete", nil) {
		if tries++; p.status != http.StatusUnprocessableEntity || tries > 20 {
			t.Fatalf("guess %d is answered %d", tries, p.status)
		}
	}
	c.want(c.post(path+"/delete", right), http.StatusTooManyRequests, "")
	c.want(c.get(path), http.StatusOK, "")
}

func TestMemberCannotDeleteADeviceAsAKeyDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	member, err := s.p.Members.Caller(t.Context(), access.Self{ID: s.member(email)}, s.workspace())
	if err != nil {
		t.Fatal(err)
	}
	err = s.g.Devices.Delete(t.Context(), member, postern.DeviceID(strings.TrimPrefix(path, "/devices/")))
	if postern.ReasonOf(err) != postern.ValidationFailed {
		t.Errorf("a member deletes a device without the password: %v", err)
	}
	c.want(c.get(path), http.StatusOK, "")
}
