package gateway

import (
	"testing"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
)

// operatorIn is the operator's caller in a new workspace.
func operatorIn(t *testing.T, g *Gateway) access.Caller {
	t.Helper()
	ws, err := g.Workspaces.Create(t.Context(), access.Operator(), NewWorkspace{Name: "acme", Plan: "growth"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.Workspaces.Caller(t.Context(), access.Operator(), ws.ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newDevice(t *testing.T, g *Gateway, c access.Caller) postern.DeviceID {
	t.Helper()
	d, err := g.Devices.Create(t.Context(), c, NewDevice{Name: "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Value.ID
}

func TestLinksOfAForeignDeviceAreNotWatched(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		mine, other := operatorIn(t, g), operatorIn(t, g)
		id := newDevice(t, g, mine)
		narrow := mine
		narrow.Key.Devices = []postern.DeviceID{newDevice(t, g, mine)}
		for name, c := range map[string]access.Caller{"another workspace": other, "a key for another device": narrow} {
			if l, err := g.Links.Watch(t.Context(), c, id); l != nil ||
				postern.ReasonOf(err) != postern.ResourceNotAllowed {
				t.Errorf("%s: a listener is open: %t, %v", name, l != nil, err)
			}
		}
		l, err := g.Links.Watch(t.Context(), mine, id)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

// The number of devices is checked before the database is asked for each of them.
func TestTooManyDevicesOfAWebhookAreNotLookedUp(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		c := operatorIn(t, g)
		in := NewEndpoint{URL: "https://hooks.example.com"}
		for range maxDeviceIDs + 1 {
			in.DeviceIDs = append(in.DeviceIDs, postern.NewDeviceID())
		}
		_, err := g.Webhooks.Create(t.Context(), c, in, nil)
		if postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("%d unknown devices: %v", len(in.DeviceIDs), err)
		}
	})
}

// The history of a device's state is read from the event log.
func TestHealthNeedsTheScopeOfEvents(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		c := operatorIn(t, g)
		id := newDevice(t, g, c)
		c.Key.Scopes = []postern.Scope{postern.DevicesRead}
		if _, err := g.Devices.Health(t.Context(), c, id,
			paging.Page{}); postern.ReasonOf(err) != postern.MissingScope {
			t.Errorf("with devices:read alone: %v", err)
		}
	})
}
