package gateway

import (
	"cmp"
	"context"

	"postern/internal/access"
	"postern/internal/postern"
)

// EndpointChange is a change of an endpoint. A zero field keeps its value.
type EndpointChange struct {
	URL         string
	Description *string
	Events      []string
	DeviceIDs   Change[[]postern.DeviceID]        // null means all devices that the key may use
	Headers     Change[map[string]Change[string]] // null removes all, or one
	MaxInFlight int
	Ordered     *bool
	Signatures  []string
	Handshake   string // of the next verification
}

// Change changes an endpoint. A new URL replaces the old one when it has answered the
// handshake. It needs messages:read and events:read too, because it sends the caller's
// events to another receiver, and a plan with webhooks.
func (g Webhooks) Change(
	ctx context.Context, c access.Caller, id postern.EndpointID, in EndpointChange,
) (postern.Endpoint, error) {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return postern.Endpoint{}, err
	}
	if in.URL != "" { // like creating an endpoint
		if err := c.PermitWebhooks(postern.MessagesRead, postern.EventsRead); err != nil {
			return postern.Endpoint{}, err
		}
	}
	if err := g.checkChange(in); err != nil {
		return postern.Endpoint{}, err
	}
	if in.DeviceIDs.Given {
		devices, err := g.devicesFor(ctx, c, in.DeviceIDs.or(nil, nil))
		if err != nil {
			return postern.Endpoint{}, err
		}
		in.DeviceIDs.Value = &devices
	}
	now := g.time()
	return g.change(ctx, c, id, "webhook.changed", func(e *postern.Endpoint) error {
		in.apply(e)
		if err := g.changeHeaders(e, in); err != nil {
			return err
		}
		if in.Signatures != nil {
			g.signWith(e, in.Signatures)
		}
		if in.URL != "" {
			moveTo(e, in.URL, now)
		}
		return nil
	})
}

// change changes an endpoint that the caller may use both before and after the change, and
// records it in the audit log.
func (g Webhooks) change(
	ctx context.Context, c access.Caller, id postern.EndpointID, act string, change func(*postern.Endpoint) error,
) (postern.Endpoint, error) {
	e, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Endpoint{}, err
	}
	return g.db.Endpoints.Change(ctx, c.Workspace(), id, nil, func(e *postern.Endpoint) error {
		if !sees(c, *e) {
			return notThisEndpoint()
		}
		return change(e)
	}, didByAny(c, g.time(), act, string(id), e.URL)...)
}

func notThisEndpoint() error {
	return postern.Errorf(postern.ResourceNotAllowed, "this key may not use that webhook endpoint")
}

func (g Webhooks) checkChange(in EndpointChange) error {
	if in.URL != "" {
		if err := g.checkURL(in.URL); err != nil {
			return postern.Invalid("/url", "%s", err)
		}
	}
	n := NewEndpoint{
		Events: in.Events, MaxInFlight: in.MaxInFlight, Signatures: in.Signatures, Handshake: in.Handshake,
		Headers: givenHeaders(in.Headers),
	}
	if in.Description != nil {
		n.Description = *in.Description
	}
	n.DeviceIDs = in.DeviceIDs.or(nil, nil)
	return checkEndpoint(n)
}

// devicesFor returns the devices for an endpoint when the caller asks for some by id; each
// one must exist.
func (g Webhooks) devicesFor(
	ctx context.Context, c access.Caller, named []postern.DeviceID,
) ([]postern.DeviceID, error) {
	ids, err := endpointDevices(c, named)
	if err != nil {
		return nil, err
	}
	return ids, g.devicesExist(ctx, c, named)
}

func (g Webhooks) devicesExist(ctx context.Context, c access.Caller, ids []postern.DeviceID) error {
	for _, id := range ids {
		if _, err := g.db.Devices.Get(ctx, c.Workspace(), id); err != nil {
			return err
		}
	}
	return nil
}

func (in EndpointChange) apply(e *postern.Endpoint) {
	if in.Description != nil {
		e.Description = *in.Description
	}
	if in.Events != nil {
		e.Events = in.Events
	}
	e.DeviceIDs = in.DeviceIDs.or(e.DeviceIDs, nil)
	e.Handshake = cmp.Or(in.Handshake, e.Handshake)
	if in.MaxInFlight != 0 {
		e.MaxInFlight = in.MaxInFlight
	}
	if in.Ordered != nil {
		e.Ordered = *in.Ordered
	}
}

// moveTo gives an endpoint a new URL. An active endpoint keeps the old URL until the new
// one has answered the handshake. Any other endpoint takes the new one at once.
func moveTo(e *postern.Endpoint, url string, now postern.Time) {
	switch {
	case e.Status == postern.EndpointActive && url == e.URL:
		e.PendingURL, e.StatusReason, e.Attempts, e.DueAt = "", "", 0, 0
	case e.Status == postern.EndpointActive:
		e.PendingURL, e.StatusReason, e.Attempts, e.DueAt = postern.Maybe(url), "", 0, now
	case e.Status == postern.EndpointPaused:
		e.URL, e.PendingURL = url, ""
	default:
		e.URL, e.PendingURL = url, ""
		ask(e, now)
	}
}

// ask starts the handshake again. For an endpoint that failed or was disabled while a new
// URL was pending, the new URL becomes its URL.
func ask(e *postern.Endpoint, now postern.Time) {
	if e.PendingURL != "" && (e.Status == postern.EndpointFailed || e.Status == postern.EndpointDisabled) {
		e.URL, e.PendingURL = string(e.PendingURL), ""
	}
	e.Status, e.StatusReason, e.Attempts, e.DueAt = postern.EndpointPending, "", 0, now
}

// Verify repeats the handshake: with the new URL if one is pending, otherwise with the
// endpoint's own. In the second case nothing is delivered until it has answered.
func (g Webhooks) Verify(ctx context.Context, c access.Caller, id postern.EndpointID) (postern.Endpoint, error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite); err != nil {
		return postern.Endpoint{}, err
	}
	now := g.time()
	return g.change(ctx, c, id, "webhook.verified-again", func(e *postern.Endpoint) error {
		switch {
		case e.Status == postern.EndpointPaused:
			return postern.Errorf(
				postern.EndpointIsPaused, "the endpoint is paused; resume it instead, which also verifies it",
			)
		case e.Status == postern.EndpointActive && e.PendingURL != "":
			e.StatusReason, e.Attempts, e.DueAt = "", 0, now
		default:
			ask(e, now)
		}
		return nil
	})
}

// Pause stops deliveries to an endpoint. Events that are recorded during the pause are
// delivered after it is resumed.
func (g Webhooks) Pause(ctx context.Context, c access.Caller, id postern.EndpointID) (postern.Endpoint, error) {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return postern.Endpoint{}, err
	}
	return g.change(ctx, c, id, "webhook.paused", func(e *postern.Endpoint) error {
		switch e.Status {
		case postern.EndpointPaused:
		case postern.EndpointActive, postern.EndpointPending:
			e.Status, e.StatusReason, e.Attempts, e.DueAt = postern.EndpointPaused, pausedByUser, 0, 0
		default:
			return postern.Errorf(postern.EndpointNotActive, "the endpoint is %s; there is nothing to pause", e.Status)
		}
		return nil
	})
}

// Resume starts deliveries again after a pause or a failure. The endpoint is verified
// first, then it receives what was recorded in the meantime.
func (g Webhooks) Resume(ctx context.Context, c access.Caller, id postern.EndpointID) (postern.Endpoint, error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite); err != nil {
		return postern.Endpoint{}, err
	}
	now := g.time()
	return g.change(ctx, c, id, "webhook.resumed", func(e *postern.Endpoint) error {
		if e.Status != postern.EndpointActive && e.Status != postern.EndpointPending {
			ask(e, now)
		}
		return nil
	})
}
