package postern

import "testing"

// A percentile is within the class of the attempt that has its rank, and never above the slowest attempt.
func TestPercentilesAreEstimated(t *testing.T) {
	t.Parallel()
	var took Took
	if _, ok := took.Percentile(50, 0); ok {
		t.Error("no attempts have a median")
	}
	var slowest int64
	for ms := int64(1); ms <= 200; ms++ {
		took.Add(ms)
		slowest = ms
	}
	took.Add(70_000)
	for _, tt := range []struct{ p, slowest, least, most int64 }{
		{1, slowest, 2, 4}, {50, slowest, 100, 102}, {95, slowest, 185, 200}, {100, 70_000, 70_000, 70_000},
	} {
		if ms, ok := took.Percentile(tt.p, tt.slowest); !ok || ms < tt.least || ms > tt.most {
			t.Errorf("the %d. percentile is %d (%v), want %d to %d", tt.p, ms, ok, tt.least, tt.most)
		}
	}
	var one Took
	one.Add(3)
	if ms, _ := one.Percentile(99, 3); ms != 3 {
		t.Errorf("the 99. percentile of one attempt of 3 ms is %d", ms)
	}
}
