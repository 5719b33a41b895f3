package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"postern/internal/postern"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// Operations lists what the table of scopes names.
func Operations() []string { return slices.Sorted(maps.Keys(scopes())) }

// ScopesOf are the scopes an operation needs.
func ScopesOf(operation string) []postern.Scope { return scopes()[operation] }

// SetPulse changes how often streams show that they live.
func (a *API) SetPulse(d time.Duration) { a.streams.pulse = d }

// SetPatience changes how long a stream waits for its reader.
func (a *API) SetPatience(d time.Duration) { a.streams.patience = d }

// StopRates stops the clock of all rates: a counter that is used up stays so. It
// must come before the first request.
func (a *API) StopRates() error {
	keys, err := memstore.NewCtx(throttledKeys)
	if err != nil {
		return err
	}
	stopped := stoppedStore{keys, time.Now()}
	a.throttle.store = stopped
	a.throttle.strikes, err = newRate(stopped, strikes)
	return err
}

// stoppedStore is a store of counters whose clock stands still.
type stoppedStore struct {
	throttled.GCRAStoreCtx

	now time.Time
}

// GetWithTime returns a counter and always the same time.
func (s stoppedStore) GetWithTime(ctx context.Context, key string) (int64, time.Time, error) {
	n, _, err := s.GCRAStoreCtx.GetWithTime(ctx, key)
	return n, s.now, err
}

// DropScopes takes an operation's row away and checks the table.
func (a *API) DropScopes(operation string) error {
	delete(a.scopes, operation)
	return a.checkScopes()
}

// Break makes a route panic, to see what the caller and the log get.
func (a *API) Break() { a.gateway = nil }
