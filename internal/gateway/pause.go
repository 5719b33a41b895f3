package gateway

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
)

// pausedByUser is the reason of a pause, of a device or an endpoint, that only
// the owner ends.
const pausedByUser = "user"

// Pause closes a device's connection and keeps its link and its slot, until it
// is resumed. What is queued waits. Pausing twice changes nothing; a device that
// the plan holds is from now on held by its owner too.
func (g Devices) Pause(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Device{}, err
	}
	now := g.time()
	return g.db.Devices.Decide(ctx, c.Workspace(), id, now, func(d *postern.Device, _ int) (postern.EventType, error) {
		if err := linked(*d, "pause"); err != nil {
			return "", err
		}
		event := postern.DevicePaused
		if d.Status == postern.Paused {
			event = ""
		}
		d.Status, d.StatusReason, d.Desired = postern.Paused, pausedByUser, postern.WantIdle
		return event, nil
	}, did(c, now, "device.paused", string(id), d.Name)...)
}

// Resume lets a paused device connect again, if the plan has room for it. One
// that is not paused stays as it is.
func (g Devices) Resume(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Device{}, err
	}
	now := g.time()
	return g.db.Devices.Decide(ctx, c.Workspace(), id, now, func(d *postern.Device, free int) (postern.EventType, error) {
		if err := linked(*d, "resume"); err != nil || d.Status != postern.Paused {
			return "", err
		}
		if free <= 0 {
			return "", postern.Errorf(postern.DeviceLimit, "the plan's linked devices are in use; pause or unlink one, or change the plan")
		}
		d.Status, d.StatusReason, d.Desired = postern.Connecting, "", postern.WantConnect
		return "", nil
	}, did(c, now, "device.resumed", string(id), d.Name)...)
}

// linked refuses a device that has no link.
func linked(d postern.Device, what string) error {
	if !d.Status.HoldsSlot() || d.Status == postern.Linking {
		return postern.Errorf(postern.NotLinked, "the device is %s; there is no link to %s: link it first", d.Status, what)
	}
	return nil
}
