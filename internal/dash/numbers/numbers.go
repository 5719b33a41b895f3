// Package numbers formats the numbers of the dashboard.
package numbers

import (
	"regexp"
	"strconv"
	"strings"
)

// Of formats a number with thousands separators: 1,000,000.
func Of[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

var written = regexp.MustCompile(`^(\d+|\d{1,3}(,\d{3})+)$`)

// Read reads a whole number that [Of] may have formatted. ok is false for everything else, such as 1,5.
func Read(text string) (n int, ok bool) {
	if !written.MatchString(text) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	return n, err == nil
}

// Many formats a number with its noun.
func Many[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Of(n) + " " + more
}

// Rate is a share in percent, cut to a tenth, so that only a complete share is 100%. Without a
// whole it is a dash.
func Rate(part, of int64) string {
	if of == 0 {
		return "–"
	}
	part = min(part, of) // what was sent before the counts began may be delivered after that
	tenths := part * 1000 / of
	s := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		s += "." + strconv.FormatInt(tenths%10, 10)
	}
	return s + "%"
}

// OrNone formats n, or a dash if of is zero.
func OrNone(n, of int64) string {
	if of == 0 {
		return "–"
	}
	return Of(n)
}
