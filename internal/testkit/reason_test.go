package testkit_test

import (
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// TestRefusedLoginHasItsOwnEvent: the reason of the refusal is not hidden behind what ended
// the connection before it.
func TestRefusedLoginHasItsOwnEvent(t *testing.T) {
	t.Parallel()
	for code, reason := range map[string]string{"405": "client-outdated", "503": "vendor-unavailable"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			k := testkit.Start(t)
			s := &stage{t, k, k.Workspace("enterprise")}
			d := s.c.Link(phone)
			for range 4 {
				s.vendor(vendorsim.Fault("refuse:" + code))
			}
			s.fault("drop")(d)
			s.logged(d, postern.DeviceDisconnected, postern.Disconnected, "socket-closed")
			s.logged(d, postern.DeviceDisconnected, postern.Disconnected, reason)
		})
	}
}

// TestUnreadableMessageSaysWhy, as its event does.
func TestUnreadableMessageSaysWhy(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		s := &stage{t, k, k.Workspace("growth")}
		d := s.c.Link(phone)
		for fault, code := range map[vendorsim.Fault]postern.FailureCode{
			vendorsim.FaultBadProtobuf: postern.MalformedContent, vendorsim.FaultBadTime: postern.MalformedMessage,
			vendorsim.FaultPoison: postern.DecryptionPanicked,
		} {
			s.vendor(fault)
			if _, err := k.Vendor.Send(t.Context(), phone, customer, "unreadable"); err != nil {
				t.Fatal(err)
			}
			var log struct {
				Data []struct {
					Message struct{ Error *postern.Failure }
				}
			}
			testkit.Eventually(t, "message.undecryptable with "+string(code), func() (bool, any) {
				s.c.Call("GET", "/v1/events?type=message.undecryptable&deviceId="+string(d.ID), nil, 200, &log)
				for _, e := range log.Data {
					if e.Message.Error != nil && e.Message.Error.Code == code {
						return true, nil
					}
				}
				return false, log.Data
			})
		}
		if _, err := k.Vendor.Send(t.Context(), phone, customer, "readable"); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the next message", func() (bool, any) {
			got := bodies(s.c, "direction=inbound")
			return strings.Contains(strings.Join(got, "\n"), "readable"), got
		})
	})
}

// TestOneNumberIsLinkedOnce in a workspace, unless a second device is asked for.
func TestOneNumberIsLinkedOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		first := c.Link(phone)
		second := create(c)
		for _, body := range []map[string]any{
			{"expectedPhoneNumber": phone}, {"method": "code", "phoneNumber": phone},
		} {
			if a := c.Do("POST", path(second, "/link"), body); a.Status != 409 ||
				!strings.Contains(string(a.Body), "/problems/number-already-linked") {
				t.Errorf("an attempt for the number of another device = %d %s", a.Status, a.Body)
			}
		}
		status, l := relink(t, c, second, phone, map[string]any{})
		if status != 409 || l.Status != postern.LinkFailed || l.Reason != "number-already-linked" {
			t.Errorf("the phone got %d, the attempt is %s (%s)", status, l.Status, l.Reason)
		}
		if d := c.Device(first.ID); d.Status != postern.Connected {
			t.Errorf("the first device is %s", d.Status)
		}
		status, l = relink(t, c, c.Device(second.ID), phone, map[string]any{"allowSecond": true})
		if status != 200 || l.Status != postern.LinkLinked {
			t.Errorf("with allowSecond the phone got %d, the attempt is %s (%s)", status, l.Status, l.Reason)
		}
		c.Await(second.ID, postern.Connected)
		// What one of them sends is from a companion of the other's account.
		hooks := c.Receive("message.echo")
		send(c, c.Device(second.ID), customer, "from the second")
		if m := members(t, hooks.AwaitCount(postern.MessageEcho, 1)[0], "message"); m["source"] != postern.FromCompanion {
			t.Errorf("the first device reports %v", m)
		}
		// The same device may be linked to its number again.
		if _, l = relink(t, c, c.Device(second.ID), phone, map[string]any{"allowSecond": true}); l.Status != postern.LinkLinked {
			t.Errorf("linked again: %s (%s)", l.Status, l.Reason)
		}
	})
}
