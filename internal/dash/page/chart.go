package page

import (
	"fmt"
	"slices"
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
	Parts   []string // the parts of a bar from the bottom: at most three
	Levels  bool     // each part includes the ones below it
	Columns []string // of the table, without the first
	Spans   []Span   // oldest first
	Most    int      // the value of a full-height bar; 0: a round number above the highest value
	Unit    string   // follows the values; "": none
	Grain   Grain
	Data    string // the path of the page with the table; "": it is here
}

// Grain is the length of a chart's spans.
type Grain int

// The lengths.
const (
	Hours Grain = iota
	Minutes
	Days
)

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

// dataID is the id of the element with the table.
func (c Chart) dataID() string { return straight(c.ID) + "-data" }

// bars returns the parts to draw for the i-th span.
func (c Chart) bars(i int) (list []bar) {
	step, ground := float64(chartWide)/float64(len(c.Spans)), float64(chartHigh)
	for part, n := range c.stacked(c.Spans[i]) {
		high := high(n, c.most())
		ground -= high
		if high > 0 {
			list = append(list, bar{part, unit((float64(i) + 0.1) * step), unit(ground), unit(step * 0.8), unit(high)})
		}
	}
	return list
}

// stacked returns how much each part of a span adds to its bar.
func (c Chart) stacked(s Span) []int {
	if !c.Levels {
		return s.Parts
	}
	parts := slices.Clone(s.Parts)
	for i := len(parts) - 1; i > 0; i-- {
		parts[i] = max(parts[i]-parts[i-1], 0)
	}
	return parts
}

// most is the value of a full-height bar.
func (c Chart) most() int {
	highest := c.Most
	for _, s := range c.Spans {
		n := 0
		for _, part := range c.stacked(s) {
			n += part
		}
		highest = max(highest, n)
	}
	return roundUp(highest)
}

// roundUp returns the next number at which a scale may end: 2, 4, 10, 20, 40 and so on, so that its half is a
// whole number, too.
func roundUp(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{2, 4, 10} {
			if n <= step*unit {
				return step * unit
			}
		}
	}
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
		value, name := fmt.Sprint(n, c.Unit), ""
		if i < len(c.Parts) {
			name = strings.ToLower(c.Parts[i])
		}
		if c.Levels {
			value, name = name, value
		}
		list = append(list, strings.TrimSpace(value+" "+name))
	}
	return strings.Join(list, ", ")
}

func (c Chart) when(s Span) string {
	if c.Grain == Days {
		return s.At.UTC().Format("2 Jan 2006")
	}
	return readTime(s.At)
}

// head is the title of the table's first column.
func (c Chart) head() string {
	switch c.Grain {
	case Minutes:
		return "Minute"
	case Days:
		return "Day (UTC)"
	case Hours:
	}
	return "Hour"
}

// ago says how far in the past a span is.
func (c Chart) ago(spans int) string {
	switch c.Grain {
	case Minutes:
		return fmt.Sprintf("%d minutes ago", spans)
	case Days:
		return fmt.Sprintf("%d days ago", spans)
	case Hours:
	}
	return fmt.Sprintf("%d hours ago", spans)
}

// Meter is how much of a limit is used.
type Meter struct {
	Label string
	Words string // "12 of 100"
	Used  int
	Limit int
	Note  string // "": nothing to say
}
