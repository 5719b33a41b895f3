package people

import (
	"context"
	"strconv"
	"sync"

	"postern/internal/postern"
	"postern/internal/throttle"
)

// attempt is an attempt to enter a password or a code.
type attempt struct {
	address string // of the browser
	account string // what is tried: an email address, or another name for the account
	browser string // id of a browser that has signed in to the account before; "" for all others
}

// loginThrottle limits the passwords and codes that are tried. Nobody can use up the
// attempts of somebody else (decision 0025):
//
//   - A browser that has signed in to the account before has attempts of its own.
//   - All other browsers of a network share the network's attempts, which protect the
//     hashing, and its attempts for the account.
//   - When many networks try one account, each network is left with a few attempts.
type loginThrottle struct {
	own, from, near, all, few *throttle.Limit

	codes   *throttle.Limit // codes of an app that a known browser tries
	failure *throttle.Limit // failed attempts of an account that the audit log records

	mu     sync.Mutex
	proved map[postern.UserID]int // how often users who are signed in have entered their password again correctly
}

func newLoginThrottle() *loginThrottle {
	return &loginThrottle{
		own:     throttle.PerHour(attemptsNear),
		from:    throttle.PerHour(attemptsOfNetwork),
		near:    throttle.PerHour(attemptsNear),
		all:     throttle.PerHour(attemptsOfAccount),
		few:     throttle.PerHour(attemptsUnderAttack),
		codes:   throttle.PerDay(codesOfBrowser),
		failure: throttle.PerHour(failuresRecorded),
		proved:  map[postern.UserID]int{},
	}
}

// again is the name under which the attempts of a signed-in user are counted. It changes
// after each correct password, because those are not guesses.
func (g *loginThrottle) again(id postern.UserID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(id) + " " + strconv.Itoa(g.proved[id])
}

func (g *loginThrottle) prove(id postern.UserID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.proved) >= provedUsers {
		clear(g.proved) // some may then be told to wait a little earlier
	}
	g.proved[id]++
}

const tooManySignIns = "too many sign-in attempts; wait a few minutes and try again"

// take counts an attempt.
func (g *loginThrottle) take(ctx context.Context, a attempt) error {
	network := throttle.Network(a.address)
	here := network + " " + a.account
	if a.browser != "" {
		return g.own.Take(ctx, a.browser+" "+a.account, tooManySignIns)
	}
	if err := g.from.Take(ctx, network, tooManySignIns); err != nil {
		return err
	}
	if err := g.near.Take(ctx, here, tooManySignIns); err != nil {
		return err
	}
	err := g.all.Take(ctx, a.account, tooManySignIns)
	if postern.ReasonOf(err) == postern.RateLimited {
		err = g.few.Take(ctx, here, tooManySignIns)
	}
	return err
}
