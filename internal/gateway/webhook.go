package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// NewEndpoint describes a webhook endpoint to create.
type NewEndpoint struct {
	URL         string             `json:"url"`
	Description string             `json:"description"`
	Events      []string           `json:"events"`    // nil means all
	DeviceIDs   []postern.DeviceID `json:"deviceIds"` // nil means all that the key may use
	Headers     map[string]string  `json:"headers"`
	Secret      string             `json:"secret"` // "" generates one
	MaxInFlight int                `json:"maxInFlight"`
	Ordered     bool               `json:"ordered"`
	Signatures  []string           `json:"signatures"` // nil means v1
	Handshake   string             `json:"handshake"`  // "" means echo
}

// EndpointWithSecret is an endpoint in the only answer that contains its secret.
type EndpointWithSecret struct {
	postern.Endpoint
	Secret string `json:"secret" doc:"Signing secret. Only this response contains it." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="`
}

// Create creates an endpoint and queues its handshake. It needs messages:read and
// events:read too, because an endpoint outlives the key that created it.
func (g Webhooks) Create(
	ctx context.Context, c access.Caller, in NewEndpoint, idem *Idempotency,
) (Created[EndpointWithSecret], error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead); err != nil {
		return Created[EndpointWithSecret]{}, err
	}
	named := in.DeviceIDs
	if err := checkDeviceIDs(named); err != nil { // before the database is asked for each of them
		return Created[EndpointWithSecret]{}, err
	}
	devices, err := endpointDevices(c, named)
	if err != nil {
		return Created[EndpointWithSecret]{}, err
	}
	in.DeviceIDs = devices
	made, err := create(ctx, g.core, c.Workspace(), idem, func() (EndpointWithSecret, func(*store.Once) error, error) {
		e, save, err := g.build(ctx, c, in)
		if err == nil {
			err = g.devicesExist(ctx, c, named)
		}
		return e, save, err
	})
	// An earlier request, by a key with more devices, may have created it: its secret is
	// not for this key.
	if err == nil && !sees(c, made.Value.Endpoint) {
		return Created[EndpointWithSecret]{}, notThisEndpoint()
	}
	return made, err
}

// sees tells whether the caller may use all devices whose events the endpoint receives.
func sees(c access.Caller, e postern.Endpoint) bool { return c.Covers(e.DeviceIDs) }

// endpointDevices keeps an endpoint within the key's list of devices. An endpoint without
// its own list gets a copy of the key's.
func endpointDevices(c access.Caller, ids []postern.DeviceID) ([]postern.DeviceID, error) {
	if ids == nil {
		return slices.Clone(c.Key.Devices), nil
	}
	for _, id := range ids {
		if err := c.Allow(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (g Webhooks) build(
	ctx context.Context, c access.Caller, in NewEndpoint,
) (e EndpointWithSecret, commit func(*store.Once) error, err error) {
	if err := g.checkURL(in.URL); err != nil {
		return e, nil, postern.Invalid("/url", "%s", err)
	}
	if err := checkHeaderCount(len(in.Headers)); err != nil {
		return e, nil, err
	}
	if err := checkEndpoint(in); err != nil {
		return e, nil, err
	}
	if in.Secret == "" {
		in.Secret = newWebhookSecret()
	}
	if in.Events == nil {
		in.Events = []string{"*"}
	}
	if in.MaxInFlight == 0 {
		in.MaxInFlight = defaultInFlight
	}
	if in.Signatures == nil {
		in.Signatures = []string{postern.SignatureHMAC}
	}
	now, id := g.time(), postern.NewEndpointID()
	e = EndpointWithSecret{Secret: in.Secret, Endpoint: postern.Endpoint{
		ID: id, WorkspaceID: c.Workspace(), URL: in.URL, Description: in.Description, Events: in.Events,
		DeviceIDs: in.DeviceIDs, Handshake: cmp.Or(in.Handshake, postern.HandshakeEcho),
		Status: postern.EndpointPending, Signatures: in.Signatures, CreatedAt: now, MaxInFlight: in.MaxInFlight,
		Ordered: in.Ordered, DueAt: now,
	}}
	g.sealKeys(&e.Endpoint, in.Secret, newSigningKey(in.Signatures))
	if err := SealHeaders(g.box, &e.Endpoint, in.Headers); err != nil {
		return EndpointWithSecret{}, nil, err
	}
	row := e.Endpoint
	return e, func(once *store.Once) error {
		return g.db.Endpoints.Create(
			ctx,
			row,
			c.Plan.Endpoints,
			once,
			didByAny(c, now, "webhook.created", string(id), in.URL)...)
	}, nil
}

func checkEndpoint(in NewEndpoint) error {
	switch {
	case utf8.RuneCountInString(in.Description) > maxDescription || !postern.IsPlainText(in.Description):
		return postern.Invalid("/description", "a description may have at most %d characters of plain text",
			maxDescription)
	case in.Events != nil && (len(in.Events) == 0 || len(in.Events) > maxEventPatterns):
		return postern.Invalid("/events", "name 1 to %d event types, or leave the field out for all", maxEventPatterns)
	case in.MaxInFlight < 0 || in.MaxInFlight > maxInFlight:
		return postern.Invalid("/maxInFlight", "from 1 to %d", maxInFlight)
	case in.Signatures != nil && !validSignatures(in.Signatures):
		return postern.Invalid("/signatures", "must be v1 alone, or v1 and v1a")
	case in.Handshake != "" && in.Handshake != postern.HandshakeEcho && in.Handshake != postern.HandshakeSigned:
		return postern.Invalid("/handshake", "must be echo or signed")
	case in.Secret != "" && !validWebhookSecret(in.Secret):
		return postern.Invalid("/secret", "write a secret as whsec_ and the base64 encoding of 24 to 64 bytes")
	}
	return errors.Join(checkPatterns("/events", in.Events), checkDeviceIDs(in.DeviceIDs), checkHeaders(in.Headers))
}

func checkDeviceIDs(ids []postern.DeviceID) error {
	if ids != nil && (len(ids) == 0 || len(ids) > maxDeviceIDs) {
		return postern.Invalid("/deviceIds", "name 1 to %d devices, or leave the field out for all", maxDeviceIDs)
	}
	return nil
}

// Get finds one endpoint.
func (g Webhooks) Get(ctx context.Context, c access.Caller, id postern.EndpointID) (postern.Endpoint, error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return postern.Endpoint{}, err
	}
	return g.get(ctx, c, id)
}

// get finds an endpoint that the caller may use.
func (g Webhooks) get(ctx context.Context, c access.Caller, id postern.EndpointID) (postern.Endpoint, error) {
	e, err := g.db.Endpoints.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Endpoint{}, err
	}
	if !sees(c, e) {
		return postern.Endpoint{}, notThisEndpoint()
	}
	return e, nil
}

// List lists the endpoints that the caller may use, newest first. It filters what it has
// read, so that a page may be short.
func (g Webhooks) List(ctx context.Context, c access.Caller, p paging.Page) (paging.List[postern.Endpoint], error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return paging.List[postern.Endpoint]{}, err
	}
	sp, err := g.open(c.Workspace(), "webhooks", p)
	if err != nil {
		return paging.List[postern.Endpoint]{}, err
	}
	rows, err := g.db.Endpoints.List(ctx, c.Workspace(), sp)
	list := paging.Cut(
		g.cursors, c.Workspace(), "webhooks", rows, sp.Limit, func(e postern.Endpoint) string { return string(e.ID) },
	)
	list.Data = slices.DeleteFunc(list.Data, func(e postern.Endpoint) bool { return !sees(c, e) })
	return list, err
}

// Delete removes an endpoint, its pending deliveries and its log.
func (g Webhooks) Delete(ctx context.Context, c access.Caller, id postern.EndpointID) error {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return err
	}
	e, err := g.get(ctx, c, id)
	if err != nil {
		return err
	}
	return g.db.Endpoints.Delete(ctx, c.Workspace(), id, didByAny(c, g.time(), "webhook.deleted", string(id), e.URL)...)
}

// NewReplay describes a replay to create. A zero field does not narrow it.
type NewReplay struct {
	Since      postern.Time // inclusive
	Until      postern.Time // exclusive; events recorded after the request are never included
	Types      []string     // event types and families such as message.*
	OnlyFailed bool         // only events whose delivery was exhausted
}

// Create starts to deliver a part of the log again to an active endpoint.
func (g Replays) Create(
	ctx context.Context, c access.Caller, id postern.EndpointID, in NewReplay, idem *Idempotency,
) (Created[postern.Replay], error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead); err != nil {
		return Created[postern.Replay]{}, err
	}
	now := g.time()
	if err := in.check(); err != nil {
		return Created[postern.Replay]{}, err
	}
	e, err := g.webhooks().get(ctx, c, id)
	if err != nil {
		return Created[postern.Replay]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Replay, func(*store.Once) error, error) {
		end, err := g.db.Events.End(ctx, c.Workspace())
		r := postern.Replay{
			ID: postern.NewReplayID(), WorkspaceID: c.Workspace(), EndpointID: id, Status: postern.ReplayRunning,
			Since: in.Since, Until: in.Until, Types: in.Types, OnlyFailed: in.OnlyFailed, Last: end, CreatedAt: now,
		}
		return r, func(once *store.Once) error {
			return g.db.Replays.Create(ctx, r, once, didByAny(c, now, "webhook.replayed", string(id), e.URL)...)
		}, err
	})
}

func (in NewReplay) check() error {
	switch {
	case in.Until != 0 && in.Since >= in.Until:
		return postern.Invalid("/until", "until must be later than since")
	case in.Types != nil && len(in.Types) == 0:
		return postern.Invalid("/types", "name at least one event type, or leave the field out for all")
	}
	_, err := eventTypes("/types", in.Types)
	return err
}

// Get finds one replay.
func (g Replays) Get(ctx context.Context, c access.Caller, id postern.ReplayID) (postern.Replay, error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return postern.Replay{}, err
	}
	return g.get(ctx, c, id)
}

// get finds a replay to an endpoint that the caller may use.
func (g Replays) get(ctx context.Context, c access.Caller, id postern.ReplayID) (postern.Replay, error) {
	r, err := g.db.Replays.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Replay{}, err
	}
	if _, err := g.webhooks().get(ctx, c, r.EndpointID); err != nil {
		return postern.Replay{}, err
	}
	return r, nil
}

// List lists the replays to an endpoint, newest first.
func (g Replays) List(
	ctx context.Context, c access.Caller, id postern.EndpointID, p paging.Page,
) (paging.List[postern.Replay], error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return paging.List[postern.Replay]{}, err
	}
	if _, err := g.webhooks().get(ctx, c, id); err != nil {
		return paging.List[postern.Replay]{}, err
	}
	kind := "replays " + string(id)
	sp, err := g.open(c.Workspace(), kind, p)
	if err != nil {
		return paging.List[postern.Replay]{}, err
	}
	rows, err := g.db.Replays.List(ctx, c.Workspace(), id, sp)
	if err != nil {
		return paging.List[postern.Replay]{}, err
	}
	return paging.Cut(
		g.cursors, c.Workspace(), kind, rows, sp.Limit, func(r postern.Replay) string { return string(r.ID) },
	), nil
}

// Stop ends a replay. What it has already queued, about a hundred deliveries, is still
// delivered.
func (g Replays) Stop(ctx context.Context, c access.Caller, id postern.ReplayID) error {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return err
	}
	now := g.time()
	return g.db.Replays.Stop(ctx, c.Workspace(), id, now, did(c, now, "webhook.replay-stopped", string(id), "")...)
}
