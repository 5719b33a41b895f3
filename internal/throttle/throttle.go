// Package throttle limits how often something may happen under a name, such as
// sign-ins from a network. It counts in memory.
package throttle

import (
	"context"
	"net/netip"
	"time"

	"postern/internal/postern"
	"postern/internal/ratelimit"
)

// names bounds how many names one limit remembers.
const names = 1 << 16

// Limit allows each name a number of uses in a period: half of them at once, and the
// other half spread over the period.
type Limit struct {
	limiter *ratelimit.Limiter
	rate    ratelimit.Rate
}

// PerHour allows n uses in an hour; n is at least 2.
func PerHour(n int) *Limit { return newLimit(n, time.Hour) }

// PerDay allows n uses in 24 hours; n is at least 2.
func PerDay(n int) *Limit { return newLimit(n, 24*time.Hour) }

// PerMinute allows n uses in a minute; n is at least 2.
func PerMinute(n int) *Limit { return newLimit(n, time.Minute) }

func newLimit(n int, per time.Duration) *Limit {
	return &Limit{ratelimit.New(names), ratelimit.AtMost(n, per, n/2)}
}

// Take counts one use by a name. Beyond the limit it returns RateLimited with the
// detail and the time to wait.
func (l *Limit) Take(ctx context.Context, name, detail string) error {
	state, err := l.limiter.Take(ctx, name, l.rate)
	if err != nil || !state.Refused {
		return err
	}
	return &postern.Error{Reason: postern.RateLimited, Detail: detail, RetryAfter: max(state.RetryAfter, time.Second)}
}

// Network is [ratelimit.Network] of an address. Text that is no address is its own name.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return ratelimit.Network(ip)
}
