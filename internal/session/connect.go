package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/blackbox"
	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"

	"golang.org/x/time/rate"
)

// connect runs one connection until it ends, and returns how long to wait before
// the next one.
func (e *Engine) connect(ctx context.Context, s *supervisor, d *postern.Device) time.Duration {
	defer e.probation.settle(d.ID)
	if isQuarantined(d) {
		return quarantineWait
	}
	conn, err := e.driver.Open(ctx, d.Account)
	if errors.Is(err, network.ErrUnknownAccount) {
		return e.ended(ctx, s, d, &network.Ended{Status: postern.LoggedOut, Reason: "keys-lost"})
	}
	if err != nil {
		e.log.WarnContext(ctx, "open a session", "device", d.ID, "error", err)
		return s.backoff.NextBackOff()
	}
	proxy, err := e.g.Sessions.ProxyOf(d)
	if err != nil { // it cannot be unsealed: the owner must set another one
		e.log.ErrorContext(ctx, "open a session", "device", d.ID, "error", err)
		return e.ended(ctx, s, d, &network.Ended{Status: postern.Disconnected, Reason: "proxy-unreadable"})
	}
	release, err := e.admit(ctx)
	if err != nil {
		return 0
	}
	set := e.settingsOf(d)
	defer set.close()
	h := &host{
		e: e, d: *d, session: conn, settings: set, pacer: e.takePacer(d.ID), proxy: proxy,
		opened: release, proven: s.backoff.Reset, mark: e.box.Mark(string(d.ID)),
	}
	defer h.mark.Release()
	err = h.run(ctx)
	release()
	return e.ended(ctx, s, d, err)
}

// run runs the connection until it ends. A panic ends it, too.
func (h *host) run(ctx context.Context) error {
	defer h.close()
	return h.session.Run(ctx, h)
}

// newDials returns the limiter of connections per second; 0 means no limit. A tenth of them may be opened at
// once. The rate is smaller by as many, so that no second has more than perSecond.
func newDials(perSecond int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(0.9*rate.Limit(perSecond), max(1, perSecond/10))
}

// admit waits for a slot among the connections that are being opened, and for the rate of
// connections. The first call of release frees the slot; further calls do nothing.
func (e *Engine) admit(ctx context.Context) (release func(), err error) {
	select {
	case e.connects <- struct{}{}:
		release = sync.OnceFunc(func() { <-e.connects })
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := e.dials.Wait(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// ended records why a connection ended and decides when to try again.
func (e *Engine) ended(ctx context.Context, s *supervisor, d *postern.Device, err error) time.Duration {
	if ctx.Err() != nil {
		return 0 // the engine ended it
	}
	var end *network.Ended
	if !errors.As(err, &end) {
		end = &network.Ended{Status: postern.Disconnected, Reason: "error"}
		e.log.ErrorContext(ctx, "a session ended with an error", "device", d.ID, "error", err)
	}
	e.log.InfoContext(ctx, "session ended", "device", d.ID, "status", end.Status, "reason", end.Reason)
	state := gateway.SessionState{Status: end.Status, Reason: end.Reason}
	if end.Status == postern.Restricted && !end.Until.IsZero() {
		state.Until = postern.TimeOf(end.Until)
	}
	if err := e.g.Sessions.SetState(ctx, d.ID, state); err != nil {
		e.log.WarnContext(ctx, "record the end of a session", "device", d.ID, "error", err)
		return storeRetryWait
	}
	return e.wait(ctx, s, d, end)
}

func (e *Engine) wait(ctx context.Context, s *supervisor, d *postern.Device, end *network.Ended) time.Duration {
	switch end.Status {
	case postern.LoggedOut, postern.Banned:
		// The new state of the device ends ctx at any moment.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
		defer cancel()
		if err := e.driver.Forget(ctx, d.Account); err != nil {
			e.log.WarnContext(ctx, "forget an account; it will be tried again", "device", d.ID, "error", err)
		}
		return 0
	case postern.Restricted:
		if end.Until.IsZero() {
			return conflictWait // the vendor did not say how long
		}
		return max(time.Until(end.Until), s.backoff.NextBackOff())
	case postern.Conflict:
		return conflictWait
	default:
		return s.backoff.NextBackOff()
	}
}

// host is the [network.Host] of a session.
type host struct {
	e        *Engine
	d        postern.Device
	session  network.Session
	settings *settings
	pacer    *pacer
	proxy    string
	mark     *blackbox.Mark
	opened   func() // frees the slot among the connections that are being opened
	proven   func() // resets the backoff, because the connection works

	seen atomic.Int64 // postern.Time at which the network last sent something; 0 for nothing since that was stored

	mu     sync.Mutex
	closed bool // the connection has ended and must not become live
}

// Processing records what is processed, in case it ends the process, and that the network has sent something.
func (h *host) Processing(what string) {
	if what == network.ProcessingFrame {
		h.seen.Store(int64(h.e.db.Now()))
	}
	h.mark.Set(what)
}

// Proxy returns the device's proxy.
func (h *host) Proxy() string { return h.proxy }

// Space returns the device's workspace.
func (h *host) Space() string { return string(h.d.WorkspaceID) }

func (h *host) connected(ctx context.Context, u network.Live) error {
	h.opened()
	state := gateway.SessionState{Status: postern.Connected, DisplayName: u.DisplayName}
	err := h.e.g.Sessions.SetState(ctx, h.d.ID, state)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.New("the connection has ended")
	}
	h.proven()
	h.e.probation.settle(h.d.ID)
	h.e.log.InfoContext(ctx, "device connected", "device", h.d.ID, "workspace", h.d.WorkspaceID)
	h.e.goLive(h)
	return nil
}

// close ends the sending of the connection.
func (h *host) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.e.goDark(h.d.ID)
	h.e.keepPacer(h.d.ID, h.pacer)
}

// Outbound returns a sent message for a recipient who asks for it again.
func (h *host) Outbound(ctx context.Context, networkID string) (network.Outbound, bool, error) {
	m, ok, err := h.e.db.Messages.ByNetworkID(ctx, h.d.ID, networkID)
	if err != nil || !ok || m.State.DeletedAt != 0 {
		return network.Outbound{}, false, passing(err)
	}
	out, err := h.e.outbound(ctx, m)
	if err != nil {
		return out, false, passing(err)
	}
	timers, err := h.e.db.Chats.Timers(ctx, h.d.ID)
	out.Timer = wireTimer(timers[m.ChatID])
	return out, err == nil, passing(err)
}

// passing returns an error after which another try may succeed, and nil for all others.
func passing(err error) error {
	if postern.ReasonOf(err) == postern.Unavailable || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
