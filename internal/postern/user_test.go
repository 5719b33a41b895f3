package postern

import (
	"slices"
	"strings"
	"testing"
)

func TestRolesCoverEachOtherInOrder(t *testing.T) {
	t.Parallel()
	for i, mine := range Roles() {
		for j, other := range Roles() {
			if mine.Covers(other) != (i <= j) {
				t.Errorf("%s covers %s: %v", mine, other, mine.Covers(other))
			}
		}
	}
	if Role("root").Covers(Viewer) || Owner.Covers("root") || Role("").Covers("") || Role("root").Scopes() != nil {
		t.Error("an unknown role may do something")
	}
}

func TestViewersReadAndAgentsAlsoAnswer(t *testing.T) {
	t.Parallel()
	for _, s := range Scopes() {
		if got := slices.Contains(Viewer.Scopes(), s); got != strings.HasSuffix(string(s), ":read") {
			t.Errorf("a viewer has %s: %v", s, got)
		}
		if got := slices.Contains(Agent.Scopes(), s); got != (s == MessagesWrite || strings.HasSuffix(string(s), ":read")) {
			t.Errorf("an agent has %s: %v", s, got)
		}
		if !slices.Contains(Developer.Scopes(), s) {
			t.Errorf("a developer lacks %s", s)
		}
	}
}
