package session

import (
	"context"
	"errors"
	"time"

	"postern/internal/blackbox"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// unlink removes a device's link at the vendor. It is repeated until the vendor
// has answered.
func (e *Engine) unlink(ctx context.Context, s *supervisor, d *postern.Device) time.Duration {
	if err := e.dissolve(ctx, d); err != nil {
		e.log.WarnContext(ctx, "unlink a device", "device", d.ID, "error", err)
		return s.backoff.NextBackOff()
	}
	if err := e.g.Sessions.Unlinked(ctx, *d); err != nil {
		e.log.WarnContext(ctx, "record that a device is unlinked", "device", d.ID, "error", err)
		return storeRetryWait
	}
	e.log.InfoContext(ctx, "device unlinked", "device", d.ID, "workspace", d.WorkspaceID)
	return 0
}

// remove deletes a device: its link at the vendor, its keys and its data. The data
// are deleted even if the vendor cannot be reached. The keys stay until the vendor
// has answered, because the link cannot be removed without them. done is true when
// nothing is left.
func (e *Engine) remove(ctx context.Context, s *supervisor, d *postern.Device) (wait time.Duration, done bool) {
	unlinked := e.unlinkDeleted(ctx, d)
	purged, err := e.purge(ctx, d.ID)
	switch {
	case err != nil:
		e.log.WarnContext(ctx, "purge a deleted device", "device", d.ID, "error", err)
	case purged == store.PurgeDone:
		e.log.InfoContext(ctx, "device deleted", "device", d.ID, "workspace", d.WorkspaceID)
		return 0, true
	case purged == store.PurgeMore && unlinked:
		return 0, false
	}
	// The rest waits for the vendor or for deliveries; most of these end within seconds.
	return s.backoff.NextBackOff(), false
}

// unlinkDeleted removes the link of a deleted device. It reports false if the
// vendor has not answered.
func (e *Engine) unlinkDeleted(ctx context.Context, d *postern.Device) bool {
	if d.Account == "" {
		return true
	}
	err := e.dissolve(ctx, d)
	if err == nil {
		err = e.db.Links.DropAccount(ctx, d.WorkspaceID, d.ID, d.Account)
	}
	if err != nil {
		e.log.WarnContext(ctx, "unlink a deleted device", "device", d.ID, "error", err)
	}
	return err == nil
}

// purge deletes, in chunks, the data that can be deleted now.
func (e *Engine) purge(ctx context.Context, id postern.DeviceID) (purged store.Purged, err error) {
	var at store.PurgePlace
	for {
		began := time.Now()
		purged, err = e.db.Devices.Purge(ctx, id, &at)
		if err != nil || purged != store.PurgeMore {
			return purged, err
		}
		if postern.Sleep(ctx, time.Since(began)) != nil { // others write, too
			return purged, nil // the server stops, and goes on after its start
		}
	}
}

// dissolve connects once more to remove the companion from the account, and
// removes the keys. It succeeds if the account has been removed already. The link of a
// quarantined device stays at the vendor, because its connection would end the process.
func (e *Engine) dissolve(ctx context.Context, d *postern.Device) error {
	if d.Account == "" {
		return nil
	}
	conn, err := e.driver.Open(ctx, d.Account)
	if errors.Is(err, network.ErrUnknownAccount) || isQuarantined(d) {
		return e.driver.Forget(ctx, d.Account) // it may have been interrupted after the companion's own keys
	}
	if err != nil {
		return err
	}
	proxy, err := e.g.Sessions.ProxyOf(d)
	if err != nil {
		return err
	}
	if err := e.leave(ctx, d, conn, proxy); err != nil {
		return err
	}
	return e.driver.Forget(ctx, d.Account)
}

func (e *Engine) leave(ctx context.Context, d *postern.Device, conn network.Session, proxy string) error {
	ctx, cancel := context.WithTimeout(ctx, unlinkTimeout)
	defer cancel()
	h := leaving{proxy, e.box.Mark(string(d.ID)), string(d.WorkspaceID)}
	defer h.mark.Release()
	return network.Leave(ctx, conn, h)
}

// leaving is the host of a connection that is opened to unlink its account.
type leaving struct {
	proxy string
	mark  *blackbox.Mark
	space string // the device's workspace
}

// Update is not called; see [network.Leave].
func (leaving) Update(context.Context, network.Update) error { return nil }

// Processing records what is processed, in case it ends the process.
func (l leaving) Processing(what string) { l.mark.Set(what) }

// Proxy returns the device's proxy.
func (l leaving) Proxy() string { return l.proxy }

// Space returns the device's workspace.
func (l leaving) Space() string { return l.space }

// Outbound is not called; see [network.Leave].
func (leaving) Outbound(context.Context, string) (network.Outbound, bool, error) {
	return network.Outbound{}, false, nil
}

// abandoned removes the keys of accounts that no device has any more. A crash or an error may have left them.
type abandoned struct{ e *Engine }

// run looks for such keys while this server leads the others, as soon as it does, and then once an hour, until ctx is
// done.
func (a abandoned) run(ctx context.Context) error {
	tick := time.NewTicker(maintenanceInterval)
	defer tick.Stop()
	var next time.Time
	for {
		if now := time.Now(); a.e.leases.Leads() && !now.Before(next) {
			next = now.Add(abandonedInterval)
			if err := a.remove(ctx); err != nil && ctx.Err() == nil {
				a.e.log.WarnContext(ctx, "remove the keys of accounts that no device has", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (a abandoned) remove(ctx context.Context) error {
	accounts, err := a.e.db.SessionKeys.Abandoned(ctx)
	for _, account := range accounts {
		err = errors.Join(err, a.e.driver.Forget(ctx, account))
	}
	return err
}
