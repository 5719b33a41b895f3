package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/vendorsim"
)

// innocent is a run in which nothing was broken: one message delivered, one to
// nobody, which was given back, and one received. The account reacted to the first, and the
// contact changed the last.
func innocent() chaos.Evidence {
	at := time.Now()
	ask := func(key, to, body string) chaos.Call {
		return chaos.Call{Ask: &chaos.Ask{Key: key, Device: "dev", To: to, Body: body}}
	}
	told := func(key, id string) chaos.Call {
		return chaos.Call{Told: &chaos.Told{Key: key, Status: 202, MessageID: id}}
	}
	e := chaos.Evidence{
		Calls: []chaos.Call{
			ask("k1", "+2", "b1"), ask("k2", vendorsim.NumberUnknown, "b2"),
			{Told: &chaos.Told{Key: "k1"}},
			told("k1", "m1"), told("k1", "m1"), told("k2", "m2"),
			{Act: &chaos.Act{Message: "m1", Kind: "reaction", Text: "x"}},
			{Act: &chaos.Act{Message: "m1", Kind: "reaction", Text: "y"}},
			{Acted: &chaos.Act{Message: "m1", Kind: "reaction", Text: "y"}},
		},
		Vendor: []chaos.Entry{
			{Account: "+1", Peer: "+2", Direction: "outbound", NetworkID: "N1", Content: vendorsim.Content{Type: "text", Body: "b1"}, Copies: 2, DeliveredAt: &at},
			{Account: "+1", Peer: "+4", Direction: "inbound", NetworkID: "N3", Content: vendorsim.Content{Type: "text", Body: "b3"}, AckedAt: &at},
			{Account: "+1", Peer: "+2", Direction: "outbound", NetworkID: "N4", N: 3, Content: vendorsim.Content{Type: "reaction", Target: "N1", Body: "x"}},
			{Account: "+1", Peer: "+2", Direction: "outbound", NetworkID: "N5", N: 4, Content: vendorsim.Content{Type: "reaction", Target: "N1", Body: "y"}},
			{Account: "+1", Peer: "+4", Direction: "inbound", NetworkID: "N6", Content: vendorsim.Content{Type: "edit", Target: "N3", Body: "b3~1"}, AckedAt: &at},
		},
		State: chaos.State{
			Devices: map[string]string{"dev": "+1"},
			Messages: []chaos.Message{
				{
					ID: "m1", Device: "dev", Chat: "+2", Direction: "outbound", Shows: reacted("+1", "y"), Status: "delivered", NetworkID: "N1",
					Body: "b1", FrameLeft: true,
				},
				{
					ID: "m2", Device: "dev", Direction: "outbound", Status: "failed",
					Failure: "RECIPIENT_NOT_FOUND", NetworkID: "N2", Body: "b2",
				},
				{
					ID: "m3", Device: "dev", Chat: "+4", Direction: "inbound", Status: "received", NetworkID: "N3", Body: "b3",
					Edit: "b3~1",
				},
			},
			Actions: []chaos.Action{
				{ID: "a1", Device: "dev", Chat: "+2", Direction: "outbound", Status: "sent", NetworkID: "N4", About: "N1", Kind: "reaction", Text: "x"},
				{ID: "a2", Device: "dev", Chat: "+2", Direction: "outbound", Status: "sent", NetworkID: "N5", About: "N1", Kind: "reaction", Text: "y"},
				{ID: "a3", Device: "dev", Chat: "+4", Direction: "inbound", Status: "received", NetworkID: "N6", About: "N3", Kind: "edit", Text: "b3~1"},
			},
			Files:     map[string]chaos.File{"f1": {Status: "ready", SHA256: "sum", Stored: true}},
			Stored:    map[string]int64{"sum": 5},
			Blobs:     map[string]int64{"sum": 5},
			Bytes:     5,
			Sequences: map[string]int64{"dev": 7},
			Used:      1,
		},
		Swept: true,
	}
	for i, ev := range []chaos.Event{
		event("e1", "message.sent", "m1"), event("e2", "message.delivered", "m1"), event("e3", "message.failed", "m2"),
		event("e4", "message.received", "m3"), reaction("e5", "x"), reaction("e6", "y"), event("e7", "message.edited", "m3"),
	} {
		if ev.Type == "message.edited" {
			ev.Says.Message.Body = "b3~1"
		}
		ev.Sequence, ev.Says.Sequence = int64(i+1), int64(i+1)
		e.State.Events = append(e.State.Events, ev)
		e.State.Deliveries = append(e.State.Deliveries,
			chaos.Delivery{ID: "d" + ev.ID, EventID: ev.ID, Status: "succeeded"})
		e.Posts = append(e.Posts, chaos.Post{
			EventID: ev.ID, Type: ev.Type, MessageID: ev.Says.Message.ID, SHA256: ev.SHA256,
			Attempt: "1", Answer: 200,
		})
	}
	return e
}

// reacted is what a message shows after somebody reacted to it.
func reacted(who, emoji string) chaos.Shows {
	return chaos.Shows{Reactions: []chaos.Reaction{{From: who, Emoji: emoji}}}
}

// reaction is the event about a reaction of the account.
func reaction(id, emoji string) chaos.Event {
	e := event(id, "message.reaction", "m1")
	e.Says.Message.Reaction.From, e.Says.Message.Reaction.Emoji = "+1", emoji
	return e
}

func event(id, kind, message string) chaos.Event {
	e := chaos.Event{
		ID: id, Device: "dev", Type: kind, SHA256: "sum" + id,
		Says: chaos.Said{EventID: id, Type: kind, DeviceID: "dev", Timestamp: "2026"},
	}
	e.Says.Message.ID, e.Says.Message.Body = message, "b3"
	return e
}

func TestAnInnocentRunIsAcquitted(t *testing.T) {
	if found := chaos.Judge(innocent()); len(found) > 0 {
		t.Error(found)
	}
	again := innocent() // attempts that failed before one succeeded break nothing
	again.Posts = append(
		[]chaos.Post{{EventID: "e1", Type: "message.sent", MessageID: "m1", SHA256: "sume1", Attempt: "1"}},
		again.Posts...)
	given := again.Posts[4]
	given.Answer = 500
	again.State.Deliveries[3].Status, again.Posts = "exhausted", slices.Concat(
		again.Posts[:4], slices.Repeat([]chaos.Post{given}, 12), again.Posts[5:]) // visibly given up
	if found := chaos.Judge(again); len(found) > 0 {
		t.Error(found)
	}
}

// TestTheJudgeNamesWhatIsBroken breaks the innocent run in one place each.
func TestTheJudgeNamesWhatIsBroken(t *testing.T) {
	type E = *chaos.Evidence
	for _, c := range []struct {
		rule  chaos.Rule
		how   string
		spoil func(e E)
	}{
		{chaos.WrongEnd, "failed without a reason", func(e E) { e.State.Messages[1].Failure = "ENCRYPTION_FAILED" }},
		{chaos.WrongEnd, "failed to somebody", func(e E) { e.Calls[1].Ask.To = "+3" }},
		{chaos.WrongEnd, "expired", func(e E) { e.State.Messages[1].Status = "expired" }},
		{chaos.WrongEnd, "in no known state", func(e E) { e.State.Messages[0].Status = "limbo" }},
		{chaos.LostReceipt, "delivered", func(e E) { e.State.Messages[0].Status = "sent" }},
		{chaos.LostReceipt, "read", func(e E) { e.Vendor[0].ReadAt = e.Vendor[0].DeliveredAt }},
		{chaos.Unearned, "delivered", func(e E) { e.Vendor[0].DeliveredAt = nil }},
		{chaos.Unearned, "read", func(e E) { e.State.Messages[0].Status = "read" }},
		{chaos.Invented, "the vendor has none", func(e E) { e.Vendor = e.Vendor[:1] }},
		{chaos.Invented, "another's", func(e E) { e.Vendor[1].Account = "+9" }},
		{chaos.Unasked, "a row", func(e E) { e.State.Messages[1].Body = "b9" }},
		{chaos.TwoEvents, "failed and delivered", func(e E) { e.State.Events[2].Says.Message.ID = "m1" }},
		{chaos.BadEvent, "another id", func(e E) { e.State.Events[0].Says.EventID = "e9" }},
		{chaos.BadEvent, "another type", func(e E) { e.State.Events[0].Says.Type = "message.read" }},
		{chaos.BadEvent, "another device", func(e E) { e.State.Events[0].Says.DeviceID = "dev2" }},
		{chaos.BadEvent, "another number", func(e E) { e.State.Events[0].Says.Sequence = 7 }},
		{chaos.BadEvent, "time runs backwards", func(e E) { e.State.Events[2].Says.Timestamp = "2025" }},
		{chaos.ChangedInbound, "in the event", func(e E) { e.State.Events[3].Says.Message.Body = "b9" }},
		{chaos.SequenceHole, "the newest is gone", func(e E) { e.State.Sequences["dev"] = 5 }},
		{chaos.Undelivered, "given up early", func(e E) { e.State.Deliveries[3].Status = "exhausted" }},
		{chaos.Undelivered, "never marked", func(e E) { e.State.Deliveries[3].Status = "pending" }},
		{chaos.AcceptedLost, "no row", func(e E) { e.Calls[3].Told.MessageID, e.Calls[4].Told.MessageID = "m9", "m9" }},
		{chaos.AcceptedLost, "another text", func(e E) { e.Calls[3].Told.MessageID, e.Calls[4].Told.MessageID = "m2", "m2" }},
		{chaos.WrongAnswer, "500", func(e E) { e.Calls[2].Told.Status = 500 }},
		{chaos.WrongAnswer, "422", func(e E) { e.Calls[2].Told.Status = 422 }},
		{chaos.TwoEffects, "two answers", func(e E) { e.Calls[4].Told.MessageID = "m2" }},
		{chaos.TwoEffects, "two rows", func(e E) {
			e.State.Messages = append(e.State.Messages,
				chaos.Message{
					ID: "m4", Device: "dev", Direction: "outbound", Status: "queued",
					Body: "b1",
				})
		}},
		{chaos.Unfinished, "queued", func(e E) { e.State.Messages[0].Status = "queued" }},
		{chaos.Unfinished, "sending", func(e E) { e.State.Messages[0].Status = "sending" }},
		{chaos.SentUnread, "not at the vendor", func(e E) { e.Vendor = e.Vendor[1:] }},
		{chaos.SentUnread, "another text", func(e E) { e.Vendor[0].Body = "b2" }},
		{chaos.SecondNetworkID, "two ids", func(e E) { v := e.Vendor[0]; v.NetworkID = "N9"; e.Vendor = append(e.Vendor, v) }},
		{chaos.OtherNetworkID, "another id", func(e E) { e.Vendor[0].NetworkID = "N9" }},
		{chaos.Unasked, "nobody's text", func(e E) { e.Vendor[0].Body = "b9" }},
		{chaos.Unasked, "another recipient", func(e E) { e.Vendor[0].Peer = "+9" }},
		{chaos.Unasked, "another device", func(e E) { e.Vendor[0].Account = "+9" }},
		{chaos.RefundedSent, "failed", func(e E) {
			e.State.Messages[0].Status, e.State.Messages[0].FrameLeft = "failed", false
		}},
		{chaos.QuotaOff, "too much", func(e E) { e.State.Used = 2 }},
		{chaos.QuotaOff, "too little", func(e E) { e.State.Used = 0 }},
		{chaos.NotRefunded, "never left", func(e E) { e.State.Messages[1].FrameLeft, e.State.Used = true, 2 }},
		{chaos.ActionLost, "no row", func(e E) { e.State.Actions = e.State.Actions[:1] }},
		{chaos.ActionLost, "accepted twice", func(e E) { e.Calls = append(e.Calls, e.Calls[8]) }},
		{chaos.ActionTwice, "nobody asked", func(e E) { e.Calls = e.Calls[:6] }},
		{chaos.ActionTwice, "two rows", func(e E) { e.State.Actions = append(e.State.Actions, e.State.Actions[0]) }},
		{chaos.ActionForgotten, "the earlier one", func(e E) { e.State.Messages[0].Shows = reacted("+1", "x") }},
		{chaos.ActionForgotten, "of somebody else", func(e E) { e.State.Messages[0].Shows = reacted("+9", "y") }},
		{chaos.ActionForgotten, "the contact's", func(e E) { e.State.Messages[2].Edit = "" }},
		{chaos.Disordered, "the later one first", func(e E) { e.Vendor[2].N, e.Vendor[3].N = 4, 3 }},
		{chaos.Disordered, "before its message", func(e E) { e.Vendor[0].N = 9 }},
		{chaos.Unfinished, "an action", func(e E) { e.State.Actions[0].Status = "queued" }},
		{chaos.WrongEnd, "an action", func(e E) { e.State.Actions[0].Status = "failed" }},
		{chaos.SentUnread, "an action", func(e E) { e.Vendor[2].Body = "z" }},
		{chaos.SentUnread, "an unreadable action", func(e E) { e.Vendor[2].Unreadable = true }},
		{chaos.Unasked, "another action", func(e E) { e.Vendor[2].Body = "z" }},
		{chaos.OtherNetworkID, "an action", func(e E) { e.Vendor[2].NetworkID = "N9" }},
		{chaos.SecondNetworkID, "an action", func(e E) { v := e.Vendor[2]; v.NetworkID = "N9"; e.Vendor = append(e.Vendor, v) }},
		{chaos.NoEvent, "an action", func(e E) { e.State.Events[4].Says.Message.Reaction.Emoji = "z" }},
		{chaos.NoEvent, "the contact's action", func(e E) { e.State.Events[6].Says.Message.Body = "z" }},
		{chaos.TwoEvents, "an action", func(e E) { e.State.Events[5].Says.Message.Reaction.Emoji = "x" }},
		{chaos.AcknowledgedLost, "an action", func(e E) { e.State.Actions = e.State.Actions[:2] }},
		{chaos.KeptTwice, "an action", func(e E) { e.State.Actions = append(e.State.Actions, e.State.Actions[2]) }},
		{chaos.ChangedInbound, "an action", func(e E) { e.State.Actions[2].Text = "b3~2" }},
		{chaos.ChangedInbound, "an action as a message", func(e E) {
			e.State.Messages = append(e.State.Messages,
				chaos.Message{ID: "m4", Device: "dev", Chat: "+4", Direction: "inbound", NetworkID: "N6"})
			e.State.Actions = e.State.Actions[:2]
		}},
		{chaos.Invented, "an action", func(e E) { e.Vendor = e.Vendor[:4] }},
		{chaos.FileMissing, "ready", func(e E) { e.State.Files["f1"] = chaos.File{Status: "ready", SHA256: "sum"} }},
		{chaos.FileOrphan, "after a sweep", func(e E) { e.State.Orphans = []string{"sum"} }},
		{chaos.BytesOff, "a content is not taken off", func(e E) { e.State.Bytes = 6 }},
		{chaos.BytesOff, "a content is not counted", func(e E) { e.State.Blobs, e.State.Bytes = nil, 0 }},
		{chaos.BytesOff, "a content is not stored", func(e E) { e.State.Stored = nil }},
		{chaos.NotTaken, "not acknowledged", func(e E) { e.Vendor[1].AckedAt = nil }},
		{chaos.NotTaken, "refused", func(e E) { e.Vendor[1].Refused = 500 }},
		{chaos.AcknowledgedLost, "no row", func(e E) { e.State.Messages = e.State.Messages[:2] }},
		{chaos.AcknowledgedLost, "another device's row", func(e E) { e.State.Messages[2].Device = "dev2" }},
		{chaos.KeptTwice, "two rows", func(e E) { m := e.State.Messages[2]; m.ID = "m4"; e.State.Messages = append(e.State.Messages, m) }},
		{chaos.ChangedInbound, "another text", func(e E) { e.State.Messages[2].Body = "b9" }},
		{chaos.TwoEvents, "in the log", func(e E) {
			ev := e.State.Events[3]
			ev.ID, ev.Sequence = "e5", 5
			e.State.Events = append(e.State.Events, ev)
		}},
		{chaos.TwoEvents, "at the receiver", func(e E) { p := e.Posts[3]; p.EventID = "e9"; e.Posts = append(e.Posts, p) }},
		{chaos.NoEvent, "received", func(e E) { e.State.Events = e.State.Events[:3] }},
		{chaos.NoEvent, "sent", func(e E) { e.State.Events[0].Says.Message.ID = "" }},
		{chaos.SequenceHole, "a number is left out", func(e E) { e.State.Events[3].Sequence = 5 }},
		{chaos.SequenceHole, "a number comes twice", func(e E) { e.State.Events[3].Sequence = 3 }},
		{chaos.NoDelivery, "no row", func(e E) { e.State.Deliveries = e.State.Deliveries[:3] }},
		{chaos.Undelivered, "never posted", func(e E) { e.Posts = e.Posts[:3] }},
		{chaos.Undelivered, "never taken", func(e E) { e.Posts[3].Answer = 500 }},
		{chaos.Undelivered, "pending", func(e E) { e.Posts, e.State.Deliveries[3].Status = e.Posts[:3], "pending" }},
		{chaos.ChangedBytes, "other bytes", func(e E) { p := e.Posts[3]; p.SHA256, p.Attempt = "sum", "2"; e.Posts = append(e.Posts, p) }},
		{chaos.NotInLog, "a device's", func(e E) { e.Posts = append(e.Posts, chaos.Post{EventID: "e9", Type: "device.connected"}) }},
		{chaos.BadPost, "signature", func(e E) { e.Posts[0].Wrong = "signature" }},
		{chaos.Leaked, "a text", func(e E) { e.Leaks = []chaos.Leak{{Line: 3, What: "a message's text"}} }},
	} {
		t.Run(string(c.rule)+" "+c.how, func(t *testing.T) {
			e := innocent()
			c.spoil(&e)
			if found := chaos.Judge(e); !slices.ContainsFunc(found,
				func(v chaos.Violation) bool { return v.Rule == c.rule }) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// starry is an innocent run in which the account has starred its first message too.
func starry() chaos.Evidence {
	e := innocent()
	act := &chaos.Act{Message: "m1", Kind: "star", Text: "1"}
	e.Calls = append(e.Calls, chaos.Call{Act: act}, chaos.Call{Acted: act})
	e.Vendor = append(e.Vendor, chaos.Entry{
		Account: "+1", Peer: "+2", Direction: "outbound", NetworkID: "star N1 1", N: 5,
		Content: vendorsim.Content{Type: "star", Target: "N1", Body: "1"},
	})
	e.State.Actions = append(e.State.Actions, chaos.Action{
		ID: "a4", Device: "dev", Chat: "+2", Direction: "outbound", Status: "sent", NetworkID: "N7", About: "N1",
		Kind: "star", Text: "1",
	})
	e.State.Messages[0].Shows.StarredAt = "2026"
	ev := event("e8", "message.starred", "m1")
	ev.Sequence, ev.Says.Sequence, e.State.Sequences["dev"] = 8, 8, 8
	e.State.Events = append(e.State.Events, ev)
	e.State.Deliveries = append(e.State.Deliveries, chaos.Delivery{ID: "de8", EventID: "e8", Status: "succeeded"})
	e.Posts = append(e.Posts, chaos.Post{
		EventID: "e8", Type: ev.Type, MessageID: "m1", SHA256: ev.SHA256, Attempt: "1", Answer: 200,
	})
	return e
}

// An edit may be given up when no app takes it any more, and not before.
func TestEditMayComeTooLate(t *testing.T) {
	const sent, window = 1_000_000, 20 * 60 * 1000
	for name, want := range map[string]struct {
		status, failure string
		ended           int64
		broken          int
	}{
		"too late":      {"expired", "", sent + window, 0},
		"too late once": {"failed", "UNCONFIRMED", sent + window + 1, 0},
		"too early":     {"expired", "", sent + window - 1, 1},
		"refused":       {"failed", "NETWORK_REJECTED", sent + window, 1},
	} {
		e := innocent()
		act := &chaos.Act{Message: "m1", Kind: "edit", Text: "b1~1"}
		e.Calls = append(e.Calls, chaos.Call{Act: act}, chaos.Call{Acted: act})
		e.State.Messages[0].SentAt = sent
		e.State.Actions = append(e.State.Actions, chaos.Action{
			ID: "a4", Device: "dev", Chat: "+2", Direction: "outbound", Status: want.status, Failure: want.failure,
			NetworkID: "N7", About: "N1", Kind: "edit", Text: "b1~1", Ended: want.ended,
		})
		if found := chaos.Judge(e); len(found) != want.broken {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// Stars have no id on the network, and are compared by what was done.
func TestStarsAreJudged(t *testing.T) {
	again := starry() // the gateway was killed, so that it sent the star twice, and was asked twice
	again.Calls = append(again.Calls, chaos.Call{Act: &chaos.Act{Message: "m1", Kind: "star", Text: "1"}})
	row, sent := again.State.Actions[3], again.Vendor[5]
	row.ID, row.NetworkID, sent.NetworkID, sent.N = "a5", "N8", "star N1 2", 6
	again.State.Actions, again.Vendor = append(again.State.Actions, row), append(again.Vendor, sent)
	for _, e := range []chaos.Evidence{starry(), again} {
		if found := chaos.Judge(e); len(found) > 0 {
			t.Error(found)
		}
	}
	for rule, spoil := range map[chaos.Rule]func(*chaos.Evidence){
		chaos.ActionLost:      func(e *chaos.Evidence) { e.State.Actions = e.State.Actions[:3] },
		chaos.ActionTwice:     func(e *chaos.Evidence) { e.State.Actions = append(e.State.Actions, e.State.Actions[3]) },
		chaos.ActionForgotten: func(e *chaos.Evidence) { e.State.Messages[0].Shows.StarredAt = "" },
		chaos.Unfinished:      func(e *chaos.Evidence) { e.State.Actions[3].Status = "sending" },
		chaos.WrongEnd:        func(e *chaos.Evidence) { e.State.Actions[3].Status = "failed" },
		chaos.SentUnread:      func(e *chaos.Evidence) { e.Vendor = e.Vendor[:5] },
		chaos.Unasked:         func(e *chaos.Evidence) { e.Vendor[5].Target = "N2" },
		chaos.Disordered:      func(e *chaos.Evidence) { e.Vendor[5].N = 3 },
		chaos.NoEvent:         func(e *chaos.Evidence) { e.State.Events[7].Says.Message.ID = "m3" },
		chaos.TwoEvents: func(e *chaos.Evidence) {
			ev := e.State.Events[7]
			ev.ID = "e9"
			e.State.Events = append(e.State.Events, ev)
		},
	} {
		e := starry()
		spoil(&e)
		if found := chaos.Judge(e); !slices.ContainsFunc(found, func(v chaos.Violation) bool { return v.Rule == rule }) {
			t.Errorf("%s: found %v", rule, found)
		}
	}
}

func TestLeaksAreFound(t *testing.T) {
	log := "fine\n{\"text\":\"out-00aa11bb-17-0123456789abcdef01234567\"}\nkey pst_secret\nout-00aa11bb-17- is an idempotency key\n"
	found, err := chaos.FindLeaks(strings.NewReader(log), map[string]string{"the key": "pst_secret"})
	if err != nil || !slices.Equal(found, []chaos.Leak{{2, "a message's text"}, {3, "the key"}}) {
		t.Error(found, err)
	}
}
