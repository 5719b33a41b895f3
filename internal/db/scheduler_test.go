package db

import (
	"slices"
	"testing"
	"time"
)

// numbered is a write that remembers its place among those of its workspace.
type numbered struct {
	workspace string
	urgency   Urgency
	n         int
}

func (w numbered) About() About { return About{Workspace: w.workspace, Urgency: w.urgency} }

func (numbered) WriteAll(*Tx, []Pending[numbered]) error { return nil }

func requestOf(w numbered) request {
	r := newRequest(Item(w))
	r.done = make(chan error, 1)
	return r
}

func writeOf(ws string, n int) request { return requestOf(numbered{ws, Flood, n}) }

// schedulerWith has writes of workspaces wait, each as many as are named.
func schedulerWith(rules sharing, writes map[string]int) *scheduler {
	q := newScheduler(rules)
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
		n[r.about.Workspace]++
	}
	return n
}

func orderOf(group []request, ws string) (list []int) {
	for _, r := range group {
		if r.about.Workspace == ws {
			list = append(list, r.write.(item[numbered]).value.n)
		}
	}
	return list
}

var localRules = sharing{share: 2, length: 8, rest: 12}

// A workspace with little to write is in the next group, which a flood does not make long,
// and each workspace's writes keep their order.
func TestWorkspacesTakeTurns(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"flood": 100, "other": 1})
	first := q.next(time.Now())
	if n := ownersOf(first); n["flood"] != 2 || n["other"] != 1 {
		t.Fatalf("the first group has %v", n)
	}
	second := q.next(time.Now())
	if n := ownersOf(second); n["flood"] != 8 || len(n) != 1 {
		t.Fatalf("the second group has %v", n)
	}
	if got := orderOf(slices.Concat(first, second, q.waiting), "flood"); len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("the flood is written in the order %v", got)
	}
}

func TestTwoThatWriteMuchShareALongGroup(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"a": 32, "b": 40})
	if n := ownersOf(q.next(time.Now())); n["a"] != 32 || n["b"] != 40 {
		t.Errorf("the group has %v", n)
	}
}

func TestAWorkspaceAloneHasTheWholeGroup(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"alone": groupSize + 5})
	q.seen["gone"] = visit{q.group - activeGroups, time.Now()}
	if got := q.next(time.Now()); len(got) != groupSize || len(q.waiting) != 5 {
		t.Errorf("the group has %d, %d wait", len(got), len(q.waiting))
	}
	if got := q.next(time.Now()); len(got) != 5 || len(q.waiting) != 0 {
		t.Errorf("the next has %d, %d wait", len(got), len(q.waiting))
	}
}

// A workspace that comes while a long group is written goes next and cuts it short. Nothing
// of the group is lost, and its workspace's new writes stay behind its others.
func TestNewcomerCutsAGroupShort(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"flood": 20})
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
	if got := ownersOf(q.waiting); got["flood"] != 16 || got["other"] != 1 || q.queued["flood"] != 16 ||
		q.queued["other"] != 1 {
		t.Errorf("there wait %v, counted as %v", got, q.queued)
	}
	if got := orderOf(slices.Concat(group, q.waiting), "flood"); len(got) != 21 || !slices.IsSorted(got) {
		t.Errorf("the flood is written in the order %v", got)
	}
}

// Writes that take no turns make a group long as well.
func TestNewcomerCutsAGroupOfWritesInOrder(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, nil)
	for i := range 20 {
		q.add(requestOf(numbered{"", InOrder, i}))
	}
	in := make(chan request, 1)
	in <- writeOf("other", 0)
	group := q.cut(q.next(time.Now()), 5, in)
	if n := ownersOf(group); n["other"] != 1 || len(group) != 6 {
		t.Errorf("the group is cut to %v", n)
	}
	if got := unshared(slices.Concat(group, q.waiting)); len(got) != 20 || !slices.IsSorted(got) {
		t.Errorf("they are written in the order %v", got)
	}
}

func TestAShortGroupIsNotCut(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"a": 2, "b": 2})
	group := q.next(time.Now())
	in := make(chan request, 1)
	in <- writeOf("other", 0)
	if got := q.cut(group, 1, in); len(got) != 4 || len(in) != 1 {
		t.Errorf("the group has %d, %d have not been looked at", len(got), len(in))
	}
}

// unshared returns the writes of a list that take no turns.
func unshared(list []request) (numbers []int) {
	for _, r := range list {
		if !r.about.Urgency.shared() {
			numbers = append(numbers, r.write.(item[numbered]).value.n)
		}
	}
	return numbers
}

// Writes that take no turns keep their order, whatever floods, newcomers and full groups
// are between them. They wait for no flood.
func TestWritesInOrderKeepTheirOrder(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"other": 1})
	const writes = groupSize + 20
	for i := range writes {
		q.add(requestOf(numbered{"", []Urgency{InOrder, Patient}[i%2], i}))
		q.add(writeOf("flood", i))
	}
	in := make(chan request, 1)
	in <- writeOf("newcomer", 0)
	first := q.next(time.Now())
	if n := ownersOf(first); n[""] != groupSize-3 || n["flood"] != localRules.share {
		t.Errorf("the first group has %v: the flood takes no more than its share", n)
	}
	first = q.cut(first, 10, in)
	second := q.next(time.Now())
	got := unshared(slices.Concat(first, second, q.waiting))
	if len(got) != writes || !slices.IsSorted(got) {
		t.Errorf("they are written in the order %v", got)
	}
	if n := ownersOf(first); n["newcomer"] != 1 || len(first) != 11 {
		t.Errorf("the first group was cut to %v", n)
	}
}

// While a flood pauses, its workspace's Fair writes overtake it, and their own order stays.
func TestFairWritesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"other": 1})
	for i := range 40 {
		q.add(requestOf(numbered{"ws", []Urgency{Flood, Fair}[i%2], i}))
	}
	q.resting["ws"] = time.Now().Add(time.Hour)
	first := q.next(time.Now())
	delete(q.resting, "ws")
	got := orderOf(slices.Concat(first, q.next(time.Now()), q.next(time.Now()), q.waiting), "ws")
	fair := slices.DeleteFunc(slices.Clone(got), func(n int) bool { return n%2 == 0 })
	flood := slices.DeleteFunc(slices.Clone(got), func(n int) bool { return n%2 == 1 })
	if len(fair) != 20 || len(flood) != 20 || !slices.IsSorted(fair) || !slices.IsSorted(flood) {
		t.Errorf("they are written in the order %v", got)
	}
	if ready := orderOf(first, "ws"); len(ready) == 0 || ready[0] != 1 {
		t.Errorf("while it pauses, %v are written", ready)
	}
}

// A flood pauses between its groups while others write; nothing else of its workspace does.
func TestAFloodPauses(t *testing.T) {
	t.Parallel()
	q, now := schedulerWith(localRules, map[string]int{"flood": 20, "other": 1}), time.Now()
	q.next(now)
	q.tire(q.next(now), now, time.Millisecond)
	if ready, _, rested := q.look(now); ready != 0 || !rested.Equal(now.Add(localRules.rested(time.Millisecond))) {
		t.Fatalf("%d are ready, the others in %v", ready, rested.Sub(now))
	}
	q.add(requestOf(numbered{"flood", Fair, 0}))
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

func TestAWorkspaceAloneNeverPauses(t *testing.T) {
	t.Parallel()
	q, now := schedulerWith(localRules, map[string]int{"alone": 300}), time.Now()
	q.tire(q.next(now), now, time.Second)
	if ready, _, _ := q.look(now); ready != 300-groupSize {
		t.Errorf("%d are ready", ready)
	}
}

// Two workspaces that write much have a long group, even if a flood that pauses has a few
// writes waiting.
func TestPausingWorkspaceMakesNoShareSmaller(t *testing.T) {
	t.Parallel()
	q, now := schedulerWith(localRules, map[string]int{"a": 32, "b": 40, "flood": 3}), time.Now()
	q.resting["flood"] = now.Add(time.Millisecond)
	if n := ownersOf(q.next(now)); n["a"] != 32 || n["b"] != 40 || n["flood"] != 0 {
		t.Errorf("the group has %v", n)
	}
}

// A workspace that has cut a group is not cut off by those that come after it.
func TestAGroupIsCutOnce(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"flood": 20})
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

// What others wrote a second ago makes no groups smaller.
func TestAWorkspaceAloneForASecondIsAlone(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"other": 1})
	q.next(time.Now())
	later := time.Now().Add(activeTime + time.Second)
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

// A queue that is full takes no more writes out of the hands of their callers.
func TestAFullQueueTakesNoMore(t *testing.T) {
	t.Parallel()
	q := schedulerWith(localRules, map[string]int{"flood": queueLength + groupSize - 1})
	group := q.next(time.Now())
	in := make(chan request, 2)
	in <- writeOf("flood", 0)
	in <- writeOf("flood", 1)
	if q.cut(group, 5, in); len(q.waiting) != queueLength || len(in) != 1 {
		t.Errorf("%d wait and %d have been left to their callers", len(q.waiting), len(in))
	}
}

// What callers of a workspace do takes turns with the writes of others, also if it happens rarely.
func TestRareWritesOfCallersTakeTurns(t *testing.T) {
	t.Parallel()
	q := newScheduler(localRules)
	for _, ws := range []string{"many", "other"} {
		for range map[string]int{"many": 100, "other": 1}[ws] {
			r := newRequest(FuncOf(ws, func(*Tx) error { return nil }))
			q.add(r)
		}
	}
	if n := ownersOf(q.next(time.Now())); n["many"] != 2 || n["other"] != 1 {
		t.Errorf("the group has %v", n)
	}
}
