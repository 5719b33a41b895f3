package reference

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// TestLinksBetweenFilesAreServed: only a few links, in pages for those who read the code, become plain text.
func TestLinksBetweenFilesAreServed(t *testing.T) {
	t.Parallel()
	unserved := map[string]bool{
		"docs/decisions/0007-passkeys.md: ../../vendorsim/pairing.go": true,
		"docs/real-phone-check.md: ../README.md":                      true,
	}
	pages, seen := served(), 0
	for _, name := range pages {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		walk(markdown().Parser().Parse(text.NewReader(source(name))), func(n ast.Node) {
			l, is := n.(*ast.Link)
			if !is {
				return
			}
			seen++
			link := name + ": " + string(l.Destination)
			if _, ok := target(name, string(l.Destination), pages); !ok && !unserved[link] {
				t.Errorf("%s is not served", link)
			}
		})
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}
