package testkit_test

import (
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// stage is where a row of the table of statuses plays.
type stage struct {
	t *testing.T
	k *testkit.Kit
	c *testkit.Client
}

// fault is one that a user of the sandbox can make.
func (s *stage) fault(kind string) func(postern.Device) {
	return func(d postern.Device) {
		s.c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": kind}, 204, nil)
	}
}

// stays is a fault after which the vendor refuses the next logins, so that the
// state does not pass at once.
func (s *stage) stays(kind string) func(postern.Device) {
	return func(d postern.Device) {
		for range 8 {
			s.vendor(vendorsim.FaultRefuse)
		}
		s.fault(kind)(d)
	}
}

// ends is the row of a fault that ends the session of one device. A webhook tells of it, another
// device does not notice it, and a message is refused.
func (s *stage) ends(kind string, status postern.Status, reason string, event postern.EventType) statusRow {
	return statusRow{status, reason, event, func(d postern.Device) {
		hooks := s.c.Receive("device.*")
		other := s.c.Link("+15550002222")
		s.fault(kind)(d)
		s.c.Await(d.ID, status)
		hooks.Await(event)
		s.c.Await(other.ID, postern.Connected)
		a := s.c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "x"})
		if a.Status != 409 || !strings.Contains(string(a.Body), `"code":"DEVICE_NOT_CONNECTED"`) {
			s.t.Errorf("a send = %d %s, want 409 DEVICE_NOT_CONNECTED", a.Status, a.Body)
		}
	}}
}

func (s *stage) vendor(f vendorsim.Fault) {
	s.t.Helper()
	if err := s.k.Vendor.Fault(s.t.Context(), phone, f); err != nil {
		s.t.Error(err)
	}
}

func (s *stage) post(action string) func(postern.Device) {
	return func(d postern.Device) { s.c.Call("POST", path(d, action), nil, 200, nil) }
}

// hang leaves a connection that is being opened without an answer.
func (s *stage) hang(d postern.Device) {
	s.post("/pause")(d)
	awaitOffline(s.t, s.k, phone)
	s.vendor(vendorsim.FaultHang)
	s.post("/resume")(d)
}

func (s *stage) nothing(postern.Device) {}

// logged waits for an event of the device with a status and the beginning of a
// reason.
func (s *stage) logged(d postern.Device, want postern.EventType, status postern.Status, reason string) {
	s.t.Helper()
	testkit.Eventually(s.t, string(want)+" "+reason, func() (bool, any) {
		var log struct {
			Data []struct {
				Type   postern.EventType
				Device struct{ Status, StatusReason string }
			}
		}
		s.c.Call("GET", "/v1/events?limit=200&deviceId="+string(d.ID), nil, 200, &log)
		for _, e := range log.Data {
			if e.Type == want && e.Device.Status == string(status) && strings.HasPrefix(e.Device.StatusReason, reason) {
				return true, nil
			}
		}
		return false, log.Data
	})
}

// statuses is the table: each state with a real cause, and what is said of it.
func (s *stage) statuses() map[string]statusRow {
	return map[string]statusRow{
		"connected":         {postern.Connected, "", postern.DeviceConnected, s.nothing},
		"unlinked by us":    {postern.Unlinked, "unlinked", postern.DeviceUnlinked, s.post("/unlink")},
		"connecting":        {postern.Connecting, "", "", s.hang},
		"disconnected, cut": {postern.Disconnected, "socket-closed", postern.DeviceDisconnected, s.stays("drop")},
		"disconnected, half-open": {
			postern.Disconnected, "keepalive-timeout", postern.DeviceDisconnected, s.stays("silence"),
		},
		"paused by the user": {postern.Paused, "user", postern.DevicePaused, s.post("/pause")},
		"paused by the plan": {postern.Paused, "plan-limit", postern.DevicePaused, func(postern.Device) {
			s.k.SetDevices(s.c.Workspace, 0)
		}},
		"restricted": s.ends("restrict", postern.Restricted, "temporary-ban", postern.DeviceRestricted),
		"conflict":   s.ends("conflict", postern.Conflict, "replaced", postern.DeviceConflict),
		"logged out": s.ends("logout", postern.LoggedOut, "device-removed", postern.DeviceLoggedOutEv),
		"banned":     s.ends("ban", postern.Banned, "locked", postern.DeviceBanned),
	}
}

type statusRow struct {
	status postern.Status
	reason string // its beginning
	event  postern.EventType
	cause  func(postern.Device)
}

func (r statusRow) check(t *testing.T, s *stage) {
	t.Helper()
	d := s.c.Link(phone)
	r.cause(d)
	d = s.c.Await(d.ID, r.status)
	if r.event != "" {
		s.logged(d, r.event, r.status, r.reason)
	}
	if restricted := d.Status == postern.Restricted; restricted != (d.RestrictedUntil > d.CreatedAt) {
		t.Errorf("%s until %s", d.Status, d.RestrictedUntil)
	}
	// What a retry finds out may be the reason by now.
	if again := r.status == postern.Disconnected; !again && !strings.HasPrefix(string(d.StatusReason), r.reason) {
		t.Errorf("%s for %q, want %q", d.Status, d.StatusReason, r.reason)
	}
	a := s.c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "x"})
	if sends := d.Status == postern.Connected; sends != (a.Status == 202) ||
		!sends && !strings.Contains(string(a.Body), string(r.status)) {
		t.Errorf("a send while %s = %d %s", d.Status, a.Status, a.Body)
	}
}

// TestEveryStatusIsReached by a real cause, over HTTP.
func TestEveryStatusIsReached(t *testing.T) {
	t.Parallel()
	reached := map[postern.Status]bool{}
	for name, r := range (&stage{}).statuses() {
		reached[r.status] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := testkit.Start(t)
			s := &stage{t, k, k.Workspace("enterprise")}
			s.statuses()[name].check(t, s)
		})
	}
	c := testkit.Start(t).Workspace("growth")
	d := create(c)
	for _, want := range []postern.Status{postern.Unlinked, postern.Linking} {
		reached[want] = true
		if d = c.Device(d.ID); d.Status != want || d.StatusReason != "" {
			t.Errorf("the device is %s (%s), want %s", d.Status, d.StatusReason, want)
		}
		if want == postern.Unlinked {
			c.Call("POST", path(d, "/link"), nil, 201, nil)
		}
	}
	if len(reached) != 10 {
		t.Errorf("%d statuses are reached, want all 10", len(reached))
	}
}
