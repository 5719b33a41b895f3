package gateway

import (
	"context"
	"errors"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// List lists the devices the caller may see, newest first.
func (g Devices) List(ctx context.Context, c access.Caller, p paging.Page) (paging.List[postern.Device], error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return paging.List[postern.Device]{}, err
	}
	sp, err := g.open(c.Workspace(), "devices", p)
	if err != nil {
		return paging.List[postern.Device]{}, err
	}
	rows, err := g.db.Devices.List(ctx, c.Workspace(), c.Key.Devices, sp)
	return paging.Cut(g.cursors, c.Workspace(), "devices", rows, sp.Limit, func(d postern.Device) string { return string(d.ID) }), err
}

// ListForOperator lists a workspace's devices for the operator.
func (g Devices) ListForOperator(ctx context.Context, by access.Actor, ws postern.WorkspaceID) ([]postern.Device, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return nil, err
	}
	const all = 1000 // far above the largest plan
	return g.db.Devices.List(ctx, ws, nil, store.Page{Limit: all})
}

// NewDevice describes a device to make.
type NewDevice struct {
	Name     string
	Metadata map[string]string
}

// Create makes a device that waits to be linked. It takes no slot yet.
func (g Devices) Create(ctx context.Context, c access.Caller, in NewDevice, idem *Idempotency) (Created[postern.Device], error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return Created[postern.Device]{}, err
	}
	if c.Key.Devices != nil {
		return Created[postern.Device]{}, postern.Errorf(postern.ResourceNotAllowed, "a key limited to devices cannot create one")
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Device, func(*store.Once) error, error) {
		if err := errors.Join(postern.CheckName("/name", in.Name), checkMetadata(in.Metadata)); err != nil {
			return postern.Device{}, nil, err
		}
		d := postern.Device{
			ID: postern.NewDeviceID(), WorkspaceID: c.Workspace(), Name: in.Name, Mode: g.mode(), Status: postern.Unlinked,
			Desired: postern.WantIdle, Metadata: orEmpty(in.Metadata), Receive: postern.DefaultReceive(), CreatedAt: g.time(),
		}
		return d, func(once *store.Once) error {
			return g.db.Devices.Create(ctx, d, once, did(c, d.CreatedAt, "device.created", string(d.ID), d.Name)...)
		}, nil
	})
}

// Get finds one device.
func (g Devices) Get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return postern.Device{}, err
	}
	return g.get(ctx, c, id)
}

// get finds a device that the caller may use.
func (g Devices) get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	d, err := g.db.Devices.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Device{}, err
	}
	return d, c.Allow(id)
}

// Delete hides a device at once; its link, its keys and all it holds are
// removed by the session engine. It waits a moment for the network's answer to
// the unlink, which otherwise comes later.
func (g Devices) Delete(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return err
	}
	changes := g.db.Listen(store.DeviceChanged, string(id))
	defer changes.Close()
	if err := g.requestDelete(ctx, c, d); err != nil {
		return err
	}
	g.awaitGoodbye(ctx, id, changes)
	return nil
}

// DeleteByPassword is DeleteDevice for a member who has entered the password
// again. It does not wait for the network.
func (g Devices) DeleteByPassword(ctx context.Context, c access.Caller, id postern.DeviceID, password string) error {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return err
	}
	if err := g.confirm(ctx, c, password); err != nil {
		return err
	}
	return g.requestDelete(ctx, c, d)
}

func (g Devices) requestDelete(ctx context.Context, c access.Caller, d postern.Device) error {
	event, err := deletion(d)
	if err != nil {
		return err
	}
	now := g.time()
	return g.db.Devices.RequestDelete(ctx, c.Workspace(), d.ID, event, now, did(c, now, "device.deleted", string(d.ID), d.Name)...)
}

// deletion is the event of a link that ends with its device; nil when there is
// no link.
func deletion(d postern.Device) (*postern.Event, error) {
	if !d.Status.HoldsSlot() || d.Status == postern.Linking {
		return nil, nil
	}
	d.Status, d.StatusReason = postern.Unlinked, "deleted"
	e, err := d.Event(postern.DeviceUnlinked)
	return &e, err
}

// awaitGoodbye waits until nothing is left of a device's account.
func (g Devices) awaitGoodbye(ctx context.Context, id postern.DeviceID, changes *store.Listener) {
	ctx, cancel := context.WithTimeout(ctx, g.goodbye)
	defer cancel()
	for {
		d, err := g.db.Devices.ForEngine(ctx, id)
		if err != nil || d.Account == "" {
			return
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return
		}
	}
}

// Unlink removes a device's link and keeps the device. The vendor is told by
// the session engine, as soon as it can be.
func (g Devices) Unlink(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return d, err
	}
	if !d.Status.HoldsSlot() || d.Status == postern.Linking {
		return d, postern.Errorf(postern.NotLinked, "the device is %s; there is no link to remove", d.Status)
	}
	d.Status, d.StatusReason = postern.Unlinked, "unlinked"
	e, err := d.Event(postern.DeviceUnlinked)
	if err != nil {
		return d, err
	}
	now := g.time()
	return d, g.db.Devices.RequestUnlink(ctx, store.SetDeviceState{
		WorkspaceID: d.WorkspaceID, DeviceID: id, Status: d.Status, Reason: string(d.StatusReason), Desired: postern.WantUnlink, FailQueued: true, From: append(live(), postern.Paused), At: now, Event: &e,
	}, did(c, now, "device.unlinked", string(id), d.Name)...)
}
