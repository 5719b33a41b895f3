package problem

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"postern/internal/postern"
)

// given finds where the sources give a reason for a state.
var given = regexp.MustCompile(`(?:disconnected|\.fail|setFailure|RefusedError|failLink|[eE]ndLink)\([^"\n]*"([^"]+)"` +
	`|(?:Reason|Disable|PlanLimit|pausedByUser|wrongChallenge)(?::| =) *"([^"]+)"` +
	`|status_reason = '([^']+)'|StatusReason(?:, \w+\.\w+)* = [\w.]+, "([^"]+)"`)

// returned finds where a function of ended.go returns a reason.
var returned = regexp.MustCompile(`(?m)^\t+return "([^"]+)"$`)

// TestEveryReasonOfAStateIsListed reads the reasons from the sources that give them. A
// reason that contains a code or a time cannot be listed.
func TestEveryReasonOfAStateIsListed(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, dir := range []string{"network/whatsapp", "session", "gateway", "store", "webhook", "egress"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := given.FindAllStringSubmatch(string(text), -1)
			if filepath.Base(file) == "ended.go" {
				found = append(found, returned.FindAllStringSubmatch(string(text), -1)...)
			}
			for _, m := range found {
				seen++
				if reason := strings.Join(m[1:], ""); states[reason].Title == "" {
					t.Errorf("%s gives the reason %q, which has no row in states", file, reason)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d reasons were found in the sources", seen)
	}
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for reason, s := range states {
		_, refusal := table[postern.Reason(reason)]
		if !form.MatchString(reason) || refusal || s.Title == "" || s.Means == "" || s.Do == "" || !s.Session && !s.Endpoint {
			t.Errorf("the reason %q has the row %+v, or is that of a refusal too", reason, s)
		}
	}
}
