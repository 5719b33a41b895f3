package people

import (
	"cmp"
	"context"
	_ "embed" // the common passwords
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"postern/internal/postern"

	"github.com/alexedwards/argon2id"
)

// hashing is how passwords are hashed: argon2id with 64 MiB and three passes
// (RFC 9106 recommends that for where memory is scarce). A few at a time, so that
// many sign-ins at once take time and not memory.
type hashing struct {
	params argon2id.Params
	turn   chan struct{}
	queue  atomic.Int32 // that wait for their turn, or have it
	none   string       // the hash of nobody's password, so that an unknown address takes as long
}

func newHashing(memory uint32) *hashing {
	memory = cmp.Or(memory, hashMemory)
	return &hashing{
		params: argon2id.Params{Memory: memory, Iterations: 3, Parallelism: 1, SaltLength: 16, KeyLength: 32},
		turn:   make(chan struct{}, max(1, min(runtime.GOMAXPROCS(0)/2, maxHashing))),
		none: fmt.Sprintf(
			"$argon2id$v=19$m=%d,t=3,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", memory,
		),
	}
}

func (h *hashing) wait(ctx context.Context) (done func(), err error) {
	if h.queue.Add(1) > maxHashQueue {
		h.queue.Add(-1)
		return nil, &postern.Error{
			Reason:     postern.Unavailable,
			Detail:     "too many people are signing in right now; try again in a few seconds",
			RetryAfter: 5 * time.Second,
		}
	}
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; h.queue.Add(-1) }, nil
	case <-ctx.Done():
		h.queue.Add(-1)
		return nil, ctx.Err()
	}
}

func (h *hashing) hash(ctx context.Context, password string) (string, error) {
	done, err := h.wait(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	hash, err := argon2id.CreateHash(password, &h.params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// matches tells whether a password has a hash; "" is nobody's.
func (h *hashing) matches(ctx context.Context, password, hash string) (bool, error) {
	done, err := h.wait(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	known := hash != ""
	if !known {
		hash = h.none
	}
	same, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("compare a password: %w", err)
	}
	return same && known, nil
}

// commonPasswords are those of minPassword bytes or more among the 49,233 that
// people choose most often, in lower case, the commonest first. They are from
// @zxcvbn-ts/language-common 4.1.3 (see NOTICE).
//
//go:embed common_passwords.txt
var commonPasswords string

func isCommon(password string) bool {
	for line := range strings.Lines(commonPasswords) {
		if strings.TrimSuffix(line, "\n") == strings.ToLower(password) {
			return true
		}
	}
	return false
}

// checkPassword follows NIST SP 800-63B, 3.1.1: length is what counts, no kinds of
// characters are asked for, and what is easily guessed of the user is refused.
func checkPassword(password, email string) error {
	name, _, _ := strings.Cut(email, "@")
	switch {
	case len(password) < minPassword:
		return postern.Invalid("/password", "the password is too short; use at least %d characters", minPassword)
	case len(password) > maxPassword:
		return postern.Invalid("/password", "the password is too long; use at most %d bytes", maxPassword)
	case strings.EqualFold(password, email) || strings.EqualFold(password, name):
		return postern.Invalid("/password", "the password must not be your email address")
	case isCommon(password):
		return postern.Invalid("/password", "this password is too common; choose another one")
	case strings.Count(password, password[:1]) == len(password):
		return postern.Invalid("/password", "the password must not repeat a single character")
	}
	return nil
}
