package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/problem"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttle bounds the requests a minute of each key and of each workspace with
// the generic cell rate algorithm: a burst of one minute's allowance, then
// evenly.
type throttle struct {
	store   throttled.GCRAStoreCtx
	rates   sync.Map                      // requests a minute → *throttled.GCRARateLimiterCtx
	strikes *throttled.GCRARateLimiterCtx // of addresses; they have a store of their own, so that many of them push no key out of the other
}

// casAttempts is how often a counter is tried again while others change it at
// the same moment; each round lets one of them through.
const casAttempts = 10_000

func newThrottle() (*throttle, error) {
	store, err := memstore.NewCtx(throttledKeys)
	if err != nil {
		return nil, fmt.Errorf("make the store of rates: %w", err)
	}
	addresses, err := memstore.NewCtx(throttledKeys)
	if err != nil {
		return nil, fmt.Errorf("make the store of addresses: %w", err)
	}
	t := &throttle{store: store}
	t.strikes, err = newRate(addresses, strikes)
	return t, err
}

func newRate(store throttled.GCRAStoreCtx, perMinute int) (*throttled.GCRARateLimiterCtx, error) {
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(perMinute), MaxBurst: perMinute - 1})
	if err != nil {
		return nil, fmt.Errorf("make a rate: %w", err)
	}
	l.SetMaxCASAttemptsLimit(casAttempts)
	return l, nil
}

// rate is the limiter of a number of requests a minute.
func (t *throttle) rate(perMinute int) (*throttled.GCRARateLimiterCtx, error) {
	if l, ok := t.rates.Load(perMinute); ok {
		return l.(*throttled.GCRARateLimiterCtx), nil //nolint:errcheck // only limiters are ever put in
	}
	l, err := newRate(t.store, perMinute)
	if err != nil {
		return nil, err
	}
	t.rates.Store(perMinute, l)
	return l, nil
}

// take counts a request, writes the headers that tell the rate, and refuses
// what is too much. The key comes first: a key that is refused costs its
// workspace nothing.
func (t *throttle) take(ctx context.Context, c access.Caller, h http.Header) error {
	perMinute := c.Plan.RequestsPerMinute
	limiter, err := t.rate(perMinute)
	if err != nil {
		return err
	}
	limited, state, err := limiter.RateLimitCtx(ctx, string(c.Key.ID), 1)
	if err == nil && !limited {
		var ws throttled.RateLimitResult
		limited, ws, err = limiter.RateLimitCtx(ctx, string(c.Workspace()), 1)
		if limited || ws.Remaining < state.Remaining {
			state = ws
		}
	}
	if err != nil {
		return fmt.Errorf("count a request: %w", err)
	}
	tellRate(h, keyPolicy, perMinute, state)
	if !limited {
		return nil
	}
	return &postern.Error{
		Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, 1),
		Detail: fmt.Sprintf("the plan allows %d requests a minute; wait as Retry-After says", perMinute),
	}
}

// The policies that the headers name.
const (
	keyPolicy     = "default" // requests a minute with a key, by the plan
	addressPolicy = "address" // refused credentials a minute from an address
)

// tellRate writes the headers of a policy (draft-ietf-httpapi-ratelimit-headers).
func tellRate(h http.Header, policy string, perMinute int, state throttled.RateLimitResult) {
	wait := 0 // all is left
	if state.ResetAfter > 0 {
		wait = problem.Seconds(state.ResetAfter)
	}
	h.Set("RateLimit-Policy", `"`+policy+`";q=`+strconv.Itoa(perMinute)+`;w=60`)
	h.Set("RateLimit", `"`+policy+`";r=`+strconv.Itoa(state.Remaining)+`;t=`+strconv.Itoa(wait))
}

// counted tells whether refused credentials of an address are counted. This
// machine is spared: behind a proxy that is not trusted all would be one
// address.
func counted(client netip.Addr) bool { return client.IsValid() && !client.IsLoopback() }

// strike counts a credential that was refused, for the address it came from.
// Beyond [strikes] a minute the answer is 429.
func (t *throttle) strike(ctx context.Context, client netip.Addr, h http.Header) error {
	if !counted(client) {
		return nil
	}
	limited, state, err := t.strikes.RateLimitCtx(ctx, network(client), 1)
	if err != nil {
		return fmt.Errorf("count a refused credential: %w", err)
	}
	tellRate(h, addressPolicy, strikes, state)
	if !limited {
		return nil
	}
	return &postern.Error{Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, 1), Detail: "too many requests with a key that is not accepted came from your address; wait as Retry-After says"}
}

// tell writes, on an answer that no key was asked for, how many refused
// credentials the address has left. It counts nothing. An address that is not
// counted has all left, always.
func (t *throttle) tell(ctx context.Context, client netip.Addr, h http.Header) {
	state := throttled.RateLimitResult{Remaining: strikes}
	if counted(client) {
		if _, now, err := t.strikes.RateLimitCtx(ctx, network(client), 0); err == nil {
			state = now
		}
	}
	tellRate(h, addressPolicy, strikes, state)
}

// network is what one caller has: an IPv4 address, or the /64 of an IPv6 one.
func network(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
