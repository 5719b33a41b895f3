package postern_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
)

func member(number, role string) postern.Participant {
	return postern.Participant{PhoneNumber: postern.Maybe(number), LID: postern.Maybe("lid:9" + number[1:]), Role: role}
}

// TestGroupNotices applies notices one after the other, each twice: what is known already is reported by no event.
func TestGroupNotices(t *testing.T) {
	t.Parallel()
	own, ann, ben := member("+1000001", "member"), member("+1000002", "owner"), member("+1000003", "member")
	start := postern.Group{GroupSummary: postern.GroupSummary{
		ChatID: "group:1", Subject: "A", Size: 2, Role: "member", CreatedAt: 1,
	}, Participants: []postern.Participant{ann, own}}
	later := start
	later.Subject, later.Participants = "B", []postern.Participant{member("+1000002", "member"), own, ben}
	people := func(p ...postern.Participant) []postern.Participant { return p }
	g, is := postern.Group{}, postern.GroupUnknown
	for i, step := range []struct {
		notice postern.GroupNotice
		want   string
	}{
		{postern.GroupNotice{Seen: &start, Joins: true}, "group.joined"},
		{postern.GroupNotice{Change: postern.GroupChange{Description: new("x"), AnnounceOnly: new(true)}}, "group.updated[announceOnly description]"},
		{postern.GroupNotice{Action: "add", Participants: people(ben, ann)}, "group.participants add[+1000003]"},
		{postern.GroupNotice{Action: "promote", Participants: people(own, ann)}, "group.participants promote[+1000001]"},
		{postern.GroupNotice{Action: "demote", Participants: people(own, ben)}, "group.participants demote[+1000001]"},
		{postern.GroupNotice{Action: "remove", Participants: people(postern.Participant{LID: ben.LID})}, "group.participants remove[]"},
		{postern.GroupNotice{Seen: &later}, "group.updated[announceOnly description subject] group.participants add[+1000003] group.participants demote[+1000002]"},
		{postern.GroupNotice{Left: true, Participants: people(own)}, "group.left"},
		{postern.GroupNotice{Change: postern.GroupChange{Subject: new("not ours")}}, ""},
	} {
		step.notice.ChatID = "group:1"
		var events []postern.GroupEvent
		for _, want := range []string{step.want, ""} {
			var stays bool
			if g, stays, events = step.notice.Apply(g, is, own); stays {
				is = postern.InGroup
			} else {
				is = postern.OutOfGroup
			}
			if got := told(events); got != want {
				t.Errorf("%d: %s\nwant %s", i, got, want)
			}
		}
	}
	if is != postern.OutOfGroup || g.Size != 2 || len(g.Participants) != 2 || g.Subject != "B" {
		t.Errorf("in the end %v %+v", is, g)
	}
}

// A part of a group that is not known is ignored, and so is an answer that is older than the notice that the account
// has left.
func TestGroupNoticesWithoutAGroup(t *testing.T) {
	t.Parallel()
	own := member("+1000001", "member")
	add := postern.GroupNotice{ChatID: "group:1", Action: "add", Participants: []postern.Participant{member("+1000002", "member")}}
	whole := postern.Group{GroupSummary: postern.GroupSummary{ChatID: "group:1", Subject: "A", CreatedAt: 1}}
	seen := postern.GroupNotice{ChatID: "group:1", Seen: &whole}
	for _, tt := range []struct {
		notice postern.GroupNotice
		is     postern.GroupStanding
		stays  bool
	}{
		{add, postern.GroupUnknown, false}, {add, postern.OutOfGroup, false}, {seen, postern.OutOfGroup, false},
		{seen, postern.GroupUnknown, true},
	} {
		if _, stays, events := tt.notice.Apply(postern.Group{}, tt.is, own); stays != tt.stays || len(events) > 0 {
			t.Errorf("%+v %s: %v %s", tt.notice, tt.is, stays, told(events))
		}
	}
}

func told(events []postern.GroupEvent) string {
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = string(e.Type)
		if len(e.Object.Changed) > 0 {
			words[i] += fmt.Sprint(e.Object.Changed)
		}
		if e.Type == postern.GroupParticipants {
			who := []string{}
			for _, p := range e.Object.Participants {
				if p.PhoneNumber != "" {
					who = append(who, string(p.PhoneNumber))
				}
			}
			slices.Sort(who)
			words[i] += " " + string(e.Object.Action) + fmt.Sprint(who)
		}
	}
	return strings.Join(words, " ")
}

func TestParseInvite(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"Jt3mHkq0s7c9oWf2Yv1xZb", "https://chat.example.com/Jt3mHkq0s7c9oWf2Yv1xZb", " http://chat.example.com/invite/Jt3mHkq0s7c9oWf2Yv1xZb?mode=ac_t "} {
		if code, err := postern.ParseInvite(ok); err != nil || code != "Jt3mHkq0s7c9oWf2Yv1xZb" {
			t.Errorf("%q: %q %v", ok, code, err)
		}
	}
	for _, bad := range []string{"", "https://chat.example.com/", "a b", "<x>", strings.Repeat("a", 65), "é"} {
		if _, err := postern.ParseInvite(bad); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
