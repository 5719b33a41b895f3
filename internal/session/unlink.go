package session

import (
	"context"
	"errors"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// unlink removes a device's link at the vendor, again and again until the
// vendor has answered.
func (e *Engine) unlink(ctx context.Context, s *supervisor, d postern.Device) time.Duration {
	if err := e.dissolve(ctx, d); err != nil {
		e.log.WarnContext(ctx, "unlink a device", "device", d.ID, "error", err)
		return s.backoff.NextBackOff()
	}
	if err := e.g.Sessions.Unlinked(ctx, d); err != nil {
		e.log.WarnContext(ctx, "record that a device is unlinked", "device", d.ID, "error", err)
		return storeRetryWait
	}
	e.log.InfoContext(ctx, "device unlinked", "device", d.ID, "workspace", d.WorkspaceID)
	return 0
}

// remove deletes a device: its link at the vendor and its keys, and all it
// holds. What it holds goes although the vendor cannot be reached; the keys stay
// until the vendor has answered, since only they can say goodbye. done is true
// when nothing is left.
func (e *Engine) remove(ctx context.Context, s *supervisor, d postern.Device) (wait time.Duration, done bool) {
	said := e.sayGoodbye(ctx, d)
	purged, err := e.purge(ctx, d.ID)
	switch {
	case err != nil:
		e.log.WarnContext(ctx, "purge a deleted device", "device", d.ID, "error", err)
	case purged == store.PurgeDone:
		e.log.InfoContext(ctx, "device deleted", "device", d.ID, "workspace", d.WorkspaceID)
		return 0, true
	case purged == store.PurgeMore && said:
		return 0, false
	}
	// What is left waits for the vendor or for deliveries; most end within seconds.
	return s.backoff.NextBackOff(), false
}

// sayGoodbye removes the link of a deleted device; it is false when the vendor
// has not answered.
func (e *Engine) sayGoodbye(ctx context.Context, d postern.Device) bool {
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

// purge deletes, chunk by chunk, what can be deleted now.
func (e *Engine) purge(ctx context.Context, id postern.DeviceID) (purged store.Purged, err error) {
	for {
		purged, err = e.db.Devices.Purge(ctx, id)
		if err != nil || purged != store.PurgeMore || ctx.Err() != nil {
			return purged, err
		}
	}
}

// dissolve connects once more to remove the companion from the account, and
// forgets the keys. An account that is gone already is as good.
func (e *Engine) dissolve(ctx context.Context, d postern.Device) error {
	if d.Account == "" {
		return nil
	}
	conn, err := e.driver.Open(ctx, d.Account)
	if errors.Is(err, network.ErrUnknownAccount) {
		return nil
	}
	if err != nil {
		return err
	}
	proxy, err := e.g.Sessions.ProxyOf(d)
	if err != nil {
		return err
	}
	if err := leave(ctx, conn, proxy); err != nil {
		return err
	}
	return e.driver.Forget(ctx, d.Account)
}

func leave(ctx context.Context, conn network.Session, proxy string) error {
	ctx, cancel := context.WithTimeout(ctx, unlinkTimeout)
	defer cancel()
	h := leaving{make(chan struct{}, 1), proxy}
	ended := make(chan error, 1)
	go func() { ended <- conn.Run(ctx, h) }()
	select {
	case <-h.live:
		err := conn.Unlink(ctx)
		cancel()
		<-ended //nolint:errcheck // the answer to Unlink is what counts
		return err
	case err := <-ended:
		return gone(err)
	}
}

// gone tells an account that the vendor has removed already from one that
// could not be reached.
func gone(err error) error {
	var end *network.Ended
	switch {
	case errors.As(err, &end) && (end.Status == postern.LoggedOut || end.Status == postern.Banned):
		return nil
	case err == nil:
		return errors.New("the network did not answer in time")
	}
	return err
}

// leaving is the host of a connection that is opened to say goodbye; live is
// readable once the connection is.
type leaving struct {
	live  chan struct{}
	proxy string
}

// Update waits for the connection to be live. What waited at the network comes
// first; it is taken and dropped, since the owner has given the link up, and a
// refusal would end the connection before it can be used to say goodbye.
func (l leaving) Update(_ context.Context, u network.Update) error {
	if _, live := u.(network.Live); live {
		select {
		case l.live <- struct{}{}:
		default:
		}
	}
	return nil
}

// Proxy is the device's.
func (l leaving) Proxy() string { return l.proxy }

// Outbound has nothing more to say.
func (leaving) Outbound(context.Context, string) (network.Outbound, bool) {
	return network.Outbound{}, false
}
