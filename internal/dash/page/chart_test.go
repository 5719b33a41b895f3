package page

import (
	"strings"
	"testing"
)

func TestChartShowsEveryFailure(t *testing.T) {
	t.Parallel()
	c := Chart{Spans: []Span{{Parts: []int{1_000_000, 1}}, {Parts: []int{0, 0}}, {Parts: []int{0, 7}}}}
	if a, b, d := c.bars(0), c.bars(1), c.bars(2); len(a) != 2 || len(b) != 0 || len(d) != 1 || d[0].part != 1 ||
		a[1].high != "2.0" {
		t.Errorf("bars = %+v, %+v, %+v", a, b, d)
	}
}

func TestChartStaysInItsPicture(t *testing.T) {
	t.Parallel()
	c := Chart{Most: 100}
	for i := range 30 {
		c.Spans = append(c.Spans, Span{Parts: []int{i * 4, 1}})
	}
	for i := range c.Spans {
		for _, b := range c.bars(i) {
			if strings.HasPrefix(b.y, "-") || strings.HasPrefix(b.high, "-") {
				t.Errorf("the bar %+v leaves the picture", b)
			}
		}
	}
}

// Percentiles include one another, so each adds only its distance from the one below to the bar.
func TestLevelsAreNotAddedUp(t *testing.T) {
	t.Parallel()
	c := Chart{Levels: true, Parts: []string{"Median", "95%"}, Spans: []Span{{Parts: []int{30, 100}}}}
	if list := c.bars(0); len(list) != 2 || list[0].high != "28.8" || list[1].high != "67.2" || c.most() != 100 {
		t.Errorf("bars = %+v of %d", list, c.most())
	}
	if says := c.says(c.Spans[0]); !strings.Contains(says, "median 30, 95% 100") {
		t.Errorf("the tooltip is %q", says)
	}
}

func TestScalesEndAtRoundNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 2, 1: 2, 3: 4, 5: 10, 10: 10, 11: 20, 39: 40, 41: 100, 12_345: 20_000} {
		if got := roundUp(n); got != want {
			t.Errorf("the scale for %d ends at %d, want %d", n, got, want)
		}
	}
}
