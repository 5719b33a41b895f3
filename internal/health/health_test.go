package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a check whose result the test sets.
type fake struct{ err atomic.Pointer[error] }

func (f *fake) set(err error) { f.err.Store(&err) }

func (f *fake) run(context.Context) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func TestReportFollowsTheChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		s := New(slog.New(slog.NewTextHandler(&lines, nil)))
		if r := s.Report(); r.Status != Unavailable || r.Problems[0].Reason != "starting" {
			t.Errorf("at the start: %+v", r)
		}
		ctx, stop := context.WithCancel(t.Context())
		var disk, storage fake
		ended := make(chan error)
		go func() { ended <- s.Monitor(ctx, Check{"disk", disk.run}, Check{"storage", storage.run}) }()
		synctest.Wait()
		if r := s.Report(); r.Status != Ready || r.Problems != nil {
			t.Errorf("after the checks have run: %+v", r)
		}
		disk.set(errors.New("broken"))
		storage.set(&Failure{Reason: "no-storage", Detail: "None is set.", Warning: true})
		time.Sleep(calm)
		synctest.Wait()
		r := s.Report()
		if r.Status != Unavailable || len(r.Problems) != 1 || r.Problems[0] != (Problem{"disk", "disk-failed",
			"broken"}) {
			t.Errorf("after the disk broke: %+v", r)
		}
		if len(r.Warnings) != 1 || r.Warnings[0].Reason != "no-storage" {
			t.Errorf("the warnings are %+v", r.Warnings)
		}
		disk.set(nil)
		time.Sleep(alert)
		synctest.Wait()
		if r := s.Report(); r.Status != Ready || len(r.Warnings) != 1 {
			t.Errorf("after the repair: %+v", r)
		}
		s.Drain()
		time.Sleep(calm)
		synctest.Wait()
		if r := s.Report(); r.Status != Unavailable || r.Problems[0].Reason != "draining" {
			t.Errorf("while it stops: %+v", r)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := strings.Count(lines.String(), "\n"); n != 3 || strings.Count(lines.String(), "level=ERROR") != 1 {
			t.Errorf("the log has %d lines, want one per change:\n%s", n, lines.String())
		}
	})
}

// A check that hangs has failed, runs only once at a time, and succeeds when it returns.
func TestHangingCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		var calls atomic.Int32
		release := make(chan struct{})
		hang := func(context.Context) error { calls.Add(1); <-release; return nil }
		ended := make(chan error)
		go func() { ended <- s.Monitor(ctx, Check{"disk", hang}) }()
		time.Sleep(10 * bound)
		synctest.Wait()
		if r := s.Report(); r.Status != Unavailable || r.Problems[0].Reason != "disk-slow" {
			t.Errorf("while it hangs: %+v", r)
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls hang", calls.Load())
		}
		close(release)
		time.Sleep(bound)
		synctest.Wait()
		if r := s.Report(); r.Status != Ready {
			t.Errorf("after it returned: %+v", r)
		}
		stop()
		<-ended
	})
}
