package reference

import (
	"reflect"
	"testing"

	root "postern"
)

func TestSectionsOfAChangelog(t *testing.T) {
	t.Parallel()
	got, err := sectionsOf(
		"# Changelog\n\nAll of it.\n\n## 0.1.0\n\n- `GET /v1/x` shows <x>. <!-- api:new -->\n- Second.\n")
	want := []section{
		{Texts: [][]span{{{"All of it.", false}}}},
		{Version: "0.1.0", Changes: [][]span{{{"GET /v1/x", true}, {" shows <x>.", false}}, {{"Second.", false}}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v", got, err)
	}
	for _, line := range []string{"  - nested", "* other list", "### deeper", "| table |", "1. first", "<b>raw</b>", "```"} {
		if _, err := sectionsOf(line); err == nil {
			t.Errorf("%q is taken for a paragraph", line)
		}
	}
	if _, err := sectionsOf(root.Changelog); err != nil {
		t.Error(err)
	}
}
