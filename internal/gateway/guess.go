package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"postern/internal/postern"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// guesses bounds the passwords that are tried: from one network, of one account
// from one network, and of one account in all. The second is lower than the third,
// so that a guesser somewhere does not lock the user out everywhere; the first
// keeps hashing, which is dear, from being everybody's.
type guesses struct{ from, near, all *throttled.GCRARateLimiterCtx }

func newGuesses() *guesses {
	return &guesses{from: guessRate(guessesFrom), near: guessRate(guessesNear), all: guessRate(guessesAll)}
}

func guessRate(perHour int) *throttled.GCRARateLimiterCtx {
	counts, err := memstore.NewCtx(guessedAccounts)
	if err != nil {
		panic(err) // its size is constant
	}
	// The burst and what comes back in an hour are together the number.
	l, err := throttled.NewGCRARateLimiterCtx(counts, throttled.RateQuota{MaxRate: throttled.PerHour(perHour / 2), MaxBurst: perHour/2 - 1})
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
		limited, state, err := c.limiter.RateLimitCtx(ctx, c.name, 1)
		if err != nil {
			return fmt.Errorf("count a sign-in: %w", err)
		}
		if limited {
			return &postern.Error{Reason: postern.RateLimited, Detail: "too many sign-ins; wait a few minutes", RetryAfter: max(state.RetryAfter, time.Second)}
		}
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
