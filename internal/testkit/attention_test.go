package testkit_test

import (
	"net/http"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// What is wrong in a workspace is listed with its age and with what waits because of it, and is gone when it has ended.
func TestAttention(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("device.*")
		d := c.Link(phone)
		caller, err := k.Gateway().Keys.Authenticate(t.Context(), "Bearer "+string(c.Key))
		if err != nil {
			t.Fatal(err)
		}
		attention := func() gateway.Attention {
			a, err := k.Gateway().Statistics.Attention(t.Context(), caller)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := attention(); a.Up != 1 || a.Endpoints != 1 || len(a.Problems) != 0 || a.Waiting != 0 {
			t.Errorf("at first: %+v", a)
		}
		hooks.Down(http.StatusServiceUnavailable)
		if err := k.Vendor.Fault(t.Context(), phone, "logout"); err != nil {
			t.Fatal(err)
		}
		c.Await(d.ID, postern.LoggedOut)
		testkit.Eventually(t, "two problems", func() (bool, any) {
			a := attention()
			return a.Down == 1 && a.Failing == 1 && len(a.Problems) == 2, a
		})
		for _, p := range attention().Problems {
			if p.Since == 0 || p.OfEndpoint() && p.Waiting == 0 {
				t.Errorf("a problem is %+v", p)
			}
		}
		hooks.Down(0)
		testkit.Eventually(t, "deliveries that are retried", func() (bool, any) {
			n, err := k.Gateway().Deliveries.RetryWaiting(t.Context(), caller, hooks.Endpoint.ID)
			return attention().Failing == 0, []any{n, err}
		})
		c.Call(http.MethodDelete, "/v1/devices/"+string(d.ID), nil, http.StatusNoContent, nil)
		if a := attention(); len(a.Problems) != 0 || a.Down != 0 {
			t.Errorf("in the end: %+v", a)
		}
	})
}

// The board has each device with its last messages, and each webhook with its last attempts, those that fail first.
func TestBoard(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		good, bad := c.Receive("message.*"), c.Receive("message.*")
		d := c.Link(phone)
		caller, err := k.Gateway().Keys.Authenticate(t.Context(), "Bearer "+string(c.Key))
		if err != nil {
			t.Fatal(err)
		}
		board := func() gateway.Board {
			b, err := k.Gateway().Statistics.Board(t.Context(), caller)
			if err != nil || len(b.Devices) != 1 || len(b.Endpoints) != 2 {
				t.Fatalf("%+v, %v; want a device and two webhooks", b, err)
			}
			return b
		}
		if b := board(); b.Devices[0].LastIn != 0 || b.Devices[0].LastOut != 0 || b.Endpoints[0].LastSuccess != 0 {
			t.Errorf("at first: %+v", b)
		}
		bad.Down(http.StatusServiceUnavailable)
		send(c, d, customer, "hello")
		testkit.Eventually(t, "attempts of both webhooks", func() (bool, any) {
			b := board()
			first, second := b.Endpoints[0], b.Endpoints[1]
			return first.ID == bad.Endpoint.ID && first.FailingSince > 0 && first.Failed > 0 && first.LastFailure > 0 &&
				first.Waiting > 0 && second.ID == good.Endpoint.ID && second.Succeeded > 0 && second.Failed == 0 &&
				second.LastSuccess > 0 && second.LastFailure == 0, b
		})
		if s := board().Devices[0]; s.ID != d.ID || s.Status != postern.Connected || s.Since == 0 || s.LastOut == 0 ||
			s.LastIn != 0 {
			t.Errorf("the device is %+v", s)
		}
		if _, err := k.Vendor.Send(t.Context(), phone, customer, "hi"); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the message that arrived", func() (bool, any) {
			s := board().Devices[0]
			return s.LastIn > 0, s
		})
	})
}
