// Package throttle limits how often something may happen under a name, such as
// sign-ins from a network. It counts in memory, with the generic cell rate algorithm.
package throttle

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"postern/internal/postern"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// names bounds how many names one limit remembers.
const names = 1 << 16

// Limit allows each name a number of uses in a period: half of them at once, and the
// other half spread over the period.
type Limit struct{ limiter *throttled.GCRARateLimiterCtx }

// PerHour allows n uses in an hour; n is at least 2.
func PerHour(n int) *Limit { return newLimit(throttled.PerHour, n) }

// PerMinute allows n uses in a minute; n is at least 2.
func PerMinute(n int) *Limit { return newLimit(throttled.PerMin, n) }

func newLimit(per func(int) throttled.Rate, n int) *Limit {
	counts, err := memstore.NewCtx(names)
	if err != nil {
		panic(err) // its size is constant
	}
	l, err := throttled.NewGCRARateLimiterCtx(counts, throttled.RateQuota{MaxRate: per(n / 2), MaxBurst: n/2 - 1})
	if err != nil {
		panic(err) // so is its rate
	}
	return &Limit{l}
}

// Take counts one use by a name. Beyond the limit it returns RateLimited with the
// detail and the time to wait.
func (l *Limit) Take(ctx context.Context, name, detail string) error {
	limited, state, err := l.limiter.RateLimitCtx(ctx, name, 1)
	if err != nil {
		return fmt.Errorf("count against a limit: %w", err)
	}
	if limited {
		return &postern.Error{
			Reason:     postern.RateLimited,
			Detail:     detail,
			RetryAfter: max(state.RetryAfter, time.Second),
		}
	}
	return nil
}

// Network is the name for all addresses that one person can easily choose from: an
// IPv4 address by itself, and the /56 of an IPv6 address, which is what a home gets.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Is4() || ip.Is4In6() {
		return address
	}
	p, err := ip.Prefix(56)
	if err != nil {
		return address
	}
	return p.String()
}
