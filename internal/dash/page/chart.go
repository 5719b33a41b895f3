package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Chart shows values over consecutive time spans, as bars and as a table.
type Chart struct {
	ID      string // of its element
	Title   string
	Gist    string   // a summary, as a sentence
	Note    string   // an explanation; "": none
	Colours string   // "outcome", "traffic"; "": one
	Parts   []string // the parts of a bar from the bottom: at most two
	Columns []string // of the table, without the first
	Spans   []Span   // oldest first
	Most    int      // the value of a full-height bar; 0: the highest value
	Unit    string   // follows the values; "": none
	Days    bool     // a span is a day instead of an hour
}

// Span is one time span of a chart.
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

// bar is a part of a span's bar. Parts are stacked.
type bar struct {
	part              int
	x, y, width, high string
}

// bars returns the parts to draw for the i-th span.
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

// most is the value of a full-height bar.
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

// empty reports whether there is nothing to draw.
func (c Chart) empty() bool {
	for _, s := range c.Spans {
		if s.sum() > 0 {
			return false
		}
	}
	return true
}

// high is the height of a value; every value above zero is visible.
func high(n, most int) float64 {
	if n <= 0 {
		return 0
	}
	return max(2, float64(n)/float64(most)*(chartHigh-4))
}

func unit(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// says is the tooltip of a bar.
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

// head is the title of the table's first column.
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
