package chaos

import (
	"fmt"
	"slices"
	"strconv"
)

// What the judge of a flat-out run can find beside the other rules of
// deliveries.
const (
	Unsubscribed     Rule = "4-unsubscribed"      // posted to an endpoint that does not ask for it
	WrongAttempt     Rule = "4-wrong-attempt"     // attempts are not 1, 2, 3, … up to a success, or not those of the delivery log
	RepeatedUnkilled Rule = "4-repeated-unkilled" // the same attempt came twice from one process
	RepeatedRecorded Rule = "4-repeated-recorded" // an attempt came again although its outcome was in the database
	TooManyRepeats   Rule = "4-too-many-repeats"  // more came again after a kill than an endpoint may have in flight
)

// FlatOut is all that the judge of a flat-out run looks at: deliveries to
// several endpoints, and the gateway killed in the middle of them.
type FlatOut struct {
	Endpoints []Endpoint
	Posts     []Post  // in the order in which they came
	Kills     []Tally // Unrecorded at each; it ended the life of its index
	State     State   // after all had settled and the gateway was stopped
}

// Endpoint is one that is delivered to.
type Endpoint struct {
	ID          string
	MaxInFlight int
	Types       []string // of events that it asks for; nil: all
}

func (e Endpoint) wants(kind string) bool { return e.Types == nil || slices.Contains(e.Types, kind) }

// bound is what may be in flight at once: attempts that are open, and as many
// that were answered and are not recorded yet.
func (e Endpoint) bound() int { return 2 * e.MaxInFlight }

// Tally counts attempts by endpoint.
type Tally map[string]int

// Sum is the number for all endpoints.
func (c Tally) Sum() (n int) {
	for _, one := range c {
		n += one
	}
	return n
}

// Unrecorded counts the attempts that came in one life and are not in the
// database after it, of which these deliveries are pending.
func Unrecorded(posts []Post, pending []Delivery) Tally {
	recorded := make(map[destination]int, len(pending))
	for _, d := range pending {
		recorded[destination{d.Endpoint, d.EventID}] = d.Attempts
	}
	met := Tally{}
	for _, p := range posts {
		n, ok := recorded[p.destination()]
		if number, err := strconv.Atoi(p.Attempt); ok && err == nil && number > n {
			met[p.Endpoint]++
		}
	}
	return met
}

// destination is an event on its way to an endpoint.
type destination struct{ endpoint, event string }

func (d destination) String() string { return d.event + " at " + d.endpoint }

func (p Post) destination() destination { return destination{p.Endpoint, p.EventID} }

// Repeats counts what came again after each kill, by endpoint: the attempt that
// had come last, once more.
func (e FlatOut) Repeats() []Tally {
	repeats := make([]Tally, len(e.Kills))
	last := map[destination]Post{}
	for _, p := range e.Posts {
		before, again := last[p.destination()]
		last[p.destination()] = p
		if !again || before.Attempt != p.Attempt || before.Life == p.Life {
			continue
		}
		if repeats[before.Life] == nil {
			repeats[before.Life] = Tally{}
		}
		repeats[before.Life][p.Endpoint]++
	}
	return repeats
}

// flatOut is one such case with its indexes.
type flatOut struct {
	FlatOut
	findings

	came       map[destination][]Post
	deliveries map[destination]Delivery
}

// JudgeFlatOut compares what came to the endpoints with the database, and gives
// what is broken in the order of the rules.
func JudgeFlatOut(e FlatOut) []Violation {
	j := &flatOut{FlatOut: e, came: map[destination][]Post{}, deliveries: map[destination]Delivery{}}
	for _, d := range e.State.Deliveries {
		j.deliveries[destination{d.Endpoint, d.EventID}] = d
	}
	j.posts()
	j.events()
	j.repeats()
	return j.sorted()
}

// posts looks at each POST by itself.
func (j *flatOut) posts() {
	logged := make(map[string]Event, len(j.State.Events))
	for _, e := range j.State.Events {
		logged[e.ID] = e
	}
	asks := map[string]Endpoint{}
	for _, e := range j.Endpoints {
		asks[e.ID] = e
	}
	for _, p := range j.Posts {
		if p.Wrong != "" {
			j.report(BadPost, p.EventID, "%s", p.Wrong)
		}
		if p.Type == "webhook.verification" {
			continue
		}
		switch e, ok := logged[p.EventID]; {
		case !ok:
			j.report(NotInLog, p.EventID, "%s", p.Type)
		case e.SHA256 != p.SHA256:
			j.report(ChangedBytes, p.EventID, "attempt %s carried other bytes to %s than the log holds", p.Attempt, p.Endpoint)
		case !asks[p.Endpoint].wants(e.Type):
			j.report(Unsubscribed, p.EventID, "%s came to %s", e.Type, p.Endpoint)
		}
		j.came[p.destination()] = append(j.came[p.destination()], p)
	}
}

// events looks at the way of each event to each endpoint that asks for it.
func (j *flatOut) events() {
	for _, e := range j.State.Events {
		for _, endpoint := range j.Endpoints {
			if endpoint.wants(e.Type) {
				j.delivered(destination{endpoint.ID, e.ID})
			}
		}
	}
}

func (j *flatOut) delivered(to destination) {
	d, ok := j.deliveries[to]
	if !ok {
		j.report(NoDelivery, to.String(), "")
		return
	}
	taken := slices.ContainsFunc(j.came[to], func(p Post) bool { return p.Answer/100 == 2 })
	if d.Status != "succeeded" || !taken {
		j.report(Undelivered, to.String(), "the delivery is %s; answered with 2xx: %v", d.Status, taken)
	}
	if n := j.attempts(to); taken && n != d.Attempts {
		j.report(WrongAttempt, to.String(), "the last to come was %d, the log tells of %d", n, d.Attempts)
	}
}

// attempts follows the attempts of a delivery, and gives the number of the last.
func (j *flatOut) attempts(to destination) (last int) {
	var before Post
	for _, p := range j.came[to] {
		number, err := strconv.Atoi(p.Attempt)
		switch {
		case last > 0 && number == last && p.Life == before.Life:
			j.report(RepeatedUnkilled, to.String(), "attempt %d came twice in life %d", number, p.Life)
		case last > 0 && number == last: // it was in flight at a kill, or Repeats finds too many
		case err != nil || number != last+1:
			j.report(WrongAttempt, to.String(), "%q came after %d", p.Attempt, last)
		case before.Answer/100 == 2:
			j.report(WrongAttempt, to.String(), "%d came after %d was answered with %d", number, last, before.Answer)
		}
		last, before = number, p
	}
	return last
}

// repeats holds what came again after each kill against what may have been in
// flight, and against what was.
func (j *flatOut) repeats() {
	for life, again := range j.Repeats() {
		for _, e := range j.Endpoints {
			n, id := again[e.ID], fmt.Sprintf("kill %d at %s", life, e.ID)
			if n > e.bound() {
				j.report(TooManyRepeats, id, "%d came again; %d may be in flight", n, e.bound())
			}
			if met := j.Kills[life][e.ID]; n > met {
				j.report(RepeatedRecorded, id, "%d came again; the outcome of %d was not recorded", n, met)
			}
		}
	}
}
