package ratelimit

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take takes until it is refused, and says how many were allowed and how long to
// wait then.
func take(t *testing.T, l *Limiter, name string, r Rate) (n int, wait time.Duration) {
	t.Helper()
	for ; ; n++ {
		s, err := l.Take(t.Context(), name, r)
		if err != nil {
			t.Fatal(err)
		}
		if s.Refused {
			return n, s.RetryAfter
		}
	}
}

func TestBurstThenEvenly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := New(10), Rate{Count: 60, Per: time.Minute, Burst: 5}
		if n, wait := take(t, l, "a", r); n != 5 || wait != time.Second {
			t.Errorf("%d at once, then one after %s, want 5 and 1s", n, wait)
		}
		if n, _ := take(t, l, "b", r); n != 5 {
			t.Errorf("another name has %d, want 5", n)
		}
		time.Sleep(3 * time.Second)
		if n, _ := take(t, l, "a", r); n != 3 {
			t.Errorf("%d came back in 3 s, want 3", n)
		}
		time.Sleep(time.Hour)
		if n, _ := take(t, l, "a", r); n != 5 {
			t.Errorf("%d came back in an hour, want the burst of 5", n)
		}
	})
}

func TestAtMostBoundsEveryPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := New(10), AtMost(20, time.Hour, 10)
		var at []time.Time
		for range 3 * 60 {
			n, _ := take(t, l, "a", r)
			for range n {
				at = append(at, time.Now())
			}
			time.Sleep(time.Minute)
		}
		for i, first := range at {
			n := 0
			for _, later := range at[i:] {
				if later.Sub(first) < time.Hour {
					n++
				}
			}
			if n > 20 {
				t.Fatalf("%d in the hour from %s on, want at most 20", n, first)
			}
		}
		if len(at) < 35 {
			t.Errorf("%d in three hours, want 10 at once and 10 in each hour", len(at))
		}
	})
}

func TestLookCountsNothing(t *testing.T) {
	t.Parallel()
	l, r := New(10), Rate{Count: 1, Per: time.Hour, Burst: 3}
	for range 10 {
		if s, err := l.Look(t.Context(), "a", r); err != nil || s.Refused || s.Remaining != 3 {
			t.Errorf("%+v, %v, want 3 left", s, err)
		}
	}
	take(t, l, "a", r)
	if s, err := l.Look(t.Context(), "a", r); err != nil || s.Remaining != 0 || s.RetryAfter <= 0 ||
		s.ResetAfter <= s.RetryAfter {
		t.Errorf("%+v, %v, want none left and a time for the next", s, err)
	}
}

// The names counted last are remembered.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	l, r := New(2), Rate{Count: 1, Per: time.Hour, Burst: 1}
	for _, name := range []string{"a", "b", "c"} {
		take(t, l, name, r)
	}
	for i, name := range []string{"c", "b", "a"} { // a look remembers a name, too
		if s, err := l.Look(t.Context(), name, r); err != nil || (s.Remaining == 0) != (i < 2) {
			t.Errorf("%s: %+v, %v, remembered should be %v", name, s, err, i < 2)
		}
	}
}

// However many callers count at the same moment, each is counted.
func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	l, r := New(10), Rate{Count: 1, Per: time.Hour, Burst: 1000}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for range 20 {
				if s, err := l.Take(context.Background(), "a", r); err != nil || s.Refused {
					t.Errorf("%+v, %v", s, err)
				}
			}
		})
	}
	group.Wait()
	if s, err := l.Take(t.Context(), "a", r); err != nil || !s.Refused {
		t.Errorf("%+v, %v after 1000, want a refusal", s, err)
	}
}

func TestImpossibleRateIsAnError(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{{}, {1, 0, 1}, {0, time.Second, 1}, {1, time.Second, 0}, AtMost(1, time.Hour, 1)} {
		if _, err := New(1).Take(t.Context(), "a", r); err == nil {
			t.Errorf("%+v is taken", r)
		}
	}
}

func TestNetworkIsWhatOneCallerHas(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7",
		"::ffff:192.0.2.7":       "192.0.2.7",
		"2001:db8:1:2ff:3:4:5:6": "2001:db8:1:200::/56",
		"2001:db8:1:200::":       "2001:db8:1:200::/56",
		"2001:db8:1:300::":       "2001:db8:1:300::/56",
		"fe80::1%eth0":           "fe80::/56",
	} {
		if got := Network(netip.MustParseAddr(address)); got != want {
			t.Errorf("the network of %s is %s, want %s", address, got, want)
		}
	}
}
