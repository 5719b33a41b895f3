package gateway

import (
	"testing"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
)

// The table of rights is found with empty arguments, so it does not show what a new URL needs
// in addition.
func TestNewURLNeedsTheScopesOfANewWebhook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		c := operatorIn(t, g)
		made, err := g.Webhooks.Create(t.Context(), c, NewEndpoint{URL: "https://hooks.example.com"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, lacks := range []postern.Scope{postern.MessagesRead, postern.EventsRead} {
			narrow := c
			narrow.Key.Scopes = []postern.Scope{postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead}
			for i, s := range narrow.Key.Scopes {
				if s == lacks {
					narrow.Key.Scopes[i] = postern.WebhooksRead
				}
			}
			in := EndpointChange{URL: "https://hooks.example.com/2"}
			if _, err := g.Webhooks.Change(t.Context(), narrow, made.Value.ID,
				in); postern.ReasonOf(err) != postern.MissingScope {
				t.Errorf("without %s: %v", lacks, err)
			}
			note := "x"
			if _, err := g.Webhooks.Change(t.Context(), narrow, made.Value.ID,
				EndpointChange{Description: &note}); err != nil {
				t.Errorf("another change without %s: %v", lacks, err)
			}
		}
	})
}

// A foreign id, and that of a device outside the key's list, are refused by every method
// about one device.
func TestForeignDevicesAreRefusedByEveryMethod(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		mine, other := operatorIn(t, g), operatorIn(t, g)
		id := newDevice(t, g, mine)
		narrow := mine
		narrow.Key.Devices = []postern.DeviceID{newDevice(t, g, mine)}
		for who, c := range map[string]access.Caller{"another workspace": other, "a narrow key": narrow} {
			for name, err := range ofOneDevice(t, g, c, id) {
				if postern.ReasonOf(err) != postern.ResourceNotAllowed {
					t.Errorf("%s for %s: %v", name, who, err)
				}
			}
		}
	})
}

// ofOneDevice calls every method about one device.
func ofOneDevice(t *testing.T, g *Gateway, c access.Caller, id postern.DeviceID) map[string]error {
	t.Helper()
	ctx := t.Context()
	return map[string]error{
		"get": failed(g.Devices.Get(ctx, c, id)), "change": failed(g.Devices.Change(ctx, c, id, DeviceChange{})),
		"delete": g.Devices.Delete(ctx, c, id), "delete by password": g.Devices.DeleteByPassword(ctx, c, id, "x"),
		"pause": failed(g.Devices.Pause(ctx, c, id)), "resume": failed(g.Devices.Resume(ctx, c, id)),
		"unlink": failed(g.Devices.Unlink(ctx, c, id)), "health": failed(g.Devices.Health(ctx, c, id, paging.Page{})),
		"open link": failed(g.Links.Open(ctx, c, id, NewLink{}, nil)), "link": failed(g.Links.Get(ctx, c, id)),
		"code": failed(g.Links.Code(ctx, c, id)), "cancel link": g.Links.Cancel(ctx, c, id),
		"confirm": failed(g.Links.Confirm(ctx, c, id)),
		"passkey": failed(g.Links.AnswerPasskey(ctx, c, id, postern.PasskeyCredential{})), "watch": failed(g.Links.Watch(ctx, c, id)),
		"link page": failed(g.LinkPages.Open(ctx, c, id, nil)),
	}
}

func failed[T any](_ T, err error) error { return err }
