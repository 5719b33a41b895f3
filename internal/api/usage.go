package api

import (
	"context"

	"postern/internal/gateway"
)

// usage are the operations on what the plan counts, and on who asks.
type usage struct {
	gateway *gateway.Gateway
}

func (h usage) me(ctx context.Context, q *request, _ *nothing) (*output[gateway.Me], error) {
	return answer(h.gateway.Keys.Me(ctx, q.caller))
}

func (h usage) get(ctx context.Context, q *request, _ *nothing) (*output[gateway.Usage], error) {
	return answer(h.gateway.Statistics.Usage(ctx, q.caller))
}
