package testkit_test

import (
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// A phone that was not seen for long is reported once, and is a problem until the phone writes or reads something.
func TestPhonesThatAreNotSeen(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("device.phone_unseen", "message.received", "message.echo")
		d := c.Link(phone)
		linked := c.Device(d.ID).PhoneSeenAt
		if linked == 0 {
			t.Error("a phone that has scanned the code was not seen")
		}
		caller, err := k.Gateway().Keys.Authenticate(t.Context(), "Bearer "+string(c.Key))
		if err != nil {
			t.Fatal(err)
		}
		problems := func() []gateway.Problem {
			a, err := k.Gateway().Statistics.Attention(t.Context(), caller)
			if err != nil {
				t.Fatal(err)
			}
			return a.Problems
		}
		received := 0
		for i, seen := range []func(){
			func() {
				if _, err := k.Vendor.Type(t.Context(), phone, customer, "I am back."); err != nil {
					t.Fatal(err)
				}
			},
			func() {
				received++
				id, err := k.Vendor.Send(t.Context(), phone, customer, "Hello")
				if err != nil {
					t.Fatal(err)
				}
				hooks.AwaitCount(postern.MessageReceived, received)
				if at := c.Device(d.ID).PhoneSeenAt; at >= linked {
					t.Errorf("a message of somebody else shows the phone at %v", at)
				}
				if err := k.Vendor.PhoneRead(phone, false, id); err != nil {
					t.Fatal(err)
				}
			},
		} {
			c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": "phone-unseen"}, 204, nil)
			told := members(t, hooks.AwaitCount(postern.DevicePhoneUnseen, i+1)[i], "device")
			if told["status"] != "connected" || told["phoneSeenAt"] == nil {
				t.Errorf("the event says %v", told)
			}
			if list := problems(); len(list) != 1 || list[0].Kind != gateway.PhoneUnseen {
				t.Errorf("problems are %+v", list)
			}
			seen()
			testkit.Eventually(t, "the phone is seen", func() (bool, any) {
				at := c.Device(d.ID).PhoneSeenAt
				return at >= linked-1000, at // the network's clock has whole seconds
			})
			if list := problems(); len(list) != 0 {
				t.Errorf("afterwards, problems are %+v", list)
			}
		}
		if got := hooks.AwaitCount(postern.DevicePhoneUnseen, 2); len(got) != 2 {
			t.Errorf("%d events", len(got))
		}
	})
}
