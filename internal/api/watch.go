package api

import (
	"context"
	"time"
)

// listener is woken by changes in the store.
type listener interface {
	C() <-chan struct{}
	Take() []string
	Close()
}

// keyWatch ends a stream with its key: when the key is revoked or expires, or its
// plan loses the API.
type keyWatch struct {
	streams   *streams
	request   *request
	operation string
	changed   listener
}

func (o *streams) watchKey(q *request, operation string) (keyWatch, error) {
	changed, err := o.gateway.Keys.Watch(q.caller)
	return keyWatch{o, q, operation, changed}, err
}

// wait returns when something has changed, or after a heartbeat. It is false when
// the stream is over.
func (k keyWatch) wait(ctx context.Context, s *stream, changes listener) bool {
	pulse := time.NewTimer(k.untilPulse())
	defer pulse.Stop()
	select {
	case <-changes.C():
		changes.Take()
	case <-k.changed.C():
		k.changed.Take()
	case <-pulse.C:
		return s.text(": waiting\n\n")
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// untilPulse is the time to the next heartbeat or to the end of the key, whichever
// comes first.
func (k keyWatch) untilPulse() time.Duration {
	if end := k.request.caller.Key.ExpiresAt; end != 0 {
		return min(k.streams.pulse, max(0, time.Until(end.Std())))
	}
	return k.streams.pulse
}

// good tells whether the key may still read the stream. It reads the caller again:
// the plan may have changed.
func (k keyWatch) good(ctx context.Context) bool {
	caller, err := k.streams.gateway.Keys.Authenticate(ctx, k.request.authorization)
	if err != nil || caller.Permit(k.streams.scopes[k.operation]...) != nil {
		return false
	}
	k.request.caller = caller
	return ctx.Err() == nil
}
