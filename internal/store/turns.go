package store

import (
	"maps"

	"postern/internal/postern"
)

// turns shares the groups of the writer among workspaces: while several write, a
// group takes a few writes of each, and the others wait for the next. So one that
// floods delays nobody by more than a group, and alone it gets all of it.
type turns struct {
	waiting []request // in the order in which they came
	group   int       // the number of the group at hand
	seen    map[postern.WorkspaceID]int
	taken   map[postern.WorkspaceID]int // in the group at hand
}

// owned is a write of a workspace whose callers wait for it, so that others may
// go first.
type owned interface{ owner() postern.WorkspaceID }

func (o RecordInbound) owner() postern.WorkspaceID { return o.Message.WorkspaceID }
func (o QueueMessage) owner() postern.WorkspaceID  { return o.Message.WorkspaceID }

func newTurns() turns {
	return turns{seen: map[postern.WorkspaceID]int{}, taken: map[postern.WorkspaceID]int{}}
}

// next takes from what waits for a new group.
func (q *turns) next() (group []request) {
	q.group++
	clear(q.taken)
	maps.DeleteFunc(q.seen, func(_ postern.WorkspaceID, group int) bool { return group < q.group-turnMemory })
	group = make([]request, 0, groupSize)
	waiting := q.waiting
	q.waiting = nil
	for i, r := range waiting {
		if len(group) == groupSize {
			q.waiting = append(q.waiting, waiting[i:]...)
			break
		}
		group = q.add(group, r)
	}
	return group
}

// add adds a write to the group, or has it wait.
func (q *turns) add(group []request, r request) []request {
	o, is := r.op.(owned)
	if !is {
		return append(group, r)
	}
	ws := o.owner()
	q.seen[ws] = q.group
	if len(q.seen) > 1 && q.taken[ws] >= turnShare {
		q.waiting = append(q.waiting, r)
		return group
	}
	q.taken[ws]++
	return append(group, r)
}
