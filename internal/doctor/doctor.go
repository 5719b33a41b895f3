// Package doctor looks for what would keep a server from working well, before somebody notices. Each finding
// says what to do.
package doctor

import (
	"context"
	"sync"
	"time"
)

// Grade says how bad a finding is.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning" // the server works, but not as well, or not for long
	Failed  Grade = "failed"  // something does not work
	Skipped Grade = "skipped" // the settings do not need it, or it could not be checked
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"grade"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to do; "" if nothing has to be done
}

// Check is one check. Run sets everything but the name.
type Check struct {
	Name string
	Run  func(ctx context.Context) Finding
}

// limit is how long a check may take.
const limit = 10 * time.Second

// Examine runs all checks at the same time, and returns their findings in the order of the checks.
func Examine(ctx context.Context, checks []Check) []Finding {
	findings := make([]Finding, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() { findings[i] = c.examine(ctx) })
	}
	group.Wait()
	return findings
}

// examine runs a check. One that ignores the end of its context is left behind.
func (c Check) examine(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan Finding, 1)
	go func() { done <- c.Run(ctx) }()
	f := Finding{Grade: Failed, Detail: "It did not end within " + limit.String() + ".",
		Remedy: "See whether what it asks hangs."}
	select {
	case f = <-done:
	case <-ctx.Done():
	}
	f.Check = c.Name
	return f
}

func ok(detail string) Finding { return Finding{Grade: OK, Detail: detail} }

// Skip returns the finding of a check that is not needed.
func Skip(why string) Finding { return Finding{Grade: Skipped, Detail: why} }

func warn(detail, remedy string) Finding {
	return Finding{Grade: Warning, Detail: detail, Remedy: remedy}
}

// Fail returns the finding of a check that failed.
func Fail(detail, remedy string) Finding {
	return Finding{Grade: Failed, Detail: detail, Remedy: remedy}
}
