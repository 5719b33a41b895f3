package content

import (
	"strings"
	"unicode/utf8"
)

// storable returns s as it can be stored: valid UTF-8 without NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Clip returns s as it can be stored, cut between characters to at most limit bytes.
func Clip(s string, limit int) string {
	s = storable(s)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Cut returns s as it can be stored, with at most limit characters. It reports whether
// there were more.
func Cut(s string, limit int) (text string, truncated bool) {
	s = storable(s)
	n := 0
	for i := range s {
		if n == limit {
			return s[:i], true
		}
		n++
	}
	return s, false
}

// Name returns the name that contacts give themselves as it can be stored, with
// at most maxName characters, and without those that are not shown or that turn the direction of
// what follows: a name must not change how the text around it looks. The network sends "-" for no name.
func Name(s string) string {
	if s == "-" {
		return ""
	}
	s, _ = Cut(s, nameRead)
	s, _ = Cut(strings.TrimSpace(strings.Map(visible, s)), maxName)
	return s
}

// nameRead bounds the work for a name that is mostly invisible.
const nameRead = 8 * maxName

// clipper clips texts, and remembers whether it cut one.
type clipper struct{ cut bool }

func (c *clipper) bytes(s string, limit int) string {
	short := Clip(s, limit)
	c.cut = c.cut || len(short) < len(storable(s))
	return short
}

func (c *clipper) runes(s string, limit int) string {
	short, more := Cut(s, limit)
	c.cut = c.cut || more
	return short
}
