package webhook

import "postern/internal/store"

// A lane reads small bodies together with their deliveries. It holds them, and those in
// flight, only within its own bound and its workspace's share of the process's bound.
// Of any other delivery that waits it holds no body: the attempt reads it.

// keep returns the delivery to hold: with its body if there is room for it.
func (l *lane) keep(d store.DueDelivery) store.DueDelivery {
	if d.Body != nil && !l.reserve(d.Size) {
		d.Body = nil
	}
	return d
}

// room reserves the bytes of a delivery that is about to be attempted, unless the lane
// holds its body. Bodies that wait give way to it. If it returns false, l.fits is nudged
// when there may be room.
func (l *lane) room(d store.DueDelivery) bool {
	if d.Body != nil || l.reserve(d.Size) {
		return true
	}
	l.unload()
	return l.reserve(d.Size)
}

// reserve counts n bytes. A lane that holds nothing may always hold a small body, so that
// others never block it.
func (l *lane) reserve(n int) bool {
	ws := l.endpoint.WorkspaceID
	switch {
	case l.bytes == 0 && n <= ownBytes:
		l.bodies.force(ws, n)
	case l.bytes > 0 && l.bytes+n > laneBytes, !l.bodies.takeOrWait(ws, n, l.fits):
		return false
	}
	l.bytes += n
	return true
}

// withdraw takes back what room did for a delivery that is not attempted after all.
func (l *lane) withdraw(d store.DueDelivery) {
	if d.Body == nil {
		l.release(d.Size)
	}
}

// release counts n bytes as free again.
func (l *lane) release(n int) {
	l.bytes -= n
	l.bodies.give(l.endpoint.WorkspaceID, n)
}

// unload drops the bodies of the deliveries that wait.
func (l *lane) unload() {
	for _, list := range [][]store.DueDelivery{l.firsts, l.retries} {
		for i := range list {
			if list[i].Body != nil {
				list[i].Body = nil
				l.release(list[i].Size)
			}
		}
	}
}
