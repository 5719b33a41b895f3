package listen

import (
	"fmt"
	"net/http"

	"postern/internal/postern"

	"github.com/cenkalti/backoff/v5"
)

// passing tells whether the same request may be answered later.
func (r *refusal) passing() bool {
	return r.Status >= http.StatusInternalServerError || r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout
}

// Unwrap tells the backoff how long the server asks to wait.
func (r *refusal) Unwrap() error {
	if r.passing() && r.RetryAfter > 0 {
		return &backoff.RetryAfterError{Duration: r.RetryAfter}
	}
	return nil
}

// Error says what was refused and what to do.
func (r *refusal) Error() string {
	const create = "\"postern key create --workspace ws_… --name listen --scope events:read\" makes one"
	said := fmt.Sprintf("the server answers %d", r.Status)
	if r.Detail != "" {
		said += ": " + r.Detail
	}
	switch {
	case r.Reason == "" && !r.passing():
		return said + ", which is no answer of Postern's API; is --url the address of the API?"
	case r.Reason == postern.Unauthorized:
		return "the server does not accept the key (401): it is mistyped, expired or revoked, or of another server than --url; " + create
	case r.Reason == postern.MissingScope:
		return said + "; " + create
	case r.Reason == postern.NotFound:
		return said + "; look at --after and --device"
	}
	return said
}
