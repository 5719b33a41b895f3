package db

import (
	"maps"
	"slices"
	"time"
)

// scheduler shares the groups of the writer among workspaces. A workspace that is alone
// gets whole groups. While several write, none gets much more of a group than the one
// with the least to write; a workspace that comes while a long group of others is being
// written goes next and cuts it short; and a workspace whose messages arrive in a flood
// pauses between its groups. So a flood delays the others by a write and a commit now
// and then, however much of it is waiting.
type scheduler struct {
	sharing

	waiting []request      // in the order in which they came
	queued  map[string]int // shared writes among them, by workspace
	taken   map[string]int // shared writes in the group at hand, by workspace
	others  int            // further writes in the group at hand
	group   int            // number of the group at hand
	whole   bool           // the group was not cut
	seen    map[string]visit
	resting map[string]time.Time
}

// visit is when a workspace last handed over a write.
type visit struct {
	group int // number of the group before
	at    time.Time
}

// sharing says how much one workspace may have while several write.
type sharing struct {
	share  int // writes in a group beside one write of another workspace
	length int // writes in a group otherwise
	rest   int // how many times as long as its group took a flood pauses
}

// rested is how long a flood pauses after a group that took so long.
func (r sharing) rested(took time.Duration) time.Duration {
	return min(time.Duration(r.rest)*took, maxRest)
}

func newScheduler(rules sharing) scheduler {
	return scheduler{
		sharing: rules, queued: map[string]int{}, taken: map[string]int{},
		seen: map[string]visit{}, resting: map[string]time.Time{},
	}
}

// owner is the workspace of a shared write.
func (r *request) owner() (workspace string, shared bool) {
	return r.about.Workspace, r.about.Urgency.shared()
}

// room is how many more writes may wait.
func (q *scheduler) room() int { return max(0, queueLength-len(q.waiting)) }

// add queues a write.
func (q *scheduler) add(r request) {
	q.waiting = append(q.waiting, r)
	if ws, shared := r.owner(); shared {
		q.queued[ws]++
		q.seen[ws] = visit{q.group, time.Now()}
	}
}

// look returns how many writes may be in a group now, whether somebody waits for one of
// them, and otherwise when the first of the others has paused long enough.
func (q *scheduler) look(now time.Time) (ready int, hurry bool, rested time.Time) {
	for i := range q.waiting {
		if until := q.rests(q.waiting[i], now); until.IsZero() {
			ready++
			hurry = hurry || q.waiting[i].hurried()
		} else if rested.IsZero() || until.Before(rested) {
			rested = until
		}
	}
	return ready, hurry, rested
}

// rests returns until when a write pauses; zero when it does not.
func (q *scheduler) rests(r request, now time.Time) time.Time {
	if len(q.resting) == 0 || r.about.Urgency != Flood {
		return time.Time{}
	}
	ws, _ := r.owner()
	until := q.resting[ws]
	if until.IsZero() || now.Before(until) {
		return until
	}
	delete(q.resting, ws)
	return time.Time{}
}

// next takes a new group from what waits.
func (q *scheduler) next(now time.Time) (group []request) {
	q.group++
	q.whole = true
	clear(q.taken)
	q.others = 0
	maps.DeleteFunc(q.seen, func(_ string, v visit) bool {
		return v.group < q.group-activeGroups || now.Sub(v.at) > activeTime
	})
	return q.fill(make([]request, 0, min(len(q.waiting), groupSize)), now)
}

// fill adds to the group at hand what may be in it of what waits.
func (q *scheduler) fill(group []request, now time.Time) []request {
	most, waiting := q.most(now), q.waiting
	q.waiting = nil
	for _, r := range waiting {
		if len(group) < groupSize && q.rests(r, now).IsZero() && q.take(r, most) {
			group = append(group, r)
		} else {
			q.waiting = append(q.waiting, r)
		}
	}
	return group
}

// most is how much of a group one workspace may have. A pausing workspace does not count.
func (q *scheduler) most(now time.Time) int {
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

func (q *scheduler) take(r request, most int) bool {
	ws, shared := r.owner()
	if !shared {
		q.others++
		return true
	}
	if q.taken[ws] >= most {
		return false
	}
	q.taken[ws]++
	if q.queued[ws]--; q.queued[ws] == 0 {
		delete(q.queued, ws)
	}
	return true
}

// cut looks, between two writes of a group, for workspaces that have just come. They go
// next, and the rest of the group waits for the next one. A group is cut once: those who
// come after that do not have long to wait.
func (q *scheduler) cut(group []request, written int, in <-chan request) []request {
	if written == len(group) || !q.whole || !q.long() {
		return group // there is little to wait for
	}
	var first []request
	for range min(len(in), q.room()) {
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

// long tells whether one workspace has more of the group than it would beside another, or
// the writes that take no turns are many.
func (q *scheduler) long() bool {
	if q.others > q.length {
		return true
	}
	for _, n := range q.taken {
		if n > q.share {
			return true
		}
	}
	return false
}

// newcomer returns the workspace of a write, if that has no other write in the group or
// waiting.
func (q *scheduler) newcomer(r request) (ws string, is bool) {
	ws, shared := r.owner()
	return ws, shared && q.taken[ws] == 0 && q.queued[ws] == 0
}

// putBack queues writes again, before all others.
func (q *scheduler) putBack(list []request) {
	q.waiting = slices.Concat(list, q.waiting)
	for _, r := range list {
		if ws, shared := r.owner(); shared {
			q.taken[ws]--
			q.queued[ws]++
		}
	}
}

// tire makes workspaces pause whose flood was much of a group that took so long, if
// others have written lately.
func (q *scheduler) tire(group []request, now time.Time, took time.Duration) {
	if len(q.seen) < 2 || q.rest == 0 {
		return
	}
	flood := map[string]int{}
	for _, r := range group {
		if r.about.Urgency == Flood {
			flood[r.about.Workspace]++
		}
	}
	for ws, n := range flood {
		if n > q.share {
			q.resting[ws] = now.Add(q.rested(took))
		}
	}
}
