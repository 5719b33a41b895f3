package chaos

import "slices"

// Followed is what a reader that follows the log with a stream was sent: the ids of events, of which the first
// one is the place where it began.
type Followed []string

// Woken says how often a change that one server committed had to wake another one, each after the one before
// had, and how often that one looked at everything meanwhile because of its clock.
type Woken struct{ Asked, Polled int }

// followed checks that a reader that follows the log passed over no event.
func (j *judging) followed() {
	if len(j.Followed) == 0 {
		return
	}
	read := map[string]bool{}
	for _, id := range j.Followed {
		read[id] = true
	}
	begin := slices.IndexFunc(j.State.Events, func(e Event) bool { return e.ID == j.Followed[0] })
	for _, e := range j.State.Events[begin+1:] {
		if !read[e.ID] {
			j.report(Skipped, e.ID, "%s is in the log, and a reader that followed it was not sent it", e.Type)
		}
	}
}

// woken checks that changes wake other servers, and are not only found because the servers look now and then.
// Each look finds one change at most, because there is no other before it was found.
func (j *judging) woken() {
	if w := j.Woken; w.Asked > 0 && w.Polled >= w.Asked {
		j.report(WokenLate, "", "%d changes were noticed one after the other while the server looked %d times by itself",
			w.Asked, w.Polled)
	}
}
