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
