package reference

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// run is a piece of a description: plain, code, or a link.
type run struct {
	Text    string
	Code    bool
	Address string // "" for what is no link
}

// inline matches what descriptions have of Markdown, and the addresses of pages about problems.
var inline = regexp.MustCompile("`([^`]+)`|" + `\[([^\]]+)\]\((https://[^)\s]+|#[^)\s]+|/\w[^)\s\\]*)\)|(/problems/[a-z][a-z-]*[a-z])`)

// paragraphs splits a description.
func paragraphs(text string) (list [][]run) {
	for part := range strings.SplitSeq(text, "\n\n") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, runs(part))
		}
	}
	return list
}

// runs are the pieces of a paragraph.
func runs(text string) (list []run) {
	rest := 0
	for _, at := range inline.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > rest {
			list = append(list, run{Text: text[rest:at[0]]})
		}
		rest = at[1]
		switch {
		case at[2] >= 0:
			list = append(list, run{Text: text[at[2]:at[3]], Code: true})
		case at[4] >= 0:
			list = append(list, run{Text: text[at[4]:at[5]], Address: text[at[6]:at[7]]})
		default:
			list = append(list, run{Text: text[at[8]:at[9]], Code: true, Address: text[at[8]:at[9]]})
		}
	}
	if rest < len(text) {
		list = append(list, run{Text: text[rest:]})
	}
	return list
}

// word is a piece of an example with the class that colors it.
type word struct{ Text, Class string }

// jsonWords matches strings with the colon after the name of a member, numbers, and what else has a name.
var jsonWords = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?|-?\b\d[\d.eE+-]*|\b(?:true|false|null)\b`)

// words splits JSON: strings are of the class s, numbers and the like n, and the rest has none.
func words(text string) (list []word) {
	rest := 0
	for _, at := range jsonWords.FindAllStringSubmatchIndex(text, -1) {
		if at[2] >= 0 {
			continue // the name of a member
		}
		class := "n"
		if text[at[0]] == '"' {
			class = "s"
		}
		list = append(list, word{text[rest:at[0]], ""}, word{text[at[0]:at[1]], class})
		rest = at[1]
	}
	return append(list, word{text[rest:], ""})
}

// sample is an example as a block of code.
type sample struct {
	Title, Note string
	Words       []word
	Long        bool // so that it scrolls
}

const longSample = 32 // lines

func newSample(title, note string, list []word) sample {
	lines := 0
	for _, w := range list {
		lines += strings.Count(w.Text, "\n") + len(w.Text)/80
	}
	return sample{title, note, list, lines > longSample}
}

// shown is an example of a document: JSON, indented, or a text as it is.
func shown(raw json.RawMessage) []word {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []word{{text, ""}}
	}
	return words(indented(raw))
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// literal is a value in a text: strings have no quotes.
func literal(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
