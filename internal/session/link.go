package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"postern/internal/blackbox"
	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// link serves the open link attempt of a device until it ends.
func (e *Engine) link(ctx context.Context, d *postern.Device) time.Duration {
	l, open, err := e.g.Sessions.OpenLink(ctx, *d)
	if err != nil {
		e.log.WarnContext(ctx, "read a link attempt", "device", d.ID, "error", err)
		return storeRetryWait
	}
	if !open {
		return retryFirst // it has just ended, and the device's row will follow
	}
	if isQuarantined(d) {
		return e.endLink(ctx, l, postern.LinkFailed, gateway.Quarantined)
	}
	if l.Account != "" {
		return e.resumeLink(ctx, d, l)
	}
	ctx, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { e.whilePending(ctx, d, l, end) })
	defer watching.Wait()
	defer end(nil)
	if d.Account != "" {
		if wait, gone := e.leaveFirst(ctx, d, l); !gone {
			return wait
		}
	}
	proxy, err := e.g.Sessions.ProxyOf(d)
	if err != nil {
		e.log.ErrorContext(ctx, "link a device", "device", d.ID, "error", err)
		return storeRetryWait
	}
	if err := e.g.Sessions.ForgetPasskey(ctx, l); err != nil {
		e.log.WarnContext(ctx, "begin a link attempt anew", "device", d.ID, "error", err)
		return storeRetryWait
	}
	h := &linkHost{e: e, d: *d, link: l, proxy: proxy, mark: e.box.Mark(string(d.ID))}
	defer h.mark.Release()
	err = e.driver.Link(ctx, h, l.PhoneNumber)
	return e.linkEnded(ctx, d, h, err)
}

// errTimeOver is the cause of the cancellation when the time of an attempt is over.
var errTimeOver = errors.New("the time of the link attempt is over")

// leaveFirst unlinks the previous account of a device before it is linked again.
// gone is false if the network has not answered yet.
func (e *Engine) leaveFirst(ctx context.Context, d *postern.Device, l store.LinkRow) (wait time.Duration, gone bool) {
	err := e.dissolve(ctx, d)
	if err == nil {
		err = e.db.Links.DropAccount(ctx, d.WorkspaceID, d.ID, d.Account)
	}
	switch {
	case err == nil:
		return 0, true
	case errors.Is(context.Cause(ctx), errTimeOver):
		return e.endLink(ctx, l, postern.LinkExpired, "unlink-pending"), false
	case ctx.Err() == nil:
		e.log.WarnContext(ctx, "unlink a device before it is linked again", "device", d.ID, "error", err)
	}
	return storeRetryWait, false
}

// whilePending calls end when the time of the attempt is over (its link page
// extends the time), or when the attempt has ended, even if another one was opened
// at once. An attempt that was linked ends by itself, because the driver must
// finish the exchange with the network.
func (e *Engine) whilePending(ctx context.Context, d *postern.Device, l store.LinkRow, end context.CancelCauseFunc) {
	changes := e.g.Sessions.WatchLink(d.ID)
	defer changes.Close()
	over := time.NewTimer(timeLeft(e.db, l))
	defer over.Stop()
	for {
		now, open, err := e.g.Sessions.OpenLink(ctx, *d)
		switch {
		case err != nil:
		case now.ID != l.ID || !open && now.Status != postern.LinkLinked:
			end(nil)
			return
		case open:
			over.Reset(timeLeft(e.db, now))
		default:
			over.Stop()
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-over.C:
			end(errTimeOver)
			return
		case <-ctx.Done():
			return
		}
	}
}

// resumeLink finishes an attempt that a crash interrupted after the scan: if the
// keys are stored, the device is linked.
func (e *Engine) resumeLink(ctx context.Context, d *postern.Device, l store.LinkRow) time.Duration {
	_, err := e.driver.Open(ctx, l.Account)
	switch {
	case err == nil:
		err = e.g.Sessions.Linked(ctx, *d, l, l.Account, l.Number, "")
	case errors.Is(err, network.ErrUnknownAccount):
		err = e.g.Sessions.EndLink(ctx, l, postern.LinkFailed, "interrupted")
	}
	if err != nil {
		e.log.WarnContext(ctx, "resume a link attempt", "device", d.ID, "link", l.ID, "error", err)
		return storeRetryWait
	}
	return 0
}

func (e *Engine) linkEnded(ctx context.Context, d *postern.Device, h *linkHost, err error) time.Duration {
	if err == nil {
		e.log.InfoContext(ctx, "device linked", "device", d.ID, "workspace", d.WorkspaceID, "link", h.link.ID)
		return 0
	}
	over := errors.Is(context.Cause(ctx), errTimeOver)
	if ctx.Err() != nil && !over {
		return 0 // canceled by the user, or the server stops and continues after the restart
	}
	status, reason := postern.LinkFailed, "error"
	var le *network.LinkError
	switch {
	case h.refused != "":
		reason = h.refused
	case over:
		status, reason = postern.LinkExpired, cmp.Or(h.passkey, "timeout")
	case errors.As(err, &le) && le.Expired && e.hasTime(ctx, d, h.link):
		return 0 // with new codes
	case errors.As(err, &le):
		reason = le.Reason
		if le.Expired {
			status = postern.LinkExpired
		}
	}
	return e.endLink(ctx, h.link, status, reason)
}

// timeLeft is how much time an attempt has, by the clock of the database, which set its end.
func timeLeft(db *store.Store, l store.LinkRow) time.Duration {
	return l.ExpiresAt.Std().Sub(db.Now().Std())
}

// hasTime reports whether an attempt whose codes have expired has time for more.
func (e *Engine) hasTime(ctx context.Context, d *postern.Device, l store.LinkRow) bool {
	now, open, err := e.g.Sessions.OpenLink(ctx, *d)
	return err == nil && open && now.ID == l.ID && timeLeft(e.db, now) >= codesAgain
}

// endLink ends an attempt without a link.
func (e *Engine) endLink(
	ctx context.Context, l store.LinkRow, status postern.LinkStatus, reason string,
) time.Duration {
	e.log.InfoContext(ctx, "link attempt ended", "device", l.DeviceID, "link", l.ID, "reason", reason)
	if err := e.g.Sessions.EndLink(context.WithoutCancel(ctx), l, status,
		reason); err != nil { // its deadline may be over
		e.log.WarnContext(ctx, "end a link attempt", "device", l.DeviceID, "error", err)
		return storeRetryWait
	}
	return 0
}

// linkHost is the [network.LinkHost] of a link attempt.
type linkHost struct {
	e       *Engine
	d       postern.Device
	link    store.LinkRow
	proxy   string
	mark    *blackbox.Mark
	refused string // why the phone that scanned was refused
	passkey string // why the attempt ends if its time is over now; "" before the network asks for a passkey
}

// Update shows codes, accepts or refuses the phone that scanned, and records the
// link.
func (h *linkHost) Update(ctx context.Context, u network.Update) error {
	switch u := u.(type) {
	case network.Code:
		h.e.g.Sessions.ShowCode(h.link, u.Text, postern.TimeOf(u.Expires))
		return nil
	case network.PasskeyWanted:
		return h.wantPasskey(ctx, u.Options)
	case network.CompareCode:
		return h.e.g.Sessions.CompareCode(ctx, h.link, u.Text)
	case network.Scanned:
		err := h.e.g.Sessions.Scanned(ctx, h.d, h.link, u.Account, u.Number)
		if refused, ok := errors.AsType[gateway.RefusedError](err); ok {
			h.refused = string(refused)
		}
		return err
	case network.Paired:
		return h.e.g.Sessions.Linked(ctx, h.d, h.link, u.Account, u.Number, u.DisplayName)
	case network.Live, network.Inbound, network.Echo, network.Undecryptable, network.Receipt, network.Disappearing,
		network.Offered, network.Starred, network.ReadElsewhere, network.ChatsSet, network.LabelsSet,
		network.AddressBook:
	}
	return fmt.Errorf("a link attempt reported %T", u)
}

// Processing records what is processed, in case it ends the process.
func (h *linkHost) Processing(what string) { h.mark.Set(what) }

// Proxy returns the device's proxy.
func (h *linkHost) Proxy() string { return h.proxy }

// Space returns the device's workspace.
func (h *linkHost) Space() string { return string(h.d.WorkspaceID) }

// Outbound reports false: an account that is being linked has not sent a message.
func (*linkHost) Outbound(context.Context, string) (network.Outbound, bool, error) {
	return network.Outbound{}, false, nil
}
