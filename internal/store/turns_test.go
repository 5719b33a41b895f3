package store

import (
	"fmt"
	"testing"

	"postern/internal/postern"
)

func writeOf(ws string, n int) request {
	return request{op: RecordInbound{Message: postern.Message{WorkspaceID: postern.WorkspaceID(ws), NetworkID: fmt.Sprint(n)}}, done: make(chan error, 1)}
}

func ownersOf(group []request) (n map[postern.WorkspaceID]int) {
	n = map[postern.WorkspaceID]int{}
	for _, r := range group {
		n[r.op.(owned).owner()]++
	}
	return n
}

// Whoever comes behind a flood is in the next group, and each workspace's writes
// keep their order.
func TestWorkspacesWriteInTurn(t *testing.T) {
	t.Parallel()
	q := newTurns()
	for n := range 100 {
		q.waiting = append(q.waiting, writeOf("flood", n))
	}
	q.waiting = append(q.waiting, writeOf("other", 0))
	q.seen["other"] = 1 // it wrote lately
	got := q.next()
	if n := ownersOf(got); n["flood"] != turnShare || n["other"] != 1 {
		t.Fatalf("the first group has %v", n)
	}
	for n := turnShare; len(q.waiting) > 0; {
		for _, r := range q.next() {
			if id := r.op.(RecordInbound).Message.NetworkID; id != fmt.Sprint(n) {
				t.Fatalf("write %s came in the place of %d", id, n)
			}
			n++
		}
	}
}

func TestAWorkspaceAloneHasTheWholeGroup(t *testing.T) {
	t.Parallel()
	q := newTurns()
	for n := range groupSize + 5 {
		q.waiting = append(q.waiting, writeOf("alone", n))
	}
	q.seen["gone"] = q.group - turnMemory
	if got := q.next(); len(got) != groupSize || len(q.waiting) != 5 {
		t.Errorf("the group has %d, %d wait", len(got), len(q.waiting))
	}
	if got := q.next(); len(got) != 5 || len(q.waiting) != 0 {
		t.Errorf("the next has %d, %d wait", len(got), len(q.waiting))
	}
}
