package whatsapp

import (
	"strings"
	"unicode/utf8"
)

// clip returns s as it can be stored: valid UTF-8 without NUL, cut between runes
// to at most limit bytes.
func clip(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// name returns the name that contacts give themselves as it can be stored, with
// at most maxName runes. The network sends "-" for no name.
func name(s string) string {
	if s == "-" {
		return ""
	}
	s = clip(s, maxName*utf8.UTFMax)
	for n, i := 0, 0; i < len(s); n++ {
		if n == maxName {
			return s[:i]
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s
}
