package numbers

import "testing"

func TestNumbersHaveTheirThousandsApart(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1,000", 1_000_000: "1,000,000", -1234: "-1,234", -123: "-123",
	} {
		if got := Of(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

func TestNumbersAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"0": 0, "1500": 1500, "1,500": 1500, "1,000,000": 1_000_000, "1,5": -1, "-1": -1, "": -1, "1,0000": -1, ",5": -1, "x": -1,
		"99999999999999999999": -1,
	} {
		if n, ok := Read(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q is read as %d, %v, want %d", text, n, ok, want)
		}
	}
}

func TestRateIsNeverRoundedUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		part, of int64
		want     string
	}{{0, 0, "–"}, {0, 5, "0%"}, {5, 5, "100%"}, {9_999, 10_000, "99.9%"}, {2, 3, "66.6%"}, {1, 2, "50%"}} {
		if got := Rate(tt.part, tt.of); got != tt.want {
			t.Errorf("%d of %d is %s, want %s", tt.part, tt.of, got, tt.want)
		}
	}
}
