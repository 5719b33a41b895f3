//go:build failpoints

package store

import (
	"testing"

	"postern/internal/failpoint"
	"postern/internal/postern"
)

// A program with fail points groups its hot writes as the released one does, so that the
// points and the saboteurs meet the same groups.
func TestFailPointsLeaveGroupsAsTheyAre(t *testing.T) {
	t.Parallel()
	db, ran := engine{postgres: true}.openTraced(t)
	s := stage{"mark", func(int) op {
		return pointInside(hot(&markSending{id: postern.NewMessageID()}), failpoint.SendBeforeCommit)
	}}
	if got := runStage(t, db, ran, s, 5); len(got) != 1 {
		t.Errorf("five writes have %d statements, want 1", len(got))
	}
}
