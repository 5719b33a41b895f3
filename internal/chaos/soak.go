package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sample is what a gateway holds at a moment.
type Sample struct {
	At          time.Duration // since the first one
	Own         float64       // MiB of memory that it has taken
	Runtime     float64       // MiB that Go's runtime holds; the rest of Own is SQLite's
	Files       float64       // MiB of the program and other files that are in memory, which the system may drop
	Goroutines  float64
	Descriptors float64
	Messages    int64 // that have come to their end so far
}

// SoakLimit is how many times the median of the first third of a run that of the last third may be, for each figure. A
// gateway keeps nothing of what has ended; connections to the database that it opens under load may come late.
const SoakLimit = 1.25

// curve is one figure of the samples.
type curve struct {
	name string
	of   func(Sample) float64
}

func curves() []curve {
	return []curve{
		{"own memory, MiB", func(s Sample) float64 { return s.Own }},
		{"of Go's runtime, MiB", func(s Sample) float64 { return s.Runtime }},
		{"files in memory, MiB", func(s Sample) float64 { return s.Files }},
		{"goroutines", func(s Sample) float64 { return s.Goroutines }},
		{"descriptors", func(s Sample) float64 { return s.Descriptors }},
	}
}

// thirds returns the medians of the first and the last third of a run.
func (c curve) thirds(list []Sample) (first, last float64) {
	n := len(list) / 3
	return c.median(list[:n]), c.median(list[len(list)-n:])
}

func (c curve) values(list []Sample) []float64 {
	values := make([]float64, len(list))
	for i, s := range list {
		values[i] = c.of(s)
	}
	return values
}

func (c curve) median(list []Sample) float64 {
	values := slices.Sorted(slices.Values(c.values(list)))
	return values[len(values)/2]
}

// Growth returns an error for each figure that has grown over a run by more than it may.
func Growth(list []Sample) error {
	if len(list) < 3 {
		return fmt.Errorf("%d samples say nothing", len(list))
	}
	var all error
	for _, c := range curves() {
		if first, last := c.thirds(list); last > SoakLimit*first {
			all = errors.Join(all, fmt.Errorf("%s: %.1f in the last third, and %.1f in the first; at most %.2f times as many",
				c.name, last, first, SoakLimit))
		}
	}
	return all
}

const soakRows = 15 // samples that a table shows

// SoakTable describes a run in Markdown.
func SoakTable(list []Sample) string {
	var s strings.Builder
	fmt.Fprintf(&s, "| figure | first third | last third | ratio | at most |\n|---|---|---|---|---|\n")
	for _, c := range curves() {
		first, last := c.thirds(list)
		fmt.Fprintf(&s, "| %s | %.1f | %.1f | %.2f | %.2f |\n", c.name, first, last, last/first, SoakLimit)
	}
	s.WriteString("\n| after | messages |")
	for _, c := range curves() {
		fmt.Fprintf(&s, " %s |", c.name)
	}
	s.WriteString("\n|---|---" + strings.Repeat("|---", len(curves())) + "|\n")
	for i := range min(soakRows, len(list)) {
		list[i*(len(list)-1)/max(min(soakRows, len(list))-1, 1)].row(&s)
	}
	return s.String()
}

// row adds a line of the table.
func (one Sample) row(s *strings.Builder) {
	fmt.Fprintf(s, "| %s | %d |", one.At.Round(time.Second), one.Messages)
	for _, c := range curves() {
		fmt.Fprintf(s, " %.1f |", c.of(one))
	}
	s.WriteString("\n")
}

// The size of a picture, and of each of its parts.
const (
	soakWidth  = 720
	partHeight = 120
	partTop    = 24
)

// SoakPicture draws a run as SVG: one part for each figure, from zero to its highest value.
func SoakPicture(list []Sample) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`,
		soakWidth, len(curves())*(partHeight+partTop))
	for i, c := range curves() {
		c.draw(&s, list, i*(partHeight+partTop))
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// draw adds the part of a figure.
func (c curve) draw(s *strings.Builder, list []Sample, top int) {
	values := c.values(list)
	most, end := max(slices.Max(values), 1), max(list[len(list)-1].At, 1)
	fmt.Fprintf(s, `<text x="4" y="%d">%s, at most %.0f, over %s</text>`, top+16, c.name, most, end.Round(time.Second))
	fmt.Fprintf(s, `<line x1="0" y1="%d" x2="%d" y2="%[1]d" stroke="#999"/>`, top+partTop+partHeight-1, soakWidth)
	s.WriteString(`<polyline fill="none" stroke="#06c" points="`)
	for i, v := range values {
		x := float64(soakWidth) * float64(list[i].At) / float64(end)
		fmt.Fprintf(s, "%.1f,%.1f ", x, float64(top+partTop)+(partHeight-2)*(1-v/most))
	}
	s.WriteString(`"/>`)
}
