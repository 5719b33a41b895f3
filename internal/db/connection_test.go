package db

import (
	"errors"
	"testing"
	"time"
)

func TestServerGivesUpOnlyWhenAnotherHoldsTheDatabaseForLong(t *testing.T) {
	t.Parallel()
	s := connection{taken: make(chan struct{})}
	gone := func(since time.Duration, err error) bool {
		s.failure = err
		if !s.since.IsZero() {
			s.since = time.Now().Add(-since)
		}
		s.notice()
		select {
		case <-s.taken:
			return true
		default:
			return false
		}
	}
	for i, tt := range []struct {
		since time.Duration
		err   error
		want  bool
	}{
		{0, &InUseError{}, false},
		{takenAfter - time.Second, &InUseError{}, false},
		{2 * takenAfter, errors.New("unreachable"), false},
		{0, &InUseError{}, false},
		{2 * takenAfter, &InUseError{}, true},
		{2 * takenAfter, &InUseError{}, true},
	} {
		if got := gone(tt.since, tt.err); got != tt.want {
			t.Errorf("step %d: gone %v, want %v", i, got, tt.want)
		}
	}
}
