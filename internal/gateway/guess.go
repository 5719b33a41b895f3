package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"postern/internal/postern"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// guesses bounds the passwords that are tried: from one network, of one account
// from one network, and of one account in all. The second is lower than the third,
// so that a guesser somewhere does not lock the user out everywhere; the first
// keeps hashing, which is dear, from being everybody's.
type guesses struct {
	from, near, all *throttled.GCRARateLimiterCtx

	mu     sync.Mutex
	proved map[postern.UserID]int // how often users who are signed in have entered their passwords again
}

func newGuesses() *guesses {
	return &guesses{from: newRate(throttled.PerHour, guessesFrom), near: newRate(throttled.PerHour, guessesNear), all: newRate(throttled.PerHour, guessesAll), proved: map[postern.UserID]int{}}
}

// again is what the guesses of a user who is signed in are counted by. It is a new
// name after each right one: those are no guesses.
func (g *guesses) again(id postern.UserID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(id) + " " + strconv.Itoa(g.proved[id])
}

func (g *guesses) prove(id postern.UserID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proved[id]++
}

// newRate allows at most a number in a time: the burst and what comes back in that
// time are together the number.
func newRate(per func(int) throttled.Rate, n int) *throttled.GCRARateLimiterCtx {
	counts, err := memstore.NewCtx(rateNames)
	if err != nil {
		panic(err) // its size is constant
	}
	l, err := throttled.NewGCRARateLimiterCtx(counts, throttled.RateQuota{MaxRate: per(n / 2), MaxBurst: n/2 - 1})
	if err != nil {
		panic(err) // so is its rate
	}
	return l
}

// take counts a guess.
func (g *guesses) take(ctx context.Context, address, email string) error {
	for _, c := range []struct {
		limiter *throttled.GCRARateLimiterCtx
		name    string
	}{{g.from, network(address)}, {g.near, network(address) + " " + email}, {g.all, email}} {
		if err := takeOf(ctx, c.limiter, c.name, "too many sign-ins; wait a few minutes"); err != nil {
			return err
		}
	}
	return nil
}

// takeOf counts one of what a name may do.
func takeOf(ctx context.Context, l *throttled.GCRARateLimiterCtx, name, detail string) error {
	limited, state, err := l.RateLimitCtx(ctx, name, 1)
	if err != nil {
		return fmt.Errorf("count against a limit: %w", err)
	}
	if limited {
		return &postern.Error{Reason: postern.RateLimited, Detail: detail, RetryAfter: max(state.RetryAfter, time.Second)}
	}
	return nil
}

// network is the part of an address that one owner can change at will: of IPv6
// the last 72 bits, since a home is given 56.
func network(address string) string {
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
