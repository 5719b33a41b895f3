package api

import (
	"context"

	"postern/internal/gateway"
)

func (a *API) getUsage(ctx context.Context, q *request, _ *nothing) (*output[gateway.Usage], error) {
	return answer(a.gateway.Statistics.Usage(ctx, q.caller))
}
