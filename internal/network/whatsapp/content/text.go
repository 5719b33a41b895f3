package whatsapp

import (
	"strings"
	"unicode/utf8"
)

// storable returns s as it can be stored: valid UTF-8 without NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// clip returns s as it can be stored, cut between characters to at most limit bytes.
func clip(s string, limit int) string {
	s = storable(s)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// cut returns s as it can be stored, with at most limit characters. It reports whether
// there were more.
func cut(s string, limit int) (text string, truncated bool) {
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

// name returns the name that contacts give themselves as it can be stored, with
// at most maxName characters. The network sends "-" for no name.
func name(s string) string {
	if s == "-" {
		return ""
	}
	s, _ = cut(s, maxName)
	return s
}
