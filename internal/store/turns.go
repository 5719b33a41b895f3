package store

import (
	"maps"
	"slices"
	"time"

	"postern/internal/postern"
)

// turns shares the groups of the writer among workspaces. One that is alone gets
// all of a group. While several write, none gets much more of a group than the
// one with the least to write; whoever comes while a group of others is being
// written goes next and ends it; and one whose messages arrive in a flood rests
// between its groups. So a flood delays the others by a write and a commit now
// and then, however much of it is waiting.
type turns struct {
	turnRules

	waiting []request                   // in the order in which they came
	queued  map[postern.WorkspaceID]int // of them, those with an owner
	taken   map[postern.WorkspaceID]int // in the group at hand
	group   int                         // its number
	whole   bool                        // nobody has cut it
	seen    map[postern.WorkspaceID]visit
	resting map[postern.WorkspaceID]time.Time
}

// visit is when a workspace last handed over a write.
type visit struct {
	group int // the number of the group before
	at    time.Time
}

// turnRules are how much one workspace may have while several write.
type turnRules struct {
	share  int // writes in a group beside one of another
	length int // writes in a group otherwise
	rest   int // how many times as long as its group took its inbound messages wait
}

// rested is how long the messages of a flood wait after a group that took so long.
func (r turnRules) rested(took time.Duration) time.Duration {
	return min(time.Duration(r.rest)*took, maxRest)
}

// owned is a write of a workspace whose callers wait for it, so that others may
// go first.
type owned interface{ owner() postern.WorkspaceID }

func (o RecordInbound) owner() postern.WorkspaceID { return o.Message.WorkspaceID }
func (o QueueMessage) owner() postern.WorkspaceID  { return o.Message.WorkspaceID }

func newTurns(rules turnRules) turns {
	return turns{
		turnRules: rules, queued: map[postern.WorkspaceID]int{}, taken: map[postern.WorkspaceID]int{},
		seen: map[postern.WorkspaceID]visit{}, resting: map[postern.WorkspaceID]time.Time{},
	}
}

// add has a write wait for its turn.
func (q *turns) add(r request) {
	q.waiting = append(q.waiting, r)
	if o, is := bare(r.op).(owned); is {
		q.queued[o.owner()]++
		q.seen[o.owner()] = visit{q.group, time.Now()}
	}
}

// look says how many writes may be in a group now, whether somebody waits for
// one of them, and otherwise when the first of the others has rested.
func (q *turns) look(now time.Time) (ready int, hurry bool, rested time.Time) {
	for _, r := range q.waiting {
		if until := q.rests(r, now); until.IsZero() {
			ready++
			hurry = hurry || hurried(r)
		} else if rested.IsZero() || until.Before(rested) {
			rested = until
		}
	}
	return ready, hurry, rested
}

// rests says until when a write rests; zero when it does not.
func (q *turns) rests(r request, now time.Time) time.Time {
	o, is := bare(r.op).(RecordInbound)
	if !is || len(q.resting) == 0 {
		return time.Time{}
	}
	until := q.resting[o.owner()]
	if until.IsZero() || now.Before(until) {
		return until
	}
	delete(q.resting, o.owner())
	return time.Time{}
}

// next takes a new group from what waits.
func (q *turns) next(now time.Time) (group []request) {
	q.group++
	q.whole = true
	clear(q.taken)
	maps.DeleteFunc(q.seen, func(_ postern.WorkspaceID, v visit) bool {
		return v.group < q.group-turnMemory || now.Sub(v.at) > turnTime
	})
	most, waiting := q.most(now), q.waiting
	group, q.waiting = make([]request, 0, min(len(waiting), groupSize)), nil
	for _, r := range waiting {
		if len(group) < groupSize && q.rests(r, now).IsZero() && q.take(r, most) {
			group = append(group, r)
		} else {
			q.waiting = append(q.waiting, r)
		}
	}
	return group
}

// most is how much of a group one workspace may have. Who rests is not beside
// the others.
func (q *turns) most(now time.Time) int {
	least, beside := groupSize, 0
	for ws, n := range q.queued {
		if !now.Before(q.resting[ws]) {
			least, beside = min(least, n), beside+1
		}
	}
	switch {
	case beside > 1:
		return max(q.share, 2*least)
	case len(q.seen) > 1:
		return q.length
	}
	return groupSize
}

func (q *turns) take(r request, most int) bool {
	o, is := bare(r.op).(owned)
	if !is {
		return true
	}
	ws := o.owner()
	if q.taken[ws] >= most {
		return false
	}
	q.taken[ws]++
	if q.queued[ws]--; q.queued[ws] == 0 {
		delete(q.queued, ws)
	}
	return true
}

// cut looks, between two writes of a group, for workspaces that have just come.
// They go next, and what they cut off waits for the next group. A group is cut
// once: who comes then has not long to wait.
func (q *turns) cut(group []request, written int, in <-chan request) []request {
	if written == len(group) || !q.whole || !q.long() {
		return group // there is little to wait for
	}
	var first []request
	for range len(in) {
		r := <-in
		if ws, is := q.newcomer(r); is && len(first) < groupSize {
			q.taken[ws], q.seen[ws] = 1, visit{q.group, time.Now()}
			first = append(first, r)
		} else {
			q.add(r)
		}
	}
	if len(first) == 0 {
		return group
	}
	q.whole = false
	q.putBack(group[written:])
	return append(group[:written:written], first...)
}

// long tells whether one workspace has more of the group than beside another.
func (q *turns) long() bool {
	for _, n := range q.taken {
		if n > q.share {
			return true
		}
	}
	return false
}

// newcomer is the workspace of a write, if it has none in the group and none
// waiting.
func (q *turns) newcomer(r request) (ws postern.WorkspaceID, is bool) {
	o, is := bare(r.op).(owned)
	if !is {
		return "", false
	}
	ws = o.owner()
	return ws, q.taken[ws] == 0 && q.queued[ws] == 0
}

// putBack has writes wait again, before all others.
func (q *turns) putBack(list []request) {
	q.waiting = slices.Concat(list, q.waiting)
	for _, r := range list {
		if o, is := bare(r.op).(owned); is {
			q.taken[o.owner()]--
			q.queued[o.owner()]++
		}
	}
}

// tire has workspaces rest whose inbound messages were much of a group that took
// so long, if others have written lately.
func (q *turns) tire(group []request, now time.Time, took time.Duration) {
	if len(q.seen) < 2 || q.rest == 0 {
		return
	}
	inbound := map[postern.WorkspaceID]int{}
	for _, r := range group {
		if o, is := bare(r.op).(RecordInbound); is {
			inbound[o.owner()]++
		}
	}
	for ws, n := range inbound {
		if n > q.share {
			q.resting[ws] = now.Add(q.rested(took))
		}
	}
}
