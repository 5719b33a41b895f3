// Package health says whether the server can do its work, and if not, why.
package health

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Problem is why the server cannot do its work, or can do only a part of it.
type Problem struct {
	Check  string `json:"check"`  // what was checked, such as "disk"
	Reason string `json:"reason"` // a stable code, such as "disk-full"
	Detail string `json:"detail"` // for people; it contains no secret
}

// Report is what the checks have found, as /readyz and "postern status" show it.
type Report struct {
	Status   string    `json:"status"`             // Ready or Unavailable
	Problems []Problem `json:"problems,omitempty"` // why the server is not ready
	Warnings []Problem `json:"warnings,omitempty"` // what does not work although it is ready
}

// The values of [Report.Status].
const (
	Ready       = "ok"
	Unavailable = "unavailable"
)

// Checks that have no function: the server sets them itself.
const (
	lifecycle = "lifecycle"
	starting  = "starting"
	draining  = "draining"
)

// State holds the newest result of each check. It may be used from many goroutines.
type State struct {
	log *slog.Logger

	mu    sync.Mutex
	found map[string]result // by check
}

// result is what a check has found. Its problem is nil if all is well.
type result struct {
	problem *Problem
	warning bool
}

// New returns the state of a server that is starting: it is not ready.
func New(log *slog.Logger) *State {
	begin := &Problem{lifecycle, starting, "The server is starting."}
	return &State{log: log, found: map[string]result{lifecycle: {problem: begin}}}
}

// Drain makes the server not ready because it stops. Nothing makes it ready again.
func (s *State) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[lifecycle] = result{problem: &Problem{lifecycle, draining,
		"The server is stopping. It finishes what it has begun."}}
}

// Report returns what the checks have found, sorted by the name of the check.
func (s *State) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Status: Ready}
	for _, one := range s.found {
		switch {
		case one.problem == nil:
		case one.warning:
			r.Warnings = append(r.Warnings, *one.problem)
		default:
			r.Status, r.Problems = Unavailable, append(r.Problems, *one.problem)
		}
	}
	byCheck := func(a, b Problem) int { return cmp.Compare(a.Check, b.Check) }
	slices.SortFunc(r.Problems, byCheck)
	slices.SortFunc(r.Warnings, byCheck)
	return r
}

// set stores the result of a check, and logs it in one line if it differs from the one before.
func (s *State) set(ctx context.Context, check string, now result) {
	s.mu.Lock()
	before := s.found[check]
	if before.problem != nil && before.problem.Reason == draining {
		s.mu.Unlock()
		return
	}
	s.found[check] = now
	s.mu.Unlock()
	s.logChange(ctx, check, before, now)
}

func (s *State) logChange(ctx context.Context, check string, before, now result) {
	switch {
	case now.problem == nil && before.problem == nil, check == lifecycle:
	case now.problem == nil:
		s.log.WarnContext(ctx, "the check succeeds again", "check", check, "reason_before", before.problem.Reason)
	case before.problem != nil && before.problem.Reason == now.problem.Reason:
	case now.warning:
		s.log.WarnContext(ctx, "the server works only in part", "check", check, "reason", now.problem.Reason,
			"detail", now.problem.Detail)
	default:
		s.log.ErrorContext(ctx, "the server is not ready", "check", check, "reason", now.problem.Reason,
			"detail", now.problem.Detail)
	}
}
