package people

import (
	"context"
	"strconv"
	"sync"

	"postern/internal/postern"
	"postern/internal/throttle"
)

// guesses bounds the passwords that are tried: from one network, of one account
// from one network, and of one account in all. The second is lower than the third,
// so that a guesser somewhere does not lock the user out everywhere; the first
// keeps hashing, which is dear, from being everybody's.
type guesses struct {
	from, near, all *throttle.Limit

	mu     sync.Mutex
	proved map[postern.UserID]int // how often users who are signed in have entered their passwords again
}

func newGuesses() *guesses {
	return &guesses{
		from:   throttle.PerHour(guessesFrom),
		near:   throttle.PerHour(guessesNear),
		all:    throttle.PerHour(guessesAll),
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

const tooManySignIns = "too many sign-in attempts; wait a few minutes and try again"

// take counts a guess.
func (g *guesses) take(ctx context.Context, address, email string) error {
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
