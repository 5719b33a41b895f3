package testkit_test

import (
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

func (w statuses) of(c *testkit.Client) (got statuses) {
	var list struct{ Data []postern.Device }
	c.Call("GET", "/v1/devices", nil, 200, &list)
	for _, d := range list.Data {
		got = append(got, string(d.Status)+" "+string(d.StatusReason))
	}
	slices.Reverse(got)
	return got
}

type statuses []string

// TestASmallerPlanPausesTheYoungestLinks and a larger one resumes exactly those.
func TestASmallerPlanPausesTheYoungestLinks(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("device.paused")
	numbers := []string{phone, "+15550002222", "+15550003333", "+15550004444"}
	var devices []postern.Device
	for _, n := range numbers {
		devices = append(devices, c.Link(n))
	}
	// The oldest device was linked again later than the others.
	c.Call("POST", path(devices[0], "/unlink"), nil, 200, nil)
	c.Call("POST", path(devices[0], "/link"), nil, 201, nil)
	c.Call("POST", "/v1/sandbox/devices/"+string(devices[0].ID)+"/scan", nil, 200, nil)
	c.Await(devices[0].ID, postern.Connected)
	c.Call("POST", path(devices[3], "/pause"), nil, 200, nil)
	var open postern.Device
	c.Call("POST", "/v1/devices", map[string]any{"name": "new"}, 201, &open)
	c.Call("POST", path(open, "/link"), nil, 201, nil)

	k.SetPlan(c.Workspace, "starter")
	hooks.Await(postern.DevicePaused, postern.DevicePaused, postern.DevicePaused)
	want := statuses{"paused plan-limit", "connected ", "paused plan-limit", "paused user", "unlinked plan-limit"}
	if got := want.of(c); !slices.Equal(got, want) {
		t.Errorf("on the smaller plan: %q, want %q", got, want)
	}
	for _, n := range []string{numbers[0], numbers[2], numbers[3]} {
		awaitOffline(t, k, n)
	}
	if a := c.Do("POST", path(devices[2], "/resume"), nil); a.Status != 403 ||
		!strings.Contains(string(a.Body), "device-limit") {
		t.Errorf("resuming beyond the plan = %d %s", a.Status, a.Body)
	}
	if a := c.Do("POST", path(open, "/link"), nil); a.Status != 403 ||
		!strings.Contains(string(a.Body), "device-limit") {
		t.Errorf("linking beyond the plan = %d %s", a.Status, a.Body)
	}

	k.SetPlan(c.Workspace, "growth")
	c.Await(devices[0].ID, postern.Connected)
	c.Await(devices[2].ID, postern.Connected)
	want = statuses{"connected ", "connected ", "connected ", "paused user", "unlinked plan-limit"}
	if got := want.of(c); !slices.Equal(got, want) {
		t.Errorf("on the larger plan: %q, want %q", got, want)
	}
}

// TestTheOperatorsOwnNumberPausesToo and giving it back to the plan resumes.
func TestTheOperatorsOwnNumberPausesToo(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	first, second := c.Link(phone), c.Link("+15550002222")
	k.SetDevices(c.Workspace, 1)
	c.Await(second.ID, postern.Paused)
	awaitOffline(t, k, "+15550002222")
	want := statuses{"connected ", "paused plan-limit"}
	if got := want.of(c); !slices.Equal(got, want) {
		t.Errorf("with one device: %q, want %q", got, want)
	}
	k.SetPlan(c.Workspace, "pro") // the operator's own number stands
	if got := want.of(c); !slices.Equal(got, want) {
		t.Errorf("on a larger plan: %q, want %q", got, want)
	}
	k.SetDevices(c.Workspace, -1)
	c.Await(second.ID, postern.Connected)
	c.Await(first.ID, postern.Connected)
}
