package postern_test

import (
	"os"
	"strings"
	"testing"
)

// TestEveryDirectDependencyHasALine compares go.mod with the page of decisions.
func TestEveryDirectDependencyHasALine(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/decisions/0019-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(mod)) {
		module, _, ok := strings.Cut(strings.TrimSpace(line), " v")
		if !ok || strings.Contains(line, "// indirect") {
			continue
		}
		direct++
		if !strings.Contains(string(page), "| `"+module+"`") {
			t.Errorf("%s has no line in docs/decisions/0019-dependencies.md", module)
		}
	}
	if direct == 0 {
		t.Error("no dependencies were found in go.mod")
	}
}
