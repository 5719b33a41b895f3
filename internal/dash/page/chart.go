package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Chart is what happened in consecutive spans of time: bars, and the numbers as a
// table.
type Chart struct {
	ID      string // of its element
	Title   string
	Gist    string   // what there is to see, as a sentence
	Note    string   // what the numbers mean; "": they need no word
	Colours string   // "outcome", "traffic"; "": one
	Parts   []string // what a bar is made of, from below: at most two
	Columns []string // of the table, but the first
	Spans   []Span   // oldest first
	Most    int      // what a bar of full height stands for; 0: the highest
	Unit    string   // behind the numbers of the bars; "": none
	Days    bool     // a span is a day, else an hour
}

// Span is one of a chart.
type Span struct {
	At    time.Time // its start
	Parts []int
	Cells []string // of the table
}

// The chart's own units, which the browser stretches.
const (
	chartWide = 480
	chartHigh = 100
)

// bar is a part of a span's bar. The first stands on the ground, and each other on
// the one before.
type bar struct {
	part              int
	x, y, width, high string
}

// bars are what is drawn of the i-th span.
func (c Chart) bars(i int) (list []bar) {
	step, ground := float64(chartWide)/float64(len(c.Spans)), float64(chartHigh)
	for part, n := range c.Spans[i].Parts {
		high := high(n, c.most())
		ground -= high
		if high > 0 {
			list = append(list, bar{part, unit((float64(i) + 0.1) * step), unit(ground), unit(step * 0.8), unit(high)})
		}
	}
	return list
}

// most is what a bar of full height stands for.
func (c Chart) most() int {
	most := max(c.Most, 1)
	for _, s := range c.Spans {
		most = max(most, s.sum())
	}
	return most
}

func (s Span) sum() (n int) {
	for _, part := range s.Parts {
		n += part
	}
	return n
}

// empty tells whether there is nothing to draw.
func (c Chart) empty() bool {
	for _, s := range c.Spans {
		if s.sum() > 0 {
			return false
		}
	}
	return true
}

// high is the height of a number; one that is not zero can be seen.
func high(n, most int) float64 {
	if n <= 0 {
		return 0
	}
	return max(2, float64(n)/float64(most)*(chartHigh-4))
}

func unit(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// says is what a pointer on a bar is told.
func (c Chart) says(s Span) string {
	list := []string{c.when(s)}
	for i, n := range s.Parts {
		name := ""
		if i < len(c.Parts) {
			name = " " + strings.ToLower(c.Parts[i])
		}
		list = append(list, fmt.Sprint(n, c.Unit, name))
	}
	return strings.Join(list, ", ")
}

func (c Chart) when(s Span) string {
	if c.Days {
		return s.At.UTC().Format("2 Jan 2006")
	}
	return readTime(s.At)
}

// head heads the first column of the table.
func (c Chart) head() string {
	if c.Days {
		return "Day (UTC)"
	}
	return "Hour"
}

func (c Chart) first() string {
	if c.Days {
		return fmt.Sprintf("%d days ago", len(c.Spans)-1)
	}
	return fmt.Sprintf("%d hours ago", len(c.Spans)-1)
}

// Meter is how much of a limit is used.
type Meter struct {
	Label string
	Words string // "12 of 100"
	Used  int
	Limit int
	Note  string // "": nothing to say
}
