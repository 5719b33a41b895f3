package api

import (
	"context"

	"postern/internal/gateway"
)

// usage is the operation on what the plan counts.
type usage struct {
	gateway *gateway.Gateway
}

func (h usage) get(ctx context.Context, q *request, _ *nothing) (*output[gateway.Usage], error) {
	return answer(h.gateway.Statistics.Usage(ctx, q.caller))
}
