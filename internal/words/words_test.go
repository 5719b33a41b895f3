package words

import (
	"slices"
	"strings"
	"testing"
)

func TestWordsOfTextsAndQueries(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                             {},
		"Hello, hello WORLD!":          {"hello", "world"},
		"Straße Ärger naïve":           {"arger", "naive", "straße"},
		"ﬁne Ⅷ":                        {"fine", "viii"},
		"請寄發票 now":                     {"now", "寄", "發", "票", "請"},
		"pay +1 555-0100 a@b.example":  {"0100", "1", "555", "a", "b", "example", "pay"},
		"\x00\xff…👍":                   {},
		strings.Repeat("x", 100) + "y": {strings.Repeat("x", 60)},
	} {
		got := Of(text)
		if text[:min(1, len(text))] == "x" {
			if len(got) != 1 || len(got[0]) > maxWord {
				t.Errorf("a long word becomes %q", got)
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("words of %q = %q, want %q", text, got, want)
		}
	}
	for text, open := range map[string]bool{"invo": true, "invoice ": false, "發": false, "": false, "!": false} {
		if list, got := Query(text); got != open || len(list) > 1 {
			t.Errorf("query %q = %q, open %v, want %v", text, list, got, open)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	text := Of("The invoice of Tuesday")
	for query, want := range map[string]bool{
		"invoice": true, "inv": true, "inv ": false, "INVOICE tue": true, "invoice wed": false, "of the tuesday": true,
		"tuesdays": false, "z": false, "": true, "the ": true,
	} {
		list, open := Query(query)
		if got := Match(text, list, open); got != want {
			t.Errorf("%q matches %v, want %v", query, got, want)
		}
	}
}

// FuzzWords splits any text into bounded words that a query finds again.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "Hello", "請", "\xff\x00", "a\u0301\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list := Of(s)
		query, _ := Query(s)
		for _, word := range query {
			if _, found := slices.BinarySearch(list, word); !found {
				t.Errorf("%q is a word of the query and not of the text %q", word, s)
			}
		}
		for _, word := range list {
			if word == "" || len(word) > maxWord {
				t.Errorf("a word has %d bytes", len(word))
			}
		}
	})
}
