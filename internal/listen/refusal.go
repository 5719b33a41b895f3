package listen

import (
	"fmt"
	"net/http"

	"postern/internal/postern"

	"github.com/cenkalti/backoff/v5"
)

// passing reports whether the same request may succeed later.
func (r *refusal) passing() bool {
	return r.Status >= http.StatusInternalServerError || r.Status == http.StatusTooManyRequests ||
		r.Status == http.StatusRequestTimeout
}

// Unwrap tells the backoff how long the server asked to wait.
func (r *refusal) Unwrap() error {
	if r.passing() && r.RetryAfter > 0 {
		return &backoff.RetryAfterError{Duration: r.RetryAfter}
	}
	return nil
}

// Error says what the server refused and how to fix it.
func (r *refusal) Error() string {
	const create = "create one with \"postern key create --workspace ws_… --name listen --scope events:read\""
	said := fmt.Sprintf("the server answered %d", r.Status)
	if r.Detail != "" {
		said += ": " + r.Detail
	}
	switch {
	case r.Reason == "" && !r.passing():
		return said + ", which is not a response of Postern's API; is --url the address of the API?"
	case r.Reason == postern.Unauthorized:
		return "the server does not accept the key (401): it is mistyped, expired or revoked, " +
			"or belongs to another server than --url; " + create
	case r.Reason == postern.MissingScope:
		return said + "; " + create
	case r.Reason == postern.NotFound:
		return said + "; check --after and --device"
	}
	return said
}
