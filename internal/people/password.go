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
	"unicode/utf8"

	"postern/internal/postern"

	"github.com/alexedwards/argon2id"
)

// hashing hashes passwords with argon2id, 64 MiB and three passes, which RFC 9106
// recommends where memory is limited. It hashes only a few at the same time, so that many
// sign-ins at once take time and not memory.
type hashing struct {
	params argon2id.Params
	slots  chan struct{}
	queue  atomic.Int32 // number that wait for a slot or have one
	none   string       // hash of no password, so that an unknown address takes as long as a known one
}

func newHashing(memory uint32) *hashing {
	memory = cmp.Or(memory, hashMemory)
	return &hashing{
		params: argon2id.Params{Memory: memory, Iterations: 3, Parallelism: 1, SaltLength: 16, KeyLength: 32},
		slots:  make(chan struct{}, max(1, min(runtime.GOMAXPROCS(0)/2, maxHashing))),
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
	case h.slots <- struct{}{}:
		return func() { <-h.slots; h.queue.Add(-1) }, nil
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

// matches tells whether a password has a hash; the hash "" matches no password.
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

// checkPassword follows NIST SP 800-63B, 3.1.1: it requires length and no particular kinds
// of characters, and refuses what is easy to guess.
func checkPassword(password, email string) error {
	name, _, _ := strings.Cut(email, "@")
	switch {
	case utf8.RuneCountInString(password) < minPassword:
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
