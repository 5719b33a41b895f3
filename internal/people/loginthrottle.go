package people

import (
	"context"
	"strconv"
	"sync"

	"postern/internal/postern"
	"postern/internal/throttle"
)

// loginThrottle limits the passwords and codes that are tried: from one network, for one
// account from one network, and for one account in total. The second limit is lower than
// the third, so that an attacker in one place does not lock the user out everywhere. The
// first one protects the hashing, which is expensive.
type loginThrottle struct {
	from, near, all *throttle.Limit

	mu     sync.Mutex
	proved map[postern.UserID]int // how often users who are signed in have entered their password again correctly
}

func newLoginThrottle() *loginThrottle {
	return &loginThrottle{
		from:   throttle.PerHour(attemptsOfNetwork),
		near:   throttle.PerHour(attemptsNear),
		all:    throttle.PerHour(attemptsOfAccount),
		proved: map[postern.UserID]int{},
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
func (g *loginThrottle) take(ctx context.Context, address, email string) error {
	for _, c := range []struct {
		limiter *throttle.Limit
		name    string
	}{{g.from, throttle.Network(address)}, {g.near, throttle.Network(address) + " " + email}, {g.all, email}} {
		if err := c.limiter.Take(ctx, c.name, tooManySignIns); err != nil {
			return err
		}
	}
	return nil
}
