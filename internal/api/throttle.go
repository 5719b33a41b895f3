package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/ratelimit"
)

// throttle bounds the requests a minute of each key and of each workspace: a burst
// of one minute's allowance, then evenly.
type throttle struct {
	requests *ratelimit.Limiter // of keys and workspaces
	strikes  *ratelimit.Limiter // of addresses: apart, so that many of them push no key out of the other
}

func newThrottle() *throttle {
	return &throttle{requests: ratelimit.New(throttledKeys), strikes: ratelimit.New(throttledKeys)}
}

// perMinute allows n at once, and n more in each minute.
func perMinute(n int) ratelimit.Rate { return ratelimit.Rate{Count: n, Per: time.Minute, Burst: n} }

// take counts a request, writes the headers that announce the rate, and refuses a
// request beyond it. It counts the key first: a request that is refused for its key
// does not count for the workspace.
func (t *throttle) take(ctx context.Context, c access.Caller, h http.Header) error {
	allowed := c.Plan.RequestsPerMinute
	state, err := t.requests.Take(ctx, string(c.Key.ID), perMinute(allowed))
	if err == nil && !state.Refused {
		var ws ratelimit.State
		ws, err = t.requests.Take(ctx, string(c.Workspace()), perMinute(allowed))
		if ws.Refused || ws.Remaining < state.Remaining {
			state = ws
		}
	}
	if err != nil {
		return err
	}
	tellRate(h, keyPolicy, allowed, state)
	if !state.Refused {
		return nil
	}
	return &postern.Error{
		Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, 1),
		Detail: fmt.Sprintf("the plan allows %d requests per minute; wait for the time in Retry-After", allowed),
	}
}

// show announces what a key has left, on an answer that does not count.
func (t *throttle) show(ctx context.Context, c access.Caller, h http.Header) {
	allowed := c.Plan.RequestsPerMinute
	state := ratelimit.State{}
	if allowed > 0 { // a plan without the API allows none
		state, _ = t.requests.Look(ctx, string(c.Key.ID), perMinute(allowed)) // of names in memory
		ws, _ := t.requests.Look(ctx, string(c.Workspace()), perMinute(allowed))
		if ws.Remaining < state.Remaining {
			state = ws
		}
	}
	tellRate(h, keyPolicy, allowed, state)
}

// The policies that the headers name.
const (
	keyPolicy     = "default" // requests per minute with a key, by the plan
	addressPolicy = "address" // refused credentials per minute from an address
)

// tellRate writes the headers of a policy (draft-ietf-httpapi-ratelimit-headers).
func tellRate(h http.Header, policy string, allowed int, state ratelimit.State) {
	wait := 0 // the full rate is left
	if state.ResetAfter > 0 {
		wait = problem.Seconds(state.ResetAfter)
	}
	h.Set("RateLimit-Policy", `"`+policy+`";q=`+strconv.Itoa(allowed)+`;w=60`)
	h.Set("RateLimit", `"`+policy+`";r=`+strconv.Itoa(state.Remaining)+`;t=`+strconv.Itoa(wait))
}

// counted tells whether refused credentials of an address are counted. Those of
// this machine are not: behind a proxy that is not trusted, all callers would share
// one address.
func counted(client netip.Addr) bool { return client.IsValid() && !client.IsLoopback() }

// strike counts a refused credential for the address that it came from. Beyond
// [strikes] per minute it returns RateLimited.
func (t *throttle) strike(ctx context.Context, client netip.Addr, h http.Header) error {
	if !counted(client) {
		return nil
	}
	state, err := t.strikes.Take(ctx, ratelimit.Network(client), perMinute(strikes))
	if err != nil {
		return err
	}
	tellRate(h, addressPolicy, strikes, state)
	if !state.Refused {
		return nil
	}
	return &postern.Error{
		Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, 1),
		Detail: "your address sent too many requests without a valid key; wait for the time in Retry-After",
	}
}

// tell announces, on an answer that needed no key, how many refused credentials the
// address has left. It counts nothing. An address that is not counted always has
// all left.
func (t *throttle) tell(ctx context.Context, client netip.Addr, h http.Header) {
	state := ratelimit.State{Remaining: strikes}
	if counted(client) {
		if now, err := t.strikes.Look(ctx, ratelimit.Network(client), perMinute(strikes)); err == nil {
			state = now
		}
	}
	tellRate(h, addressPolicy, strikes, state)
}
