package api

import (
	"maps"
	"slices"
	"time"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// Operations lists what the table of scopes names.
func Operations() []string { return slices.Sorted(maps.Keys(scopes())) }

// ScopesOf are the scopes an operation needs.
func ScopesOf(operation string) []postern.Scope { return scopes()[operation] }

// SetPulse changes how often streams show that they live.
func (a *API) SetPulse(d time.Duration) { a.streams.pulse = d }

// SetPatience changes how long a stream waits for its reader.
func (a *API) SetPatience(d time.Duration) { a.streams.patience = d }

// SetStreams changes how many streams there may be in all.
func (a *API) SetStreams(n int) { a.streams.SetMost(n) }

// SetUploads changes how many uploads there may be in all, and how long one waits for its
// client.
func (a *API) SetUploads(n int, patience time.Duration) {
	a.uploads.SetMost(n)
	a.uploads.patience = patience
}

// StopRates stops the clock of all rates: what is used up stays so. It must come
// before the first request.
func (a *API) StopRates() {
	a.throttle.requests.StopClock()
	a.throttle.strikes.StopClock()
}

// HurryRates makes the clock of all rates run faster than time by a factor. It must come
// before the first request.
func (a *API) HurryRates(factor int) {
	start := time.Now()
	fast := func() time.Time { return start.Add(time.Since(start) * time.Duration(factor)) }
	a.throttle.requests.SetClock(fast)
	a.throttle.strikes.SetClock(fast)
}

// DropScopes takes an operation's row away and checks the table.
func (a *API) DropScopes(operation string) error {
	delete(a.scopes, operation)
	return a.checkScopes()
}

// Break makes a route panic, to see what the caller and the log get.
func (a *API) Break() { a.gateway = nil }

// FromHuma converts an error of huma.
func FromHuma(m *huma.ErrorModel) error { return fromHuma(m) }
