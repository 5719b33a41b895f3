package gateway

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/ratelimit"
)

// guesses bounds the passwords that are tried: from one network, of one account
// from one network, and of one account in all. The second is lower than the third,
// so that a guesser somewhere does not lock the user out everywhere; the first
// keeps hashing, which is dear, from being everybody's.
type guesses struct {
	from, near, all limit

	mu     sync.Mutex
	proved map[postern.UserID]int // how often users who are signed in have entered their passwords again
}

func newGuesses() *guesses {
	return &guesses{
		from: newLimit(guessesFrom, time.Hour), near: newLimit(guessesNear, time.Hour), all: newLimit(guessesAll, time.Hour),
		proved: map[postern.UserID]int{},
	}
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

// limit is a limiter with the one rate that it is used with.
type limit struct {
	*ratelimit.Limiter
	rate ratelimit.Rate
}

// newLimit allows at most n in any period, half of them at once.
func newLimit(n int, per time.Duration) limit {
	return limit{ratelimit.New(rateNames), ratelimit.AtMost(n, per, n/2)}
}

// take counts a guess.
func (g *guesses) take(ctx context.Context, address, email string) error {
	for _, c := range []struct {
		limit limit
		name  string
	}{{g.from, network(address)}, {g.near, network(address) + " " + email}, {g.all, email}} {
		if err := takeOf(ctx, c.limit, c.name, "too many sign-ins; wait a few minutes"); err != nil {
			return err
		}
	}
	return nil
}

// takeOf counts one of what a name may do.
func takeOf(ctx context.Context, l limit, name, detail string) error {
	state, err := l.Take(ctx, name, l.rate)
	if err != nil {
		return err
	}
	if state.Refused {
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
