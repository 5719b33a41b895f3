package fair_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"postern/internal/fair"
)

// TestOneWorkspaceHoldsHalf: a workspace that waits for more leaves the rest to others.
func TestOneWorkspaceHoldsHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, entered := fair.New(4), 0
		for range 5 {
			go func() {
				if _, err := s.Enter(ctx, "ws_1"); err == nil {
					entered++
				}
			}()
			synctest.Wait()
		}
		if entered != 2 {
			t.Errorf("a workspace holds %d of 4 places, want 2", entered)
		}
		for range 2 {
			if _, err := s.Enter(ctx, "ws_2"); err != nil {
				t.Error(err)
			}
		}
		cancel()
		if _, err := s.Enter(ctx, "ws_3"); !errors.Is(err, context.Canceled) {
			t.Errorf("a fifth place: %v", err)
		}
	})
}

// TestPlacesAreGivenBack: also by those that gave up waiting, in either of both queues.
func TestPlacesAreGivenBack(t *testing.T) {
	s := fair.New(2)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		first, err := s.Enter(t.Context(), "ws_1")
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Enter(t.Context(), "ws_2")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enter(gone, "ws_1"); err == nil {
			t.Error("a workspace holds more than its half")
		}
		if _, err := s.Enter(gone, "ws_3"); err == nil {
			t.Error("there are more places than two")
		}
		first()
		second()
	}
}
