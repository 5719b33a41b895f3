package api

import (
	"context"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/obs"
)

// request is what the API knows about a request that it serves.
type request struct {
	*obs.Request

	authorization string               // the header, "" when it is not given exactly once
	caller        access.Caller        // whose key it is
	idem          *gateway.Idempotency // nil: a repetition is a new request
}

type requestKey struct{}

// requestOf returns the request that ctx belongs to. The guard puts one into
// the context of every operation.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}
