package people

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/throttle"

	"github.com/alexedwards/argon2id"
)

// hashing hashes passwords with argon2id, 7 MiB and five passes: one of the settings of
// OWASP's Password Storage Cheat Sheet (decision 0025). It hashes only a few at the same
// time, so that many sign-ins at once take time and not memory. Each network has a short
// queue. Those who are known to their account wait in queues of their own and go first, so
// that no number of strangers delays them.
type hashing struct {
	params argon2id.Params
	none   string // hash of no password, so that an unknown address takes as long as a known one

	after func(time.Duration, func()) // calls a function after a time

	mu        sync.Mutex // guards what follows
	free      int        // slots in which no password is being hashed
	resting   int        // slots that strangers leave alone
	places    map[queue]int
	strangers int             // places of queues that are not known
	waiting   []chan struct{} // for a slot, the oldest first
	known     []chan struct{} // the same for known queues, before all others
}

// queue is what places are counted by: a network, or who is known: an account by its browser, or the
// holder of a link to join or to set up.
type queue struct {
	name  string
	known bool
}

// queueOf is the queue of a network.
func queueOf(address string) queue { return queue{name: throttle.Network(address)} }

func newHashing(memory uint32) *hashing {
	memory = cmp.Or(memory, hashMemory)
	return &hashing{
		params: argon2id.Params{Memory: memory, Iterations: hashPasses, Parallelism: 1, SaltLength: 16, KeyLength: 32},
		free:   max(1, min(runtime.GOMAXPROCS(0)/2, maxHashing)),
		places: map[queue]int{},
		after:  func(d time.Duration, f func()) { time.AfterFunc(d, f) },
		none: fmt.Sprintf(
			"$argon2id$v=19$m=%d,t=%d,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
			memory, hashPasses,
		),
	}
}

// place is a place in a queue, from its request until leave.
type place struct {
	h *hashing
	q queue
}

// enter takes a place in a queue, or returns RateLimited if it is full.
func (h *hashing) enter(q queue) (place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places[q] >= maxHashOfQueue || !q.known && h.strangers >= maxHashQueue {
		return place{}, &postern.Error{
			Reason:     postern.RateLimited,
			Detail:     "too many people are signing in right now; try again in a few seconds",
			RetryAfter: hashWait,
		}
	}
	h.places[q]++
	if !q.known {
		h.strangers++
	}
	return place{h, q}, nil
}

// leave gives the place up.
func (p place) leave() {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if p.h.places[p.q]--; p.h.places[p.q] == 0 {
		delete(p.h.places, p.q)
	}
	if !p.q.known {
		p.h.strangers--
	}
}

// slot waits until a password may be hashed; done ends that.
func (p place) slot(ctx context.Context) (done func(), err error) {
	turn := p.h.line(p.q.known)
	select {
	case <-turn:
		began := time.Now()
		return func() { p.h.hashed(p.q.known, time.Since(began)) }, nil
	case <-ctx.Done():
		p.h.forget(turn)
		return nil, ctx.Err()
	}
}

// line returns a channel that is closed when it is the caller's turn.
func (h *hashing) line(known bool) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	turn := make(chan struct{})
	if known {
		h.known = append(h.known, turn)
	} else {
		h.waiting = append(h.waiting, turn)
	}
	h.serve()
	return turn
}

// serve gives the free slots to those who wait. The caller holds the lock.
func (h *hashing) serve() {
	next := func(list *[]chan struct{}) {
		close((*list)[0])
		*list = (*list)[1:]
		h.free--
	}
	for len(h.known) > 0 && h.free > 0 {
		next(&h.known)
	}
	for len(h.waiting) > 0 && h.free > h.resting {
		next(&h.waiting)
	}
}

// hashed returns a slot in which hashing a password has taken a time.
func (h *hashing) hashed(known bool, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free++
	if !known {
		h.resting++
		h.after(strangersRest*took, h.rested)
	}
	h.serve()
}

// rested returns a slot to strangers.
func (h *hashing) rested() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resting--
	h.serve()
}

// forget is for somebody who no longer waits. A slot that arrives meanwhile goes to the next.
func (h *hashing) forget(turn chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := len(h.known) + len(h.waiting)
	is := func(c chan struct{}) bool { return c == turn }
	h.known, h.waiting = slices.DeleteFunc(h.known, is), slices.DeleteFunc(h.waiting, is)
	if given := waits == len(h.known)+len(h.waiting); given {
		h.free++
		h.serve()
	}
}

// hash hashes a new password.
func (h *hashing) hash(ctx context.Context, q queue, password string) (string, error) {
	p, err := h.enter(q)
	if err != nil {
		return "", err
	}
	defer p.leave()
	done, err := p.slot(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return h.create(password)
}

// create hashes a password. The caller has a slot.
func (h *hashing) create(password string) (string, error) {
	hash, err := argon2id.CreateHash(password, &h.params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// renewed returns a new hash of a password that has hash, or "" if hash was made with
// today's parameters.
func (p place) renewed(ctx context.Context, password, hash string) (string, error) {
	if now, _, _, err := argon2id.DecodeHash(hash); err != nil || *now == p.h.params {
		return "", err
	}
	done, err := p.slot(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return p.h.create(password)
}

// matches tells whether a password has a hash; the hash "" matches no password.
func (p place) matches(ctx context.Context, password, hash string) (bool, error) {
	done, err := p.slot(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	known := hash != ""
	if !known {
		hash = p.h.none
	}
	same, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("compare a password: %w", err)
	}
	return same && known, nil
}
