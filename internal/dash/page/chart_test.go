package page

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// chartSample is a chart with example data, one of hours or of days.
func chartSample(id string, at time.Time, span time.Duration) Chart {
	c := Chart{ID: id, Title: "Attempts", Gist: "1,204 attempts succeeded and 15 failed.", Colours: "outcome", Parts: []string{"Succeeded", "Failed"}, Columns: []string{"Succeeded", "Failed", "Mean, ms"}, Days: span > time.Hour}
	for i := range 24 {
		good, bad := i*i%90, max(0, i-18)
		c.Spans = append(c.Spans, Span{At: at.Add(time.Duration(i-23) * span), Parts: []int{good, bad}, Cells: []string{fmt.Sprint(good), fmt.Sprint(bad), fmt.Sprint(40 + i)}})
	}
	return c
}

func TestChartShowsEveryFailure(t *testing.T) {
	t.Parallel()
	c := Chart{Spans: []Span{{Parts: []int{1_000_000, 1}}, {Parts: []int{0, 0}}, {Parts: []int{0, 7}}}}
	if a, b, d := c.bars(0), c.bars(1), c.bars(2); len(a) != 2 || len(b) != 0 || len(d) != 1 || d[0].part != 1 || a[1].high != "2.0" {
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

// The numbers are there for whoever does not see the bars.
func TestChartHasItsNumbersAsATable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	text := render(t, WebhookPage(Frame{}, WebhookView{Chart: chartSample("attempts", at, 24*time.Hour)}))
	for _, want := range []string{"<figcaption", "15 failed", "<caption", ">21 Nov 2026</time>", "<bdi>79</bdi>", "<bdi>5</bdi>", `aria-hidden="true"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %s", want)
		}
	}
}
