package page

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere is where forms lead that belong to a person and not to a workspace.
var elsewhere = regexp.MustCompile(`action=(\{ path\("(setup|join|account|operator)"|"/(signin|signout|workspace|account|operator)[/"])`)

// A form that changes something in a workspace says in which.
func TestFormsSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no templates: %v", err)
	}
	forms := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range strings.Split(string(text), "<form")[1:] {
			form, _, _ = strings.Cut(form, "</form>")
			if !strings.Contains(form, `method="post"`) || elsewhere.MatchString(form) {
				continue
			}
			if forms++; !strings.Contains(form, "@here()") {
				t.Errorf("%s: a form lacks @here(): <form%.120s", file, form)
			}
		}
	}
	if forms < 20 {
		t.Errorf("%d forms were found", forms)
	}
}
