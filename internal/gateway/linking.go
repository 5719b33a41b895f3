package gateway

import (
	"context"
	"fmt"

	"postern/internal/postern"
	"postern/internal/store"
)

// OpenLink finds the attempt the engine has to serve; ok is false when none
// is open.
func (g Sessions) OpenLink(ctx context.Context, d postern.Device) (l store.LinkRow, ok bool, err error) {
	l, ok, err = g.db.Links.Latest(ctx, d.WorkspaceID, d.ID)
	return l, ok && l.Status == postern.LinkPending, err
}

// WatchLink tells of every change of a device's link attempts until the listener is
// closed.
func (g Sessions) WatchLink(id postern.DeviceID) *store.Listener {
	return g.db.Listen(store.LinkChanged, string(id))
}

// ShowCode puts a new code on the attempt. The code is sealed: whoever reads
// it in its minute can take the account over.
func (g Sessions) ShowCode(l store.LinkRow, text string, expires postern.Time) {
	g.db.Links.SetCode(l.ID, l.DeviceID, g.box.Seal([]byte(text), codePlace(l.ID)), expires)
}

// RefusedError is why a phone that scanned a code is refused; its text is the
// attempt's reason.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Scanned decides whether an account may be linked to the device, before any
// key of it is kept.
func (g Sessions) Scanned(ctx context.Context, d postern.Device, l store.LinkRow, account, number string) error {
	switch {
	case l.ExpectedNumber != "" && l.ExpectedNumber != number, l.PhoneNumber != "" && l.PhoneNumber != number:
		return RefusedError("unexpected-number")
	case d.PhoneNumber != "" && string(d.PhoneNumber) != number && !l.AllowNewNumber:
		return RefusedError("other-number")
	}
	if g.sandbox != nil {
		ok, err := g.db.Workspaces.ClaimNumber(ctx, d.WorkspaceID, number)
		if err != nil {
			return err
		}
		if !ok {
			return RefusedError("number-taken")
		}
	}
	return g.db.Links.Scanned(ctx, l.ID, account, number)
}

// Linked makes the device linked: the account's keys are durable.
func (g Sessions) Linked(ctx context.Context, d postern.Device, l store.LinkRow, account, number, displayName string) error {
	now := g.time()
	d.Status, d.StatusReason, d.PhoneNumber, d.DisplayName, d.LinkedAt = postern.Connecting, "", postern.Maybe(number), postern.Maybe(displayName), now
	e, err := d.Event(postern.DeviceLinked)
	if err != nil {
		return fmt.Errorf("describe the device: %w", err)
	}
	return g.db.Links.Finish(ctx, store.FinishLink{
		LinkID: l.ID, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: account, Number: number, DisplayName: displayName, At: now, Event: e,
	})
}

// EndLink ends an attempt without a link.
func (g Sessions) EndLink(ctx context.Context, l store.LinkRow, status postern.LinkStatus, reason string) error {
	_, err := g.db.Links.End(ctx, store.LinkEnd{DeviceID: l.DeviceID, LinkID: l.ID, Status: status, Reason: reason, At: g.time()})
	return err
}
