package web

import (
	"fmt"
	"net/http"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/ratelimit"
)

const (
	visitsPerMinute = 600     // requests of one network for pages that need no sign-in
	visitorsCounted = 100_000 // networks
)

// limited counts the requests for pages that need no sign-in by the network they come from, and refuses those
// beyond the rate. Those of this machine and of private networks are not counted: behind a proxy that is not
// trusted, all visitors would share its address.
func (d *Door) limited(pages http.Handler) http.Handler {
	visits := ratelimit.New(visitorsCounted)
	rate := ratelimit.Rate{Count: visitsPerMinute, Per: time.Minute, Burst: visitsPerMinute}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := obs.RequestOf(r.Context())
		if from := q.Client.Unmap(); !from.IsValid() || from.IsLoopback() || from.IsPrivate() {
			pages.ServeHTTP(w, r)
			return
		}
		state, err := visits.Take(r.Context(), ratelimit.Network(q.Client), rate)
		if err == nil && state.Refused {
			err = &postern.Error{
				Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, time.Second), Detail: fmt.Sprintf(
					"too many requests: %d per minute are allowed from one network; wait a moment and try again",
					visitsPerMinute,
				),
			}
		}
		if err != nil {
			d.problems.Refuse(w, q, err)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
