package obs

import (
	"context"
	"net/netip"
	"time"
)

// Request is the record of one HTTP request. The front door makes it, and the
// packages that serve the request add what they learn. One goroutine at a time
// may use it. Every text may be empty.
type Request struct {
	ID     string     // names the request to its caller and in the log
	Client netip.Addr // where it comes from; invalid when unknown

	Route     string // the pattern that serves it, when it is not the one of [http.Request]
	Workspace string // whose data it is about
	KeyID     string // the API key that it came with
	UserID    string // the user who is signed in
	Reason    string // why it was refused
}

// Served is a request that was answered.
type Served struct {
	*Request

	Method string // "other" for one that HTTP does not define
	Path   string // without the query
	Status int
	Took   time.Duration
}

type requestKey struct{}

// WithRequest returns a context that carries q.
func WithRequest(ctx context.Context, q *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, q)
}

// RequestOf returns the request that ctx belongs to, or nil.
func RequestOf(ctx context.Context) *Request {
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}
