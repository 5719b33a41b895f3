package reference

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	maxQuery = 100 // bytes that are searched for; the form accepts no more
	maxWords = 8   // of the query
	maxHits  = 30  // on the page
	excerpt  = 240 // bytes of the text around the first word that was found, more or less
)

// Search finds sections of the guides, problems, and parts of the API reference.
type Search struct {
	passages func() ([]passage, error)
}

// passage is what a search finds: a section with a title.
type passage struct {
	Title, Page, Address string // Page is the title of the page
	Text                 string

	title, page, text string // in lower case
}

// NewSearch returns a Search. It reads everything at the first query. document returns the OpenAPI document; nil
// leaves the API out.
func NewSearch(problems []Problem, document func() ([]byte, error)) *Search {
	return &Search{sync.OnceValues(func() ([]passage, error) {
		api, err := apiPassages(document)
		list := slices.Concat(guidePassages(), api, problemPassages(problems))
		for i := range list {
			p := &list[i]
			p.title, p.page, p.text = strings.ToLower(p.Title), strings.ToLower(p.Page), strings.ToLower(p.Text)
		}
		return list, err
	})}
}

func guidePassages() []passage {
	list := passagesOf(index)
	for _, g := range groups() {
		for _, guide := range g.Guides {
			list = append(list, passagesOf(served()[guide.Address])...)
		}
	}
	return list
}

// passagesOf are the sections of an embedded file.
func passagesOf(name string) (list []passage) {
	sections := sectionsOf(name)
	for _, s := range sections {
		list = append(list, passage{
			Title: s.Title, Page: sections[0].Title, Address: address(name) + s.Anchor, Text: s.Text,
		})
	}
	return list
}

func problemPassages(problems []Problem) (list []passage) {
	for _, p := range problems {
		list = append(list, passage{
			Title: p.Title, Page: "Problem " + p.Reason, Address: "/problems/" + p.Reason,
			Text: strings.Join([]string{p.Means, p.When, p.Do, p.Code}, " "),
		})
	}
	slices.SortFunc(list, func(a, b passage) int { return cmp.Compare(a.Address, b.Address) })
	return list
}

// results are what the page of a search shows.
type results struct {
	Query string
	Total int
	Hits  []hit
}

// hit is a passage that was found.
type hit struct {
	Title, Page, Address string
	Text                 []span
}

// span is a piece of a text. Found tells whether it was searched for.
type span struct {
	Text  string
	Found bool
}

// Page is the page with the results of a query. Every word of the query is somewhere in each result: those that
// have it in a title come first.
func (s *Search) Page(query string) (Page, error) {
	list, err := s.passages()
	query = strings.TrimSpace(cut(strings.ToValidUTF8(query, " "), maxQuery))
	return page(func() view {
		r := find(list, query)
		return view{Title: "Search", Address: "/docs/search", Guides: groups(), Query: query, Results: &r}
	}), err
}

// cut shortens a text to at most n bytes, between two characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func find(list []passage, query string) results {
	words := wordsOf(query)
	r := results{Query: query}
	if len(words) == 0 {
		return r
	}
	type ranked struct {
		passage
		score int
	}
	var found []ranked
	for _, p := range list {
		if score := p.score(words); score > 0 {
			found = append(found, ranked{p, score})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return b.score - a.score })
	r.Total = len(found)
	marks := pattern(words)
	for _, p := range found[:min(len(found), maxHits)] {
		r.Hits = append(r.Hits, hit{p.Title, p.Page, p.Address, mark(p.Text, marks)})
	}
	return r
}

// wordsOf are the different words of a query, in lower case.
func wordsOf(query string) []string {
	words := strings.Fields(strings.ToLower(query))
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

// hasWord reports whether a text has a word that begins with start: "age" is not in "message".
func hasWord(text, start string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], start)
		if i < 0 {
			return false
		}
		if beginsWord(text, from+i) {
			return true
		}
		from += i + 1
	}
}

// beginsWord reports whether no letter or digit comes before a place, or none comes at it.
func beginsWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	first, _ := utf8.DecodeRuneInString(text[at:])
	return !isOfWord(before) || !isOfWord(first)
}

func isOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// score is 0 if a word is nowhere. A word counts once: most in the title, and least in the text.
func (p passage) score(words []string) (sum int) {
	for _, word := range words {
		switch {
		case hasWord(p.title, word):
			sum += 100
		case hasWord(p.page, word):
			sum += 10
		case hasWord(p.text, word):
			sum++
		default:
			return 0
		}
	}
	return sum
}

// pattern matches every word, also inside other words; see [places].
func pattern(words []string) *regexp.Regexp {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile("(?i)" + strings.Join(quoted, "|"))
}

// places are where the words of a pattern begin a word of a text.
func places(text string, matches *regexp.Regexp) [][]int {
	inside := func(at []int) bool { return !beginsWord(text, at[0]) }
	return slices.DeleteFunc(matches.FindAllStringIndex(text, -1), inside)
}

// mark is the part of a text around the first match, with all matches marked.
func mark(text string, matches *regexp.Regexp) (list []span) {
	text = around(text, matches)
	rest := 0
	for _, at := range places(text, matches) {
		list = append(list, span{text[rest:at[0]], false}, span{text[at[0]:at[1]], true})
		rest = at[1]
	}
	return append(list, span{text[rest:], false})
}

// around cuts a text between words, so that the first match is in it.
func around(text string, matches *regexp.Regexp) string {
	first := 0
	if at := places(text, matches); len(at) > 0 {
		first = at[0][0]
	}
	before, after := text[:first], text[first:]
	if i := strings.LastIndexByte(before[:max(0, len(before)-excerpt/4)], ' '); i >= 0 {
		before = "… " + before[i+1:]
	}
	if len(after) > excerpt {
		if i := strings.IndexByte(after[excerpt:], ' '); i >= 0 {
			after = after[:excerpt+i] + " …"
		}
	}
	return before + after
}
