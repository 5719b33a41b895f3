package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "postern/internal/dash/page"
)

// chartSample is a chart with example data, one of hours or of days.
func chartSample(id string, at time.Time, span time.Duration) Chart {
	c := Chart{
		ID: id, Title: "Attempts", Gist: "1,204 attempts succeeded and 15 failed.", Colours: "outcome",
		Parts: []string{"Succeeded", "Failed"}, Columns: []string{"Succeeded", "Failed", "Mean (ms)"},
	}
	if span > time.Hour {
		c.Grain = Days
	}
	for i := range 24 {
		good, bad := i*i%90, max(0, i-18)
		c.Spans = append(c.Spans, Span{
			At: at.Add(time.Duration(i-23) * span), Parts: []int{good, bad},
			Cells: []string{fmt.Sprint(good), fmt.Sprint(bad), fmt.Sprint(40 + i)},
		})
	}
	return c
}

// The numbers are there for users who do not see the bars.
func TestChartHasItsNumbersAsATable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	text := render(t, WebhookPage(Frame{}, WebhookView{Chart: chartSample("attempts", at, 24*time.Hour)}))
	for _, want := range []string{
		"<figcaption", "15 failed", "<caption", ">21 Nov 2026</time>", "<bdi>79</bdi>", "<bdi>5</bdi>",
		`aria-hidden="true"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %s", want)
		}
	}
}
