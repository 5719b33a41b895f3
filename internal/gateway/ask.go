package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/requests"
)

// ticket names the request whose outcome a caller waits for.
type ticket struct {
	Request string `json:"request"`
}

// askOnce hands a request to the live session of a device, on whichever server it runs, and waits for the outcome. With
// an idempotency key, a retry waits for the outcome of the first request; a refusal frees the key. The caller's rights
// were checked, but for the device.
func askOnce[T, I any](
	ctx context.Context, g *core, c access.Caller, id postern.DeviceID, idem *Idempotency, kind string,
	input func() (I, error),
) (answer Created[T], err error) {
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return answer, err
	}
	t, err := create(ctx, g, c.Workspace(), idem, func() (ticket, func(*store.Once) error, error) {
		in, err := input()
		if err != nil {
			return ticket{}, nil, err
		}
		return request(ctx, g, d, kind, in)
	})
	if err != nil {
		return answer, err
	}
	outcome, ok, err := g.requests().Wait(ctx, c.Workspace(), t.Value.Request)
	if err != nil {
		return answer, err
	}
	if !ok {
		return answer, g.unanswered(ctx, c.Workspace(), t.Value.Request)
	}
	g.requests().Forget(c.Workspace(), t.Value.Request)
	if err := outcome.Err(); err != nil {
		return answer, err
	}
	answer.Replayed = t.Replayed
	return answer, json.Unmarshal(outcome.Output, &answer.Value)
}

// unanswered returns the error of a request without an outcome.
func (g *core) unanswered(ctx context.Context, ws postern.WorkspaceID, id string) error {
	withdrawn, err := g.requests().Withdraw(ctx, ws, id)
	switch {
	case err != nil:
		return err
	case withdrawn:
		return postern.Errorf(postern.DeviceNotConnected,
			"the device was not ready for the request within 20 seconds; nothing happened, so try again")
	}
	return postern.Errorf(postern.NetworkTimeout,
		"the network did not answer within 20 seconds; check whether the request had an effect before you repeat it")
}

// request prepares a request to the live session of a device.
func request(
	ctx context.Context, g *core, d postern.Device, kind string, in any,
) (t ticket, commit func(*store.Once) error, err error) {
	if d.Status != postern.Connected {
		return t, nil, postern.Errorf(
			postern.DeviceNotConnected, "the device is %s; the network can be asked while it is connected", d.Status)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return t, nil, fmt.Errorf("encode a request: %w", err)
	}
	t.Request = postern.NewRequestID()
	r := requests.Request{
		ID: t.Request, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Kind: kind, Input: raw,
		ExpiresAt: g.time().Add(requests.Timeout),
	}
	return t, func(once *store.Once) error { return g.requests().Put(ctx, r, once) }, nil
}

func (g *core) requests() requests.Table { return requests.Of(g.db, g.box) }

// Requests returns the requests to live sessions.
func (g Sessions) Requests() requests.Table { return g.requests() }
