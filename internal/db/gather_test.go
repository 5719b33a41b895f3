package db

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// handing is a writer that collects a group, and is handed requests meanwhile.
type handing struct {
	*writer

	began time.Time
	group chan []request
}

func newHanding() handing {
	h := handing{newWriter(connection{dialect: sqliteDialect()}, nil, nil, nil), time.Now(), make(chan []request, 1)}
	h.give(Patient)
	go func() { h.group <- h.collect() }()
	synctest.Wait()
	return h
}

// give hands over a request of an urgency.
func (h handing) give(u Urgency) {
	h.hand(requestOf(numbered{"", u, 0}))
	synctest.Wait()
}

// taken returns how many requests the group has, and how long it has gathered.
func (h handing) taken() (n int, after time.Duration) {
	n = len(<-h.group)
	return n, time.Since(h.began)
}

func TestWritesThatNobodyWaitsForAreGathered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		more  []Urgency
		want  int
		after time.Duration
	}{
		"for a while":            {[]Urgency{Patient}, 2, gatherTime},
		"until somebody waits":   {[]Urgency{Patient, Patient, InOrder}, 4, 0},
		"until there are enough": {slices.Repeat([]Urgency{Patient}, gatherGroup), 1 + gatherGroup, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHanding()
				for _, u := range tt.more {
					h.give(u)
				}
				if n, after := h.taken(); n != tt.want || after != tt.after {
					t.Errorf("%d writes after %s, want %d after %s", n, after, tt.want, tt.after)
				}
			})
		})
	}
}
