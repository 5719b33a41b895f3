package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// bound is how long a check may take. A database that needs longer for one small write
	// cannot accept messages at a useful rate.
	bound = 5 * time.Second

	calm  = 5 * time.Second // between two runs of a check that succeeds
	alert = time.Second     // between two runs of a check that fails, so that readiness returns soon
)

// Check is one thing without which the server cannot work. Run returns nil, a [*Failure], or
// any other error, whose reason is then the name of the check with "-failed".
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Failure is the result of a check that knows its reason.
type Failure struct {
	Reason  string
	Detail  string
	Warning bool // the server can work in part, so it stays ready
}

func (f *Failure) Error() string { return f.Detail }

// Monitor runs checks, each on its own, until ctx is done. The server has started when each
// has run once.
func (s *State) Monitor(ctx context.Context, checks ...Check) error {
	var first sync.WaitGroup
	var all errgroup.Group
	for _, c := range checks {
		first.Add(1)
		all.Go(func() error { s.watch(ctx, &runner{Check: c}, first.Done); return nil })
	}
	first.Wait()
	s.set(ctx, lifecycle, result{})
	return all.Wait()
}

// watch repeats a check. It calls ran after the first time.
func (s *State) watch(ctx context.Context, r *runner, ran func()) {
	ran = sync.OnceFunc(ran)
	defer ran()
	for pause := calm; ; {
		now := r.once(ctx)
		if ctx.Err() != nil {
			return
		}
		s.set(ctx, r.Name, now)
		ran()
		if pause = calm; now.problem != nil {
			pause = alert
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// runner runs a check, one call at a time.
type runner struct {
	Check

	result chan error // of the call that has not returned yet; nil if there is none
}

// once runs the check. If it does not return in time, it has failed, even if it ignores its
// context as a call to a hanging file system does. The next call then waits for the same one.
func (r *runner) once(ctx context.Context) result {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if r.result == nil {
		r.result = make(chan error, 1)
		go func(done chan<- error) { done <- r.Run(ctx) }(r.result)
	}
	select {
	case err := <-r.result:
		r.result = nil
		return r.judge(err)
	case <-ctx.Done():
		return r.judge(context.DeadlineExceeded)
	}
}

func (c Check) judge(err error) result {
	if err == nil {
		return result{}
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return result{problem: &Problem{c.Name, f.Reason, f.Detail}, warning: f.Warning}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return result{problem: &Problem{c.Name, c.Name + "-slow", fmt.Sprintf("There was no result after %s.", bound)}}
	}
	return result{problem: &Problem{c.Name, c.Name + "-failed", err.Error()}}
}
