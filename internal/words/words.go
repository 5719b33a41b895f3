// Package words splits texts into words for a search. The same words come from a text and from
// a query, in lower case and without accents, whatever the database.
package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxWord  = 64     // bytes of a word; the rest of a longer one is not found
	maxWords = 10_000 // different words of a text; the others are not found
)

// Of returns the different words of texts, sorted. Scripts that are written without spaces have
// a word for each character.
func Of(texts ...string) []string {
	seen := map[string]bool{}
	for _, text := range texts {
		split(text, func(word string) bool {
			seen[word] = true
			return len(seen) < maxWords
		})
	}
	list := make([]string, 0, len(seen))
	for word := range seen {
		list = append(list, word)
	}
	slices.Sort(list)
	return list
}

// Query returns the words of a query in their order. open reports that the last one is the
// beginning of a word, because nothing follows it.
func Query(text string) (list []string, open bool) {
	split(text, func(word string) bool {
		list = append(list, word)
		return len(list) < maxQuery
	})
	last, _ := utf8.DecodeLastRuneInString(text)
	return list, len(list) > 0 && isPart(last) && !isWhole(last)
}

// Match reports whether a text has all words of a query, of which the last may be a beginning if
// open. The words of the text are those of [Of].
func Match(text, query []string, open bool) bool {
	for i, word := range query {
		at, found := slices.BinarySearch(text, word)
		begins := open && i == len(query)-1 && at < len(text) && strings.HasPrefix(text[at], word)
		if !found && !begins {
			return false
		}
	}
	return true
}

const maxQuery = 20 // words of a query

// split calls word with each word of a text until it returns false.
func split(text string, word func(string) bool) {
	var b strings.Builder
	flush := func() bool {
		defer b.Reset()
		return b.Len() == 0 || word(b.String())
	}
	var it norm.Iter
	it.InitString(norm.NFKD, text)
	for !it.Done() {
		for _, r := range string(it.Next()) {
			more := true
			switch {
			case unicode.Is(unicode.Mn, r):
			case isWhole(r):
				more = flush() && word(string(r))
			case isPart(r):
				if b.Len()+utf8.UTFMax <= maxWord {
					b.WriteRune(unicode.ToLower(r))
				}
			default:
				more = flush()
			}
			if !more {
				return
			}
		}
	}
	flush()
}

func isPart(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isWhole reports whether a character counts as a word, because its script has no spaces.
func isWhole(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar) && isPart(r)
}
