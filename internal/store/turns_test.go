package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"postern/internal/postern"
)

func writeOf(ws string, n int) request {
	return request{op: RecordInbound{Message: postern.Message{WorkspaceID: postern.WorkspaceID(ws), NetworkID: fmt.Sprint(n)}}, done: make(chan error, 1)}
}

// turnsWith has writes of workspaces wait, each as many as are named.
func turnsWith(rules turnRules, writes map[string]int) *turns {
	q := newTurns(rules)
	for ws, n := range writes {
		for i := range n {
			q.add(writeOf(ws, i))
		}
	}
	return &q
}

func ownersOf(group []request) (n map[string]int) {
	n = map[string]int{}
	for _, r := range group {
		n[string(r.op.(owned).owner())]++
	}
	return n
}

func orderOf(group []request, ws string) (list []string) {
	for _, r := range group {
		if m := r.op.(RecordInbound).Message; string(m.WorkspaceID) == ws {
			list = append(list, m.NetworkID)
		}
	}
	return list
}

var localRules = turnRules{share: 2, length: 8, rest: 12}

// Whoever has little to write is in the next group, which a flood does not make
// long, and each workspace's writes keep their order.
func TestWorkspacesWriteInTurn(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"flood": 100, "other": 1})
	first := q.next(time.Now())
	if n := ownersOf(first); n["flood"] != 2 || n["other"] != 1 {
		t.Fatalf("the first group has %v", n)
	}
	second := q.next(time.Now())
	if n := ownersOf(second); n["flood"] != 8 || len(n) != 1 {
		t.Fatalf("the second group has %v", n)
	}
	if got := orderOf(slices.Concat(first, second, q.waiting), "flood"); len(got) != 100 || !slices.IsSortedFunc(got, byNumber) {
		t.Errorf("the flood is written in the order %v", got)
	}
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

func TestTwoThatWriteMuchShareALongGroup(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"a": 32, "b": 40})
	if n := ownersOf(q.next(time.Now())); n["a"] != 32 || n["b"] != 40 {
		t.Errorf("the group has %v", n)
	}
}

func TestAWorkspaceAloneHasTheWholeGroup(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"alone": groupSize + 5})
	q.seen["gone"] = visit{q.group - turnMemory, time.Now()}
	if got := q.next(time.Now()); len(got) != groupSize || len(q.waiting) != 5 {
		t.Errorf("the group has %d, %d wait", len(got), len(q.waiting))
	}
	if got := q.next(time.Now()); len(got) != 5 || len(q.waiting) != 0 {
		t.Errorf("the next has %d, %d wait", len(got), len(q.waiting))
	}
}

// Who comes while a long group is written goes next and ends it; nothing of it is
// lost, and those of the group that come meanwhile stay behind the others.
func TestWhoComesCutsAGroupShort(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"flood": 20})
	group := q.next(time.Now())
	in := make(chan request, 4)
	if got := q.cut(group, 5, in); len(got) != 20 {
		t.Fatalf("nobody came, and the group has %d", len(got))
	}
	in <- writeOf("flood", 20)
	in <- writeOf("other", 0)
	in <- writeOf("other", 1)
	group = q.cut(group, 5, in)
	if n := ownersOf(group); n["flood"] != 5 || n["other"] != 1 || len(group) != 6 {
		t.Errorf("the group is cut to %v", n)
	}
	if got := ownersOf(q.waiting); got["flood"] != 16 || got["other"] != 1 || q.queued["flood"] != 16 || q.queued["other"] != 1 {
		t.Errorf("there wait %v, counted as %v", got, q.queued)
	}
	if got := orderOf(slices.Concat(group, q.waiting), "flood"); len(got) != 21 || !slices.IsSortedFunc(got, byNumber) {
		t.Errorf("the flood is written in the order %v", got)
	}
}

func TestAShortGroupIsNotCut(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"a": 2, "b": 2})
	group := q.next(time.Now())
	in := make(chan request, 1)
	in <- writeOf("other", 0)
	if got := q.cut(group, 1, in); len(got) != 4 || len(in) != 1 {
		t.Errorf("the group has %d, %d have not been looked at", len(got), len(in))
	}
}

// Inbound messages of a flood rest between their groups, while others write;
// nothing else of the workspace does.
func TestAFloodRests(t *testing.T) {
	t.Parallel()
	q, now := turnsWith(localRules, map[string]int{"flood": 20, "other": 1}), time.Now()
	q.next(now)
	q.tire(q.next(now), now, time.Millisecond)
	if ready, _, rested := q.look(now); ready != 0 || !rested.Equal(now.Add(localRules.rested(time.Millisecond))) {
		t.Fatalf("%d are ready, the others in %v", ready, rested.Sub(now))
	}
	q.add(request{op: QueueMessage{Message: postern.Message{WorkspaceID: "flood"}}, done: make(chan error, 1)})
	if group := q.next(now); len(group) != 1 || len(q.waiting) != 10 {
		t.Errorf("while it rests %d are written and %d wait", len(group), len(q.waiting))
	}
	if ready, hurry, _ := q.look(now.Add(localRules.rested(time.Millisecond))); ready != 10 || !hurry {
		t.Errorf("rested: %d are ready, hurry %v", ready, hurry)
	}
	q.tire(q.next(now.Add(localRules.rested(time.Millisecond))), now, time.Hour)
	if _, _, rested := q.look(now); rested.Sub(now) != maxRest {
		t.Errorf("after a slow group it rests %v", rested.Sub(now))
	}
}

func TestWhoIsAloneNeverRests(t *testing.T) {
	t.Parallel()
	q, now := turnsWith(localRules, map[string]int{"alone": 300}), time.Now()
	q.tire(q.next(now), now, time.Second)
	if ready, _, _ := q.look(now); ready != 300-groupSize {
		t.Errorf("%d are ready", ready)
	}
}

// Two that write much have a long group, though a flood that rests has a few
// waiting.
func TestWhoRestsMakesNobodysShareSmall(t *testing.T) {
	t.Parallel()
	q, now := turnsWith(localRules, map[string]int{"a": 32, "b": 40, "flood": 3}), time.Now()
	q.resting["flood"] = now.Add(time.Millisecond)
	if n := ownersOf(q.next(now)); n["a"] != 32 || n["b"] != 40 || n["flood"] != 0 {
		t.Errorf("the group has %v", n)
	}
}

// Whoever has cut a group is not cut off by those that come after.
func TestAGroupIsCutOnce(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"flood": 20})
	in := make(chan request, 4)
	in <- writeOf("n1", 0)
	in <- writeOf("n2", 0)
	group := q.cut(q.next(time.Now()), 5, in)
	in <- writeOf("n3", 0)
	group = q.cut(group, 6, in)
	if n := ownersOf(group); n["flood"] != 5 || n["n1"] != 1 || n["n2"] != 1 || n["n3"] != 0 {
		t.Errorf("the group has %v", n)
	}
	if len(in) != 1 {
		t.Error("n3 is not left for the next group")
	}
}

// What others wrote a second ago gives nobody small groups.
func TestWhoHasBeenAloneForASecondIsAlone(t *testing.T) {
	t.Parallel()
	q := turnsWith(localRules, map[string]int{"other": 1})
	q.next(time.Now())
	later := time.Now().Add(turnTime + time.Second)
	for i := range 300 {
		q.add(writeOf("flood", i))
	}
	if n := len(q.next(later)); n != groupSize {
		t.Errorf("the group has %d", n)
	}
	q.tire(nil, later, time.Second)
	if ready, _, _ := q.look(later); ready != 300-groupSize {
		t.Errorf("%d are ready", ready)
	}
}
