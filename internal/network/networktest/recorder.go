package networktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
)

// waitLimit is how long a test waits for an update.
const waitLimit = 5 * time.Minute

// ErrRefused is returned by a [Recorder] whose rule refuses an update.
var ErrRefused = errors.New("recorder: refused")

// Recorder is a host that remembers its updates. The zero value works.
type Recorder struct {
	// Passkey answers requests for the owner's passkey; nil leaves them without an answer.
	Passkey func(postern.PasskeyOptions) (postern.PasskeyCredential, error)

	mu       sync.Mutex // guards the fields below
	stored   []network.Update
	rule     func(network.Update) error
	outbound map[string]network.Outbound
	lost     error // of Outbound
	changed  chan struct{}
}

var _ network.LinkHost = (*Recorder)(nil)

// Update stores u, unless the rule of [Recorder.Rule] refuses it.
func (r *Recorder) Update(ctx context.Context, u network.Update) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("recorder: %w", err)
	}
	r.mu.Lock()
	rule := r.rule
	r.mu.Unlock()
	if rule != nil {
		if err := rule(u); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = append(r.stored, u)
	r.wake()
	return nil
}

// Lose makes Outbound fail.
func (r *Recorder) Lose(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = err
}

// Outbound returns a message given to [Recorder.Keep].
func (r *Recorder) Outbound(_ context.Context, networkID string) (network.Outbound, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.outbound[networkID]
	return m, ok && r.lost == nil, r.lost
}

// Processing does nothing.
func (*Recorder) Processing(string) {}

// Proxy returns "", for a direct connection.
func (*Recorder) Proxy() string { return "" }

// Space returns the only space of the networks in tests.
func (*Recorder) Space() string { return "" }

// Credential answers the newest request for the owner's passkey.
func (r *Recorder) Credential(ctx context.Context) (postern.PasskeyCredential, error) {
	if r.Passkey == nil {
		<-ctx.Done()
		return postern.PasskeyCredential{}, ctx.Err()
	}
	var wanted network.PasskeyWanted
	r.mu.Lock()
	for _, u := range r.stored {
		if w, ok := u.(network.PasskeyWanted); ok {
			wanted = w
		}
	}
	r.mu.Unlock()
	return r.Passkey(wanted.Options)
}

// Confirmed confirms every code at once.
func (*Recorder) Confirmed(ctx context.Context) error { return ctx.Err() }

// Keep remembers a message that was sent.
func (r *Recorder) Keep(m network.Outbound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outbound == nil {
		r.outbound = make(map[string]network.Outbound)
	}
	r.outbound[m.NetworkID] = m
}

// Rule decides about each update before it is stored; it may panic, as a broken
// host would. nil stores everything.
func (r *Recorder) Rule(rule func(network.Update) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rule = rule
}

// Updates returns what was stored, oldest first.
func (r *Recorder) Updates() []network.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stored)
}

// Changed returns a channel that is closed when the next update is stored.
func (r *Recorder) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *Recorder) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// All returns the stored updates of one kind that match, oldest first.
func All[U network.Update](r *Recorder, match func(U) bool) []U {
	var found []U
	for _, u := range r.Updates() {
		if u, ok := u.(U); ok && match(u) {
			found = append(found, u)
		}
	}
	return found
}

// Any matches every update.
func Any[U network.Update](U) bool { return true }

// Wait waits for the n-th stored update of one kind that matches, counted from 1.
func Wait[U network.Update](tb testing.TB, r *Recorder, n int, match func(U) bool) U {
	tb.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	for {
		changed := r.Changed()
		if found := All(r, match); len(found) >= n {
			return found[n-1]
		}
		select {
		case <-changed:
		case <-deadline.C:
			var want U
			tb.Fatalf("update %d of kind %T did not come; got %d updates", n, want, len(r.Updates()))
		}
	}
}
