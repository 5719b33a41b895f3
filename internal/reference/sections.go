package reference

import (
	"fmt"
	"strings"
)

// section is a version in the changelog, or the text before the first one.
type section struct {
	Version string // "" before the first one
	Texts   [][]span
	Changes [][]span
}

// span is a piece of a line: plain text, or code.
type span struct {
	Text string
	Code bool
}

// sectionsOf parses a changelog. It supports the Markdown that ours uses: a line is a
// heading, a change or a paragraph, with code between backticks. Anything else is an
// error. Comments are left out.
func sectionsOf(changelog string) ([]section, error) {
	list := []section{{}}
	for n, line := range strings.Split(comment.ReplaceAllString(changelog, ""), "\n") {
		last := &list[len(list)-1]
		version, heading := strings.CutPrefix(line, "## ")
		change, listed := strings.CutPrefix(line, "- ")
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case heading:
			list = append(list, section{Version: version})
		case listed:
			last.Changes = append(last.Changes, spans(change))
		case strings.ContainsAny(line[:1], " \t#*>|-_<=`+[0123456789"):
			return nil, fmt.Errorf("line %d of the changelog is not a heading, a change or a paragraph", n+1)
		default:
			last.Texts = append(last.Texts, spans(line))
		}
	}
	return list, nil
}

// spans separates the code in a line from the rest.
func spans(line string) (list []span) {
	for i, text := range strings.Split(line, "`") {
		if text != "" {
			list = append(list, span{text, i%2 == 1})
		}
	}
	return list
}
