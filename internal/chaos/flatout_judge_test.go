package chaos_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"postern/internal/chaos"
)

// copyOf is one POST of an event.
func copyOf(endpoint, event, attempt string, life, answer int) chaos.Post {
	return chaos.Post{
		Endpoint: endpoint, EventID: event, Type: "message.received", SHA256: "sum" + event, Attempt: attempt,
		Life: life, Answer: answer,
	}
}

// harmless is a run with two kills in which nothing was broken: three events to
// a wide endpoint, the first of them repeated after each kill, and to a narrow
// one, which refused one and asks for no others.
func harmless() chaos.FlatOut {
	e := chaos.FlatOut{
		Endpoints: []chaos.Endpoint{
			{ID: "wide", MaxInFlight: 2},
			{ID: "narrow", MaxInFlight: 1, Types: []string{"message.received"}},
		},
		Posts: []chaos.Post{
			{Type: "webhook.verification"},
			copyOf("wide", "e1", "1", 0, 200), copyOf("narrow", "e1", "1", 0, 500),
			copyOf("wide", "e1", "1", 1, 200), copyOf("narrow", "e1", "1", 1, 500), copyOf("wide", "e2", "1", 1, 200),
			copyOf("wide", "e1", "1", 2,
				200), copyOf("wide", "e3", "1", 2, 200), copyOf("narrow", "e1", "2", 2, 200),
			copyOf("narrow", "e2", "1", 2,
				200),
		},
		Kills: []chaos.Tally{{"wide": 1, "narrow": 1}, {"wide": 1}},
		State: chaos.State{
			Events: []chaos.Event{
				event("e1", "message.received", "m1"), event("e2", "message.received", "m2"),
				event("e3", "device.connected", ""),
			},
		},
	}
	for to, attempts := range map[string]int{"wide e1": 1, "wide e2": 1, "wide e3": 1, "narrow e1": 2, "narrow e2": 1} {
		endpoint, id := to[:len(to)-3], to[len(to)-2:]
		e.State.Deliveries = append(e.State.Deliveries,
			chaos.Delivery{ID: "d " + to, Endpoint: endpoint, EventID: id, Status: "succeeded", Attempts: attempts})
	}
	return e
}

func TestAHarmlessRunIsAcquitted(t *testing.T) {
	if found := chaos.JudgeFlatOut(harmless()); len(found) > 0 {
		t.Error(found)
	}
	full := harmless() // as many as may be in flight come again
	full.Kills[0]["wide"] = 8
	for n := range 7 {
		full = withRepeat(full, "e"+strconv.Itoa(n+4))
	}
	if found := chaos.JudgeFlatOut(full); len(found) > 0 {
		t.Error(found)
	}
}

// withRepeat adds an event that the first kill met on its way to the wide
// endpoint.
func withRepeat(e chaos.FlatOut, id string) chaos.FlatOut {
	e.State.Events = append(e.State.Events, event(id, "device.connected", ""))
	e.State.Deliveries = append(e.State.Deliveries,
		chaos.Delivery{Endpoint: "wide", EventID: id, Status: "succeeded", Attempts: 1})
	e.Posts = append(e.Posts, copyOf("wide", id, "1", 0, 200), copyOf("wide", id, "1", 1, 200))
	return e
}

// TestTheJudgeOfFlatOutRunsNamesWhatIsBroken breaks the harmless run in one
// place each, and wants that name and no other.
func TestTheJudgeOfFlatOutRunsNamesWhatIsBroken(t *testing.T) {
	type E = *chaos.FlatOut
	without := func(e E, endpoint, id string) {
		e.Posts = slices.DeleteFunc(e.Posts,
			func(p chaos.Post) bool { return p.Endpoint == endpoint && p.EventID == id })
	}
	delivery := func(e E, id string) *chaos.Delivery {
		return &e.State.Deliveries[slices.IndexFunc(e.State.Deliveries,
			func(d chaos.Delivery) bool { return d.ID == id })]
	}
	for _, c := range []struct {
		rule  chaos.Rule
		how   string
		spoil func(e E)
	}{
		{chaos.Undelivered, "lost at one endpoint", func(e E) { without(e, "narrow", "e2") }},
		{chaos.Undelivered, "lost at the other", func(e E) { without(e, "wide", "e3") }},
		{chaos.Undelivered, "never taken", func(e E) { e.Posts[7].Answer = 500 }},
		{chaos.Undelivered, "still pending", func(e E) { delivery(e, "d wide e2").Status = "pending" }},
		{chaos.Undelivered, "given up", func(e E) { delivery(e, "d wide e2").Status = "exhausted" }},
		{chaos.NoDelivery, "no row", func(e E) { delivery(e, "d wide e2").EventID = "e9" }},
		{chaos.ChangedBytes, "at first", func(e E) { e.Posts[1].SHA256 = "sum" }},
		{chaos.ChangedBytes, "in a copy", func(e E) { e.Posts[3].SHA256 = "sum" }},
		{chaos.NotInLog, "an unknown event", func(e E) { e.Posts = append(e.Posts, copyOf("wide", "e9", "1", 2, 200)) }},
		{chaos.BadPost, "signature", func(e E) { e.Posts[4].Wrong = "signature" }},
		{chaos.BadPost, "signature of a handshake", func(e E) { e.Posts[0].Wrong = "signature" }},
		{chaos.Unsubscribed, "another type", func(e E) { e.Posts = append(e.Posts, copyOf("narrow", "e3", "1", 2, 200)) }},
		{chaos.WrongAttempt, "one is left out", func(e E) { e.Posts[5].Attempt, delivery(e, "d wide e2").Attempts = "2", 2 }},
		{chaos.WrongAttempt, "no number", func(e E) { e.Posts[5].Attempt, delivery(e, "d wide e2").Attempts = "one", 0 }},
		{chaos.WrongAttempt, "backwards", func(e E) { e.Posts[8].Attempt, delivery(e, "d narrow e1").Attempts = "0", 0 }},
		{chaos.WrongAttempt, "after a success", func(e E) { e.Posts[4].Answer = 200 }},
		{chaos.WrongAttempt, "another in the log", func(e E) { delivery(e, "d narrow e1").Attempts = 3 }},
		{chaos.RepeatedUnkilled, "in the last life", func(e E) { e.Posts = append(e.Posts, e.Posts[9]) }},
		{chaos.RepeatedUnkilled, "before a kill", func(e E) { e.Posts = slices.Insert(e.Posts, 1, e.Posts[1]) }},
		{chaos.RepeatedRecorded, "at the kill", func(e E) { e.Kills[1] = nil }},
		{chaos.RepeatedRecorded, "some of them", func(e E) { *e = withRepeat(*e, "e4") }},
		{chaos.TooManyRepeats, "of the wide endpoint", func(e E) {
			e.Kills[0]["wide"] = 9
			for n := range 8 {
				*e = withRepeat(*e, "e"+strconv.Itoa(n+4))
			}
		}},
		{chaos.TooManyRepeats, "although the sum would do", func(e E) { e.Endpoints[0].MaxInFlight, e.Endpoints[1].MaxInFlight = 0, 3 }},
	} {
		t.Run(string(c.rule)+" "+c.how, func(t *testing.T) {
			e := harmless()
			c.spoil(&e)
			names := map[chaos.Rule]int{}
			for _, v := range chaos.JudgeFlatOut(e) {
				names[v.Rule]++
			}
			if got := slices.Collect(maps.Keys(names)); !slices.Equal(got, []chaos.Rule{c.rule}) {
				t.Errorf("found %v", chaos.JudgeFlatOut(e))
			}
		})
	}
}

func TestUnrecordedIsWhatTheDatabaseDoesNotKnow(t *testing.T) {
	posts := []chaos.Post{
		{Type: "webhook.verification", Attempt: "1"},
		copyOf("wide", "e1", "1", 0, 200), // and it is recorded
		copyOf("wide", "e2", "1", 0, 200), copyOf("narrow", "e2", "1", 0, 0),
		copyOf("wide", "e3", "1", 0, 500), // this too
		copyOf("wide", "e4", "1", 0, 500), copyOf("wide", "e4", "2", 0, 200),
	}
	pending := []chaos.Delivery{
		{Endpoint: "wide", EventID: "e2"},
		{Endpoint: "narrow", EventID: "e2"},
		{Endpoint: "narrow", EventID: "e1"},
		{Endpoint: "wide", EventID: "e3", Attempts: 1},
		{Endpoint: "wide", EventID: "e4", Attempts: 1},
	}
	got := chaos.Unrecorded(posts, pending)
	if !maps.Equal(got, chaos.Tally{"wide": 2, "narrow": 1}) || got.Sum() != 3 {
		t.Errorf("%v, %d in all", got, got.Sum())
	}
	if n := chaos.Unrecorded(posts, nil).Sum(); n != 0 {
		t.Errorf("%d with nothing pending", n)
	}
}
