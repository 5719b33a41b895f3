package api

import (
	"context"
	"fmt"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/ratelimit"
	"postern/internal/sse"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// streams opens streams: at most [maxStreams] of a workspace and [maxAllStreams] in all
// at a time, since each holds a connection for as long as its reader likes.
type streams struct {
	gateway  *gateway.Gateway
	scopes   map[string][]postern.Scope
	pulse    time.Duration // between heartbeats
	patience time.Duration // with a reader that takes nothing

	serving context.Context // of all streams, until the server stops
	end     context.CancelFunc

	*ratelimit.Places
}

func newStreams(g *gateway.Gateway, scopes map[string][]postern.Scope) *streams {
	serving, end := context.WithCancel(context.Background())
	return &streams{
		gateway: g, scopes: scopes, pulse: streamPulse, patience: streamWrite, serving: serving, end: end,
		Places: ratelimit.NewPlaces(maxStreams, maxAllStreams,
			tooMany(streamPulse,
				fmt.Sprintf("the workspace has %d open streams, which is the limit; close one first", maxStreams)),
			tooMany(streamPulse, "the server has as many open streams as it can; try again later, or list events instead")),
	}
}

// answer returns a stream that body writes, one of those that the workspace may
// have open. The context of body ends with the request, and when the server stops.
func (o *streams) answer(q *request, body func(context.Context, *stream)) (*huma.StreamResponse, error) {
	done, err := o.Take(string(q.caller.Workspace()))
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer done()
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithCancel(gateway.ReadFor(r.Context(), q.caller.Workspace()))
		defer cancel()
		defer context.AfterFunc(o.serving, cancel)()
		if s, ok := sse.Open(w, r, o.patience); ok {
			body(ctx, &stream{s, time.Now().Add(o.pulse)})
		}
	}}, nil
}

func tooMany(wait time.Duration, detail string) error {
	return &postern.Error{Reason: postern.RateLimited, RetryAfter: wait, Detail: detail}
}

// stream is a stream of server-sent events.
type stream struct {
	*sse.Stream

	beat time.Time // of the next heartbeat, whatever wakes the stream until then
}

// event sends one event; it is false when the reader has left or takes nothing.
func (s *stream) event(name string, v any) bool {
	b, err := postern.EncodeJSON(v)
	return err == nil && s.Event(name, b)
}

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
	timer := time.NewTimer(k.until(s.beat))
	defer timer.Stop()
	select {
	case <-changes.C():
		changes.Take()
	case <-k.changed.C():
		k.changed.Take()
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil && s.keepAlive(k.streams.pulse)
}

// until is the time to the next heartbeat or to the end of the key, whichever comes first. The key ends by the clock of
// the database, which may be behind that of this server.
func (k keyWatch) until(beat time.Time) time.Duration {
	if end := k.request.caller.Key.ExpiresAt; end != 0 && end.Std().Before(beat) {
		return max(time.Until(end.Std()), min(clockWait, time.Until(beat)))
	}
	return time.Until(beat)
}

// clockWait is how long a stream waits for the clock of the database at a time.
const clockWait = 250 * time.Millisecond

// keepAlive sends a heartbeat if it is time for one, and is false when the reader has left.
func (s *stream) keepAlive(pulse time.Duration) bool {
	if time.Now().Before(s.beat) {
		return true
	}
	s.beat = time.Now().Add(pulse)
	return s.Text(": waiting\n\n")
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
