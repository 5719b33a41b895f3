package gateway

import (
	"cmp"
	"context"
	"strconv"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/alerts"
)

// DeliveryQuery narrows a list of deliveries. A zero field does not narrow it.
type DeliveryQuery struct {
	Status string
	Types  []string // event types and families such as message.*
	Since  postern.Time
	Until  postern.Time
	Page   paging.Page
}

// List lists the deliveries to an endpoint, newest first.
func (g Deliveries) List(
	ctx context.Context, c access.Caller, id postern.EndpointID, q DeliveryQuery,
) (paging.List[postern.Delivery], error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return paging.List[postern.Delivery]{}, err
	}
	types, err := deliveryTypes(q.Types)
	if err != nil {
		return paging.List[postern.Delivery]{}, err
	}
	if _, err := g.webhooks().get(ctx, c, id); err != nil {
		return paging.List[postern.Delivery]{}, err
	}
	kind := "deliveries " + string(id)
	before, err := g.cursors.Number(c.Workspace(), kind, q.Page.Cursor)
	if err != nil {
		return paging.List[postern.Delivery]{}, err
	}
	filter := store.DeliveryFilter{
		Status:  q.Status,
		Types:   types,
		Since:   q.Since,
		Until:   q.Until,
		Devices: c.Key.Devices,
	}
	p, err := g.db.Deliveries.List(ctx, c.Workspace(), id, filter, before, cmp.Or(q.Page.Limit, paging.DefaultLimit))
	if err != nil || !p.More {
		return paging.List[postern.Delivery]{Data: p.List}, err
	}
	return paging.List[postern.Delivery]{
		Data: p.List,
		Next: g.cursors.At(c.Workspace(), kind, strconv.FormatInt(p.Last, 10)),
	}, nil
}

// deliveryTypes returns the event types that patterns name. In addition to the types in
// the event log there are notices, which are only delivered.
func deliveryTypes(patterns []string) ([]postern.EventType, error) {
	var logged []string
	var notices []postern.EventType
	for _, p := range patterns {
		switch p {
		case string(postern.WebhookTest), string(postern.WebhookVerification):
			notices = append(notices, postern.EventType(p))
		case "webhook.*":
			notices = append(notices, postern.WebhookVerification, postern.WebhookTest, postern.WebhookDisabled)
		default:
			logged = append(logged, p)
		}
	}
	list, err := eventTypes("/query/type", logged)
	if list == nil && len(logged) > 0 {
		return nil, err // nil means every type
	}
	return append(list, notices...), err
}

// Test queues a webhook.test event for an active endpoint. It is delivered and retried
// like any event.
func (g Webhooks) Test(
	ctx context.Context, c access.Caller, id postern.EndpointID, idem *Idempotency,
) (Created[postern.Delivery], error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite); err != nil {
		return Created[postern.Delivery]{}, err
	}
	e, err := g.get(ctx, c, id)
	if err != nil {
		return Created[postern.Delivery]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Delivery, func(*store.Once) error, error) {
		now := g.time()
		d := postern.Delivery{
			ID:            postern.NewDeliveryID(),
			EndpointID:    id,
			EventID:       postern.NewEventID(),
			Type:          postern.WebhookTest,
			Status:        postern.DeliveryPending,
			CreatedAt:     now,
			NextAttemptAt: now,
		}
		return d, func(once *store.Once) error {
			return g.db.Deliveries.QueueNotice(
				ctx,
				c.Workspace(),
				d,
				e.TestNotice(d.EventID, now),
				once,
				did(c, now, "webhook.tested", string(id), e.URL)...)
		}, nil
	})
}

// DeliveryLog is a delivery with its attempts and the body that is posted.
type DeliveryLog struct {
	postern.Delivery
	Attempts []postern.Attempt // newest first
	Body     []byte            // posted bytes; nil if the caller may not read them or they were removed
}

// Get finds one delivery. The body needs messages:read and events:read in addition.
func (g Deliveries) Get(ctx context.Context, c access.Caller, id postern.DeliveryID) (l DeliveryLog, err error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return l, err
	}
	l.Delivery, l.Body, err = g.get(ctx, c, id)
	if err != nil {
		return DeliveryLog{}, err
	}
	if c.Permit(postern.MessagesRead, postern.EventsRead) != nil {
		l.Body = nil
	}
	l.Attempts, err = g.db.Deliveries.Attempts(ctx, c.Workspace(), id)
	return l, err
}

// get finds a delivery to an endpoint that the caller may use. The delivery's device is
// checked too, because the endpoint may have had more devices when the delivery was
// created.
func (g Deliveries) get(ctx context.Context, c access.Caller, id postern.DeliveryID) (postern.Delivery, []byte, error) {
	d, body, err := g.db.Deliveries.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Delivery{}, nil, err
	}
	if _, err := g.webhooks().get(ctx, c, d.EndpointID); err != nil {
		return postern.Delivery{}, nil, err
	}
	if d.DeviceID == "" { // a notice, which has no device
		return d, body, nil
	}
	return d, body, c.Allow(d.DeviceID)
}

// Retry delivers an event again, with the same id and the same bytes. If its delivery is
// still pending, it is attempted at once.
func (g Deliveries) Retry(
	ctx context.Context, c access.Caller, id postern.DeliveryID, idem *Idempotency,
) (Created[postern.Delivery], error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite); err != nil {
		return Created[postern.Delivery]{}, err
	}
	if _, _, err := g.get(ctx, c, id); err != nil {
		return Created[postern.Delivery]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Delivery, func(*store.Once) error, error) {
		now := g.time()
		d, _, err := g.get(ctx, c, id)
		d.Status, d.NextAttemptAt, d.CompletedAt = postern.DeliveryPending, now, 0
		return d, func(once *store.Once) error {
			_, err := g.db.Deliveries.Retry(
				ctx,
				c.Workspace(),
				id,
				now,
				once,
				did(c, now, "webhook.delivery-retried", string(id), "")...)
			return err
		}, err
	})
}

// Backlog is what an endpoint has not received although it was attempted.
type Backlog = alerts.Backlog

// MostFailed is how far a [Backlog] counts events that are no longer attempted.
const MostFailed = alerts.MostFailed

// Backlog returns what an endpoint has not received: the deliveries that wait for another attempt, how many of these were
// created before a time, and the events recorded at or after since that are no longer attempted.
func (g Deliveries) Backlog(
	ctx context.Context, c access.Caller, id postern.EndpointID, since, before postern.Time,
) (b Backlog, err error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return b, err
	}
	e, err := g.webhooks().get(ctx, c, id)
	if err != nil {
		return b, err
	}
	return alerts.Of(g.db).Backlog(ctx, e, since, before)
}

// RetryWaiting attempts at once all deliveries of an endpoint that wait for another attempt, and returns how many.
func (g Deliveries) RetryWaiting(ctx context.Context, c access.Caller, id postern.EndpointID) (all int, err error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite); err != nil {
		return 0, err
	}
	e, err := g.webhooks().get(ctx, c, id)
	if err != nil {
		return 0, err
	}
	now := g.time()
	acts := did(c, now, "webhook.deliveries-retried", string(id), e.URL)
	for after, n := int64(0), 0; ; all += n {
		n, after, err = g.db.Deliveries.RetryWaiting(ctx, c.Workspace(), id, now, after, acts...)
		if err != nil || after == 0 {
			return all, err
		}
		if n > 0 {
			acts = nil
		}
	}
}

// LastAttempts returns the minutes in which an endpoint's last attempts of the last day succeeded and failed; 0 if none
// did.
func (g Webhooks) LastAttempts(
	ctx context.Context, c access.Caller, id postern.EndpointID,
) (success, failure postern.Time, err error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return 0, 0, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return 0, 0, err
	}
	return alerts.Of(g.db).LastAttempts(ctx, c.Workspace(), id, g.time().Add(-statsTime))
}

// Hours returns the results of an endpoint's attempts hour by hour, for the hours that
// begin at or after since and before until. 0 means a day ago and now; the range is at
// most 31 days.
func (g Webhooks) Hours(
	ctx context.Context, c access.Caller, id postern.EndpointID, since, until postern.Time,
) (paging.List[postern.EndpointHour], error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return paging.List[postern.EndpointHour]{}, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return paging.List[postern.EndpointHour]{}, err
	}
	until = cmp.Or(until, g.time())
	since = cmp.Or(since, until.Add(-statsTime))
	if until > since.Add(maxStats) {
		return paging.List[postern.EndpointHour]{}, postern.Invalid(
			"/query/since", "ask for at most %d days at once", maxStats/day,
		)
	}
	list, err := g.db.Hours.OfEndpoint(ctx, c.Workspace(), id, since, until)
	return paging.List[postern.EndpointHour]{Data: list}, err
}
