package chaos

import (
	"fmt"
	"slices"
	"strconv"
)

// The rules of JudgeFlatOut, in addition to those of Judge about deliveries.
const (
	Unsubscribed     Rule = "4-unsubscribed"      // posted to an endpoint that does not subscribe to it
	WrongAttempt     Rule = "4-wrong-attempt"     // the attempts are not 1, 2, 3, … up to a success, or differ from the delivery log
	RepeatedUnkilled Rule = "4-repeated-unkilled" // one process made the same attempt twice
	RepeatedRecorded Rule = "4-repeated-recorded" // an attempt was repeated although its outcome was in the database
	TooManyRepeats   Rule = "4-too-many-repeats"  // more attempts were repeated after a kill than an endpoint may have in flight
)

// FlatOut is the evidence of a flat-out run: deliveries at full speed to several
// endpoints, while the gateway is killed again and again.
type FlatOut struct {
	Endpoints []Endpoint
	Posts     []Post  // in order of arrival
	Kills     []Tally // Unrecorded at each kill; kill i ended life i
	State     State   // after everything had settled and the gateway was stopped
}

// Endpoint is a webhook endpoint of the run.
type Endpoint struct {
	ID          string
	MaxInFlight int
	Types       []string // event types to which it subscribes; nil: all
}

func (e Endpoint) wants(kind string) bool { return e.Types == nil || slices.Contains(e.Types, kind) }

// bound is the maximum number of attempts in flight: those that are open, and three times as
// many that were answered but are not recorded yet.
func (e Endpoint) bound() int { return 4 * e.MaxInFlight }

// Tally counts attempts per endpoint.
type Tally map[string]int

// Sum is the total for all endpoints.
func (c Tally) Sum() (n int) {
	for _, one := range c {
		n += one
	}
	return n
}

// Unrecorded counts the attempts of one life that are not in the database after it,
// given the deliveries that are pending there.
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

// Repeats counts the attempts that were repeated after each kill, per endpoint.
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

// flatOut is the evidence with its indexes.
type flatOut struct {
	FlatOut
	findings

	came       map[destination][]Post
	deliveries map[destination]Delivery
}

// JudgeFlatOut compares what the endpoints received with the database, and returns the
// violations in the order of the rules.
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

// posts checks each POST by itself.
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
			j.report(ChangedBytes, p.EventID, "attempt %s carried other bytes to %s than the log holds", p.Attempt,
				p.Endpoint)
		case !asks[p.Endpoint].wants(e.Type):
			j.report(Unsubscribed, p.EventID, "%s came to %s", e.Type, p.Endpoint)
		}
		j.came[p.destination()] = append(j.came[p.destination()], p)
	}
}

// events checks the delivery of each event to each endpoint that subscribes to it.
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

// attempts checks the attempts of a delivery in order, and returns the number of the
// last.
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

// repeats compares the repeated attempts after each kill with what may have been in
// flight, and with what was.
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
