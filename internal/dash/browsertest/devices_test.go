package browsertest

import (
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// linkDevice adds a device that the simulated phone links, and gives the path of its
// page, where the browser is then.
func (b *browser) linkDevice() string {
	b.t.Helper()
	b.goTo("/devices/new")
	b.fill("#name", "Support")
	b.press("main form button:not([type])")
	b.press(`form[action$="/link"] button`)
	b.do(chromedp.WaitVisible(chromedp.CSS(`form[action$="/phone/scan"] button`)))
	b.press(`form[action$="/phone/scan"] button`)
	b.do(chromedp.WaitVisible(chromedp.CSS("#state-title + .badge-success")))
	return b.path()
}

// A device is linked, looked at, and deleted: once with a wrong password.
func TestDeviceIsDeletedWithThePasswordAgain(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.linkDevice()
	b.sees("The device connected.")
	b.picture("device-health-part")
	b.usable()
	b.goTo(device + "/health")
	b.sees("A phone was linked: +1555")
	b.picture("device-health")
	b.goTo(device)
	b.press(`a[href$="/delete"]`)
	b.sees("This permanently deletes:")
	b.picture("device-removal")
	b.focuses("password")
	b.fill("#password", "not this one")
	b.enter()
	b.sees("This password is not correct.")
	b.picture("device-removal-refused")
	b.usable()
	b.fill("#password", password)
	b.press("main form button.btn-error")
	if p := b.path(); p != "/devices" {
		t.Errorf("the browser is at %s", p)
	}
	b.sees("The device was deleted.")
	b.sees("No devices yet")
	b.goTo(device)
	b.sees("Not found")
	b.goTo("/people/audit")
	for _, act := range []string{"Added a device", "Started to link a phone", "Deleted a device", "Support"} {
		b.sees(act)
	}
	b.picture("audit")
	b.do(chromedp.SetValue(chromedp.CSS("#kind"), "user"))
	b.press("main form button")
	if text := b.text(); strings.Contains(text, "Added a device") {
		t.Error("acts of other kinds are shown")
	}
	b.sees("Set up the server")
}

// The simulated phone goes offline and comes back by its buttons.
func TestSimulatedPhoneGoesOffline(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	_, device := b.linked(k)
	b.goTo("/devices/" + string(device))
	b.press(`a[href$="/phone"]`)
	b.press(`button[name="seconds"][value="600"]`)
	b.do(chromedp.WaitVisible(chromedp.CSS("#chat-title + .badge-warning")))
	b.picture("phone-offline")
	b.usable()
	b.press(`button[name="seconds"][value="0"]`)
	b.do(chromedp.WaitVisible(chromedp.CSS("#chat-title + .badge-success")))
	b.sees("can reconnect")
}
