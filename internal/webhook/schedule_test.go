package webhook

import (
	"testing"
	"time"

	"postern/internal/postern"
)

const testNow = postern.Time(1_795_000_000_000)

func TestScheduleFollowsTheContract(t *testing.T) {
	t.Parallel()
	const instant = 0 // how long an attempt takes
	want := []string{
		"5s", "35s", "2m35s", "12m35s", "42m35s", "1h42m35s", "4h42m35s", "10h42m35s", "22h42m35s",
		"46h42m35s", "70h42m35s",
	}
	at, n := testNow, 1
	for ; ; n++ {
		next, ok := try{number: n, first: testNow, ended: at.Add(instant), jitter: .5}.next()
		if !ok {
			break
		}
		if got := time.Duration(next-testNow) * time.Millisecond; got.String() != canonical(t, want[n-1]) {
			t.Errorf("attempt %d is made after %s, want %s", n+1, got, want[n-1])
		}
		at = next
	}
	if n != maxAttempts {
		t.Errorf("%d attempts, want %d", n, maxAttempts)
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func TestNextAttempt(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		number int
		ended  time.Duration // after the first attempt began
		pause  time.Duration
		jitter float64
		want   time.Duration // after the first attempt began; 0: none
	}{
		{"first gap, least", 1, time.Second, 0, 0, 5 * time.Second},
		{"first gap, most", 1, time.Second, 0, 1, 7 * time.Second},
		{"from the end of a slow attempt", 1, 15 * time.Second, 0, .5, 20 * time.Second},
		{"pause lengthens a gap", 1, 0, time.Minute, .5, time.Minute},
		{"pause shortens none", 5, 0, time.Minute, .5, 30 * time.Minute},
		{"a pause under a second does not count", 1, 0, time.Millisecond, .5, 5 * time.Second},
		{"pause is at most a day", 1, time.Hour, 10 * 365 * day, .5, time.Hour + day},
		{"pause ends with the window", 1, 60 * time.Hour, day, .5, 72 * time.Hour},
		{"gap ends with the window", 11, 50 * time.Hour, 0, 1, 72 * time.Hour},
		{"long gap inside the window", 11, 40 * time.Hour, 0, .5, 64 * time.Hour},
		{"attempt at the end is the last", 5, 72 * time.Hour, 0, .5, 0},
		{"after a long stop", 2, 200 * time.Hour, 0, .5, 0},
		{"a millisecond before the end", 2, 72*time.Hour - time.Millisecond, 0, .5, 72 * time.Hour},
		{"twelfth attempt is the last", 12, time.Hour, time.Hour, .5, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at, ok := try{tt.number, testNow, testNow.Add(tt.ended), tt.pause, tt.jitter}.next()
			if got := time.Duration(at-testNow) * time.Millisecond; ok != (tt.want != 0) || ok && got != tt.want {
				t.Errorf("next = %s, %v; want %s", got, ok, tt.want)
			}
		})
	}
}

// Whatever a receiver asks for, there are at most 12 attempts in order, and the
// last begins within the window.
func FuzzSchedule(f *testing.F) {
	f.Add(int64(0), int64(0), .5)
	f.Add(int64(15_000), int64(86_400_000), 1.)
	f.Fuzz(func(t *testing.T, took, pause int64, jitter float64) {
		if took < 0 || took > 60_000 || pause < 0 || pause > 1<<50 || !(jitter >= 0 && jitter <= 1) {
			return
		}
		at := testNow
		for n := 1; ; n++ {
			next, ok := try{n, testNow, at + postern.Time(took), time.Duration(pause) * time.Millisecond, jitter}.next()
			if !ok {
				return
			}
			if n >= maxAttempts || next <= at || next > testNow.Add(window) {
				t.Fatalf("attempt %d at %d after one at %d", n+1, next-testNow, at-testNow)
			}
			at = next
		}
	})
}
