package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/postern"

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

	*places
}

func newStreams(g *gateway.Gateway, scopes map[string][]postern.Scope) *streams {
	serving, end := context.WithCancel(context.Background())
	return &streams{
		gateway: g, scopes: scopes, pulse: streamPulse, patience: streamWrite, serving: serving, end: end,
		places: newPlaces(maxStreams, maxAllStreams,
			tooMany(streamPulse,
				fmt.Sprintf("the workspace has %d open streams, which is the limit; close one first", maxStreams)),
			tooMany(streamPulse, "the server has as many open streams as it can; try again later, or list events instead")),
	}
}

// answer returns a stream that body writes, one of those that the workspace may
// have open. The context of body ends with the request, and when the server stops.
func (o *streams) answer(q *request, body func(context.Context, *stream)) (*huma.StreamResponse, error) {
	done, err := o.take(q.caller.Workspace())
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer done()
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(o.serving, cancel)()
		s := &stream{w: w, ctl: http.NewResponseController(w), patience: o.patience}
		s.w.Header().Set("Content-Type", spec.Stream)
		s.w.Header().Set("X-Accel-Buffering", "no") // nginx collects responses otherwise
		s.w.WriteHeader(http.StatusOK)
		s.started = r.Method != http.MethodHead && s.ctl.Flush() == nil
		if s.started {
			body(ctx, s)
		}
	}}, nil
}

// places bounds how many requests of a kind that takes long are served at a time.
type places struct {
	each, most         int   // of a workspace, and of all workspaces
	eachTaken, allGone error // what a request beyond them is told

	mu   sync.Mutex
	all  int
	open map[postern.WorkspaceID]int
}

func newPlaces(each, most int, eachTaken, allGone error) *places {
	return &places{each: each, most: most, eachTaken: eachTaken, allGone: allGone, open: map[postern.WorkspaceID]int{}}
}

// take counts one more request until done is called, or refuses it.
func (p *places) take(ws postern.WorkspaceID) (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open[ws] >= p.each:
		return nil, p.eachTaken
	case p.all >= p.most:
		return nil, p.allGone
	}
	p.all++
	p.open[ws]++
	return func() { p.give(ws) }, nil
}

func (p *places) give(ws postern.WorkspaceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.open[ws]--; p.open[ws] == 0 {
		delete(p.open, ws)
	}
}

func tooMany(wait time.Duration, detail string) error {
	return &postern.Error{Reason: postern.RateLimited, RetryAfter: wait, Detail: detail}
}

// stream writes server-sent events.
type stream struct {
	w        http.ResponseWriter
	ctl      *http.ResponseController
	patience time.Duration
	started  bool // the headers are sent, and a body may follow
}

// event sends one event; it is false when the reader has left or takes nothing.
func (s *stream) event(name string, v any) bool {
	b, err := postern.EncodeJSON(v)
	return err == nil && s.write([]byte("event: "+name+"\ndata: "), b, []byte("\n\n"))
}

// write sends text, given in parts; it is false when the reader has left or takes nothing.
func (s *stream) write(parts ...[]byte) bool {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.patience)) // not every transport has deadlines
	for _, p := range parts {
		if _, err := s.w.Write(p); err != nil {
			return false
		}
	}
	return s.ctl.Flush() == nil
}

// text sends text.
func (s *stream) text(text string) bool { return s.write([]byte(text)) }

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
