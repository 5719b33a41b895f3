package content

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzClip(f *testing.F) {
	for _, s := range []string{"", "hello", "\xff\x00", strings.Repeat("👋", 300), "-"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return // no limit that is ever used
		}
		got := Clip(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("clip(%q, %d) = %q", s, limit, got)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, got) {
			t.Errorf("clip(%q, %d) = %q, want a prefix", s, limit, got)
		}
		switch part, more := Cut(s, limit); {
		case more && utf8.RuneCountInString(part) != limit, !more && part != storable(s),
			!strings.HasPrefix(storable(s), part):
			t.Errorf("cut(%q, %d) = %q, %v", s, limit, part, more)
		}
		if n := Name(s); utf8.RuneCountInString(n) > maxName || !utf8.ValidString(n) {
			t.Errorf("name(%q) = %q", s, n)
		}
	})
}
