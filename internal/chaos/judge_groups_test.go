package chaos_test

import (
	"slices"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/vendorsim"
)

// inGroup is the innocent run with a group: a member wrote twice in it, the account once, its subject was changed, and
// somebody was added. A chat is archived on the phone, a name is in its address book, and a message has its star.
func inGroup() chaos.Evidence {
	e := innocent()
	acked, asked := time.Now(), time.Now().Add(time.Second)
	text := func(id, body string, d vendorsim.Direction) chaos.Entry {
		v := chaos.Entry{
			Account: "+1", Group: "g", Direction: d, NetworkID: id, Content: vendorsim.Content{Type: "text", Body: body},
			Copies: 1, ArrivedAt: time.Now(),
		}
		if d == vendorsim.Inbound {
			v.Peer, v.AckedAt = "+5", &acked
		}
		return v
	}
	later := text("N8", "b8", vendorsim.Inbound)
	later.AskedAt, later.Disturbed = &asked, true
	e.Vendor = append(e.Vendor, text("N7", "b7", vendorsim.Inbound), later, text("N9", "b9", vendorsim.Outbound))
	subject := chaos.Change{Chat: "group:g", Kind: "subject", What: "S"}
	added := chaos.Change{Chat: "group:g", Kind: "add", What: "+6"}
	star := chaos.Act{Message: "m3", Kind: "star", Text: "1", Phone: true}
	e.Calls = append(e.Calls,
		chaos.Call{Ask: &chaos.Ask{Key: "k9", Device: "dev", To: "group:g", Body: "b9"}}, chaos.Call{Change: &subject},
		chaos.Call{Changed: &subject}, chaos.Call{Change: &added}, chaos.Call{Changed: &added},
		chaos.Call{Named: &chaos.Named{Account: "+1", Number: "+4", Name: "Ann"}}, chaos.Call{Act: &star},
		chaos.Call{Acted: &star},
	)
	s := &e.State
	for _, m := range []chaos.Message{
		{ID: "m7", Direction: "inbound", Status: "received", NetworkID: "N7", Body: "b7"},
		{ID: "m8", Direction: "inbound", Status: "received", NetworkID: "N8", Body: "b8"},
		{ID: "m9", Direction: "outbound", Status: "sent", NetworkID: "N9", Body: "b9", FrameLeft: true},
	} {
		m.Device, m.Chat = "dev", "group:g"
		s.Messages = append(s.Messages, m)
	}
	s.Messages[2].Shows.StarredAt = "2026"
	s.Actions = append(s.Actions, chaos.Action{
		ID: "a4", Device: "dev", Chat: "+4", Direction: "outbound", Status: "sent", About: "N3", Kind: "star",
		Text: "1", Phone: true,
	})
	s.Used++
	s.Groups = []chaos.Group{{Device: "dev", Chat: "group:g", Subject: "S", Members: []string{"+1", "+5", "+6"}}}
	s.Chats = []chaos.Chat{{Device: "dev", ID: "+4", Archived: true, Unread: 1}, {Device: "dev", ID: "group:g", Unread: 2}}
	s.Book = map[chaos.Entered]string{{Device: "dev", Number: "+4"}: "Ann"}
	e.Groups = map[string][]vendorsim.Group{"+1": {{ID: "g", Subject: "S", Members: []string{"+5", "+1", "+6"}}}}
	e.Settings = map[string]map[string]vendorsim.ChatSettings{"+1": {"+4": {Archived: true}, "group:g": {}}}
	e.Vendor[1].ArrivedAt = time.Now()

	updated, people := event("e11", "group.updated", ""), event("e12", "group.participants", "")
	updated.Says.Group = chaos.SaidOfGroup{ChatID: "group:g", Subject: "S", Changed: []string{"subject"}}
	people.Says.Group = chaos.SaidOfGroup{
		ChatID: "group:g", Action: "add", Participants: []chaos.Member{{PhoneNumber: "+6"}},
	}
	first, second := event("e8", "message.received", "m7"), event("e9", "message.received", "m8")
	first.Says.Message.Body, second.Says.Message.Body = "b7", "b8"
	for i, ev := range []chaos.Event{
		first, second, event("e10", "message.sent", "m9"), updated, people, event("e13", "message.starred", "m3"),
	} {
		ev.Sequence, ev.Says.Sequence = int64(8+i), int64(8+i)
		s.Events = append(s.Events, ev)
		s.Deliveries = append(s.Deliveries, chaos.Delivery{ID: "d" + ev.ID, EventID: ev.ID, Status: "succeeded"})
		e.Posts = append(e.Posts, chaos.Post{
			EventID: ev.ID, Type: ev.Type, MessageID: ev.Says.Message.ID, SHA256: ev.SHA256, Attempt: "1", Answer: 200,
		})
	}
	s.Sequences["dev"] = 13
	return e
}

func TestAnInnocentRunWithAGroupIsAcquitted(t *testing.T) {
	if found := chaos.Judge(inGroup()); len(found) > 0 {
		t.Error(found)
	}
	if e := inGroup(); chaos.Unsettled(e) || chaos.Missed(e) {
		t.Error("it is not settled")
	}
}

// TestTheJudgeNamesWhatIsBrokenInGroups breaks the innocent run with a group in one place each.
func TestTheJudgeNamesWhatIsBrokenInGroups(t *testing.T) {
	type E = *chaos.Evidence
	const updated, people = 10, 11 // of the events
	for _, c := range []struct {
		rule  chaos.Rule
		how   string
		spoil func(e E)
	}{
		{chaos.KeyLost, "asked for again", func(e E) { e.Vendor[6].Disturbed = false }},
		{chaos.MemberMissed, "one of them", func(e E) { e.Vendor[7].Missing = []string{"+6"} }},
		{chaos.ChangeLost, "another subject", func(e E) { e.State.Events[updated].Says.Group.Subject = "T" }},
		{chaos.ChangeLost, "nobody", func(e E) { e.State.Events[people].Says.Group.Participants = nil }},
		{chaos.ChangeInvented, "another member", func(e E) {
			g := &e.State.Events[people].Says.Group
			g.Participants = append(g.Participants, chaos.Member{PhoneNumber: "+7"})
		}},
		{chaos.ChangeInvented, "another action", func(e E) { e.State.Events[people].Says.Group.Action = "remove" }},
		{chaos.ChangeInvented, "another thing", func(e E) {
			e.State.Events[updated].Says.Group.Changed = []string{"subject", "description"}
		}},
		{chaos.ChangeInvented, "left", func(e E) {
			e.State.Events[updated].Type, e.State.Events[updated].Says.Type = "group.left", "group.left"
		}},
		{chaos.GroupOff, "the subject", func(e E) { e.State.Groups[0].Subject = "T" }},
		{chaos.GroupOff, "the members", func(e E) { e.State.Groups[0].Members = []string{"+1", "+5"} }},
		{chaos.GroupOff, "there is none", func(e E) { e.State.Groups = nil }},
		{chaos.SettingOff, "archived", func(e E) { e.State.Chats[0].Archived = false }},
		{chaos.SettingOff, "muted", func(e E) { e.State.Chats[1].Muted = true }},
		{chaos.SettingOff, "there is no chat", func(e E) { e.State.Chats = e.State.Chats[1:] }},
		{chaos.SettingOff, "no star", func(e E) { e.State.Actions = e.State.Actions[:3] }},
		{chaos.ActionForgotten, "no star is shown", func(e E) { e.State.Messages[2].Shows.StarredAt = "" }},
		{chaos.UnreadOff, "one was read", func(e E) { e.State.Chats[1].Unread = 1 }},
		{chaos.UnreadOff, "one was read on the phone", func(e E) { e.Vendor[5].ReadAt = e.Vendor[5].AckedAt }},
		{chaos.NameOff, "another", func(e E) { e.Calls[len(e.Calls)-3].Named.Name = "Ben" }},
		{chaos.WrongEnd, "a mark has failed", func(e E) {
			e.State.Actions = append(e.State.Actions, chaos.Action{
				ID: "a5", Device: "dev", Chat: "+4", Direction: "outbound", Status: "failed", About: "N3", Kind: "read",
			})
		}},
		{chaos.Unfinished, "a mark is queued", func(e E) {
			e.State.Actions = append(e.State.Actions, chaos.Action{
				ID: "a5", Device: "dev", Chat: "+4", Direction: "outbound", Status: "queued", About: "N3", Kind: "read",
			})
		}},
	} {
		e := inGroup()
		c.spoil(&e)
		found := chaos.Judge(e)
		if !slices.ContainsFunc(found, func(v chaos.Violation) bool { return v.Rule == c.rule }) {
			t.Errorf("%s, %s: found %v", c.rule, c.how, found)
		}
	}
}
