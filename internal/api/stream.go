package api

import (
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

	most int // of all workspaces

	mu   sync.Mutex
	all  int
	open map[postern.WorkspaceID]int
}

func newStreams(g *gateway.Gateway, scopes map[string][]postern.Scope) *streams {
	return &streams{
		gateway: g, scopes: scopes, pulse: streamPulse, patience: streamWrite, most: maxAllStreams,
		open: map[postern.WorkspaceID]int{},
	}
}

// answer returns a stream that body writes, one of those that the workspace may
// have open.
func (o *streams) answer(q *request, body func(*stream)) (*huma.StreamResponse, error) {
	done, err := o.start(q.caller.Workspace())
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer done()
		r, w := humago.Unwrap(hc)
		s := &stream{w: w, ctl: http.NewResponseController(w), patience: o.patience}
		s.w.Header().Set("Content-Type", spec.Stream)
		s.w.WriteHeader(http.StatusOK)
		s.started = r.Method != http.MethodHead && s.ctl.Flush() == nil
		if s.started {
			body(s)
		}
	}}, nil
}

// start counts one more stream until done is called, or refuses it.
func (o *streams) start(ws postern.WorkspaceID) (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.open[ws] >= maxStreams:
		return nil, tooMany(fmt.Sprintf("the workspace has %d open streams, which is the limit; close one first", maxStreams))
	case o.all >= o.most:
		return nil, tooMany("the server has as many open streams as it can; try again later, or list events instead")
	}
	o.all++
	o.open[ws]++
	return func() { o.end(ws) }, nil
}

func tooMany(detail string) error {
	return &postern.Error{Reason: postern.RateLimited, RetryAfter: streamPulse, Detail: detail}
}

func (o *streams) end(ws postern.WorkspaceID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all--
	if o.open[ws]--; o.open[ws] == 0 {
		delete(o.open, ws)
	}
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
