package vendorsim

import (
	"context"
	"strconv"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
)

// The reasons with which the vendor refuses a login.
const (
	reasonLoggedOut  = 401
	reasonRestricted = 402
	reasonBanned     = 403
)

// banCode is the code of a temporary ban for writing to too many people.
const banCode = 101

// login accepts a linked companion, or answers with the reason of the refusal.
func (v logins) login(ctx context.Context, c *conn, g greeting) {
	if cp := v.admit(c, g); cp != nil {
		v.states.welcome(ctx, cp)
	}
}

// admit returns the companion that logs in, nil if it is refused.
func (v logins) admit(c *conn, g greeting) *companion {
	n := number(strconv.FormatUint(g.payload.GetUsername(), 10))
	device := g.payload.GetDevice()
	v.mu.Lock()
	defer v.mu.Unlock()
	var cp *companion
	if device <= maxDevice {
		cp = v.devices.companion(n, uint16(device))
	}
	if cp != nil && v.faults.takeFault(cp.account, FaultHang) {
		c.silence()
		return nil
	}
	if why := v.refusal(cp, g); why != nil {
		v.log.Info("login refused", "account", n, "device", device, "reason", why["reason"])
		c.sendLast(waBinary.Node{Tag: "failure", Attrs: why}, linger)
		return nil
	}
	v.attach(c, cp)
	return cp
}

// refusal returns the attributes of the failure node with which a login is refused, or nil if the
// login is accepted.
func (v logins) refusal(cp *companion, g greeting) waBinary.Attrs {
	if cp == nil || cp.saved.Noise != g.static {
		return waBinary.Attrs{"reason": reasonLoggedOut}
	}
	if cp.account.saved.Banned {
		return waBinary.Attrs{"reason": reasonBanned}
	}
	if left := time.Until(cp.account.saved.RestrictedUntil); left > 0 {
		seconds := int64((left + time.Second - 1) / time.Second)
		return waBinary.Attrs{"reason": reasonRestricted, "code": banCode, "expire": seconds}
	}
	if time.Until(cp.account.offlineUntil) > 0 {
		return waBinary.Attrs{"reason": defaultRefusal}
	}
	if code, ok := v.faults.takeCode(cp.account, FaultRefuse, defaultRefusal); ok {
		return waBinary.Attrs{"reason": code}
	}
	return nil
}

// attach binds a connection to a companion. An older connection is told that it was replaced.
func (v logins) attach(c *conn, cp *companion) {
	cp.account.logins++
	if old := cp.conn; old != nil {
		cp.account.replaced++
		old.sendLast(streamError("", "replaced"), linger)
	}
	cp.conn, c.companion = c, cp
	c.send(waBinary.Node{Tag: "success", Attrs: waBinary.Attrs{"t": time.Now().Unix(), "lid": cp.lid()}})
	if frame := v.faults.takeMalformed(cp.account); frame != nil {
		c.push(outgoing{data: frame})
	}
	v.Online().begin(cp)
	v.queues.resume(cp)
	v.log.Debug("companion logged in", "account", cp.account.number, "device", cp.saved.Device)
	v.notify()
}
