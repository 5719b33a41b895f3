package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"postern/internal/postern"
)

// listener is woken by changes in the store.
type listener interface {
	C() <-chan struct{}
	Take() []string
	Close()
}

// keyWatch lets a stream end with its key: revoked, expired, or of a plan
// without the API.
type keyWatch struct {
	api       *API
	request   *request
	operation string
	changed   listener
}

func (a *API) watchKey(q *request, operation string) (keyWatch, error) {
	changed, err := a.gateway.Keys.Watch(q.caller)
	return keyWatch{a, q, operation, changed}, err
}

// wait returns when something changed, to look again, or after a heartbeat; it
// tells whether the stream goes on.
func (k keyWatch) wait(ctx context.Context, s *stream, changes listener) bool {
	pulse := time.NewTimer(k.untilPulse())
	defer pulse.Stop()
	select {
	case <-changes.C():
		changes.Take()
	case <-k.changed.C():
		k.changed.Take()
	case <-pulse.C:
		return s.write(": waiting\n\n")
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// untilPulse is the time to the next heartbeat, or to the end of the key.
func (k keyWatch) untilPulse() time.Duration {
	if end := k.request.caller.Key.ExpiresAt; end != 0 {
		return min(k.api.pulse, max(0, time.Until(end.Std())))
	}
	return k.api.pulse
}

// good looks whether the key may still do what it does. The caller is read
// anew: its plan may have changed.
func (k keyWatch) good(ctx context.Context) bool {
	caller, err := k.api.gateway.Keys.Authenticate(ctx, k.request.authorization)
	if err != nil || caller.Permit(k.api.scopes[k.operation]...) != nil {
		return false
	}
	k.request.caller = caller
	return ctx.Err() == nil
}

// openStreams counts the streams of each workspace: each holds a connection
// for as long as its reader likes.
type openStreams struct {
	mu sync.Mutex
	n  map[postern.WorkspaceID]int
}

// start counts one more until done, or refuses.
func (o *openStreams) start(ws postern.WorkspaceID) (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n[ws] >= maxStreams {
		return nil, &postern.Error{Reason: postern.RateLimited, RetryAfter: streamPulse, Detail: fmt.Sprintf("the workspace has %d streams open; close one first", maxStreams)}
	}
	o.n[ws]++
	return func() { o.end(ws) }, nil
}

func (o *openStreams) end(ws postern.WorkspaceID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n[ws]--; o.n[ws] == 0 {
		delete(o.n, ws)
	}
}
