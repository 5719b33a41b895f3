package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func lid(n int) types.JID { return types.NewJID(fmt.Sprint(9_000_000+n), types.HiddenUserServer) }

// A group of the network is cut to what any real one has, and its members without an address are left out.
func TestHostileGroups(t *testing.T) {
	t.Parallel()
	bomb := &types.GroupInfo{
		JID:       types.NewJID("1203", types.GroupServer),
		GroupName: types.GroupName{Name: strings.Repeat("\u202e𝕏", 1_000_000)}, ParticipantCount: -5,
		GroupTopic: types.GroupTopic{Topic: strings.Repeat("\xff", 1_000_000)},
	}
	for i := range 100_000 {
		bomb.Participants = append(bomb.Participants, types.GroupParticipant{JID: lid(i)})
	}
	g := Info(bomb, postern.Participant{})
	if n := len([]rune(g.Subject)); n != postern.MaxGroupSubject || len(g.Participants) != maxMembers ||
		g.Size != maxMembers || len([]rune(g.Description)) > postern.MaxGroupDescription || !strings.HasPrefix(g.Subject, "\u202e") {
		t.Errorf("%d characters, %d members of %d, %d bytes of description", n, len(g.Participants), g.Size, len(g.Description))
	}
	strange := &types.GroupInfo{JID: types.NewJID("1203", types.GroupServer), Participants: []types.GroupParticipant{
		{}, {JID: types.NewJID("13135550002", types.BotServer)}, {JID: types.NewJID("15550000001", types.HostedServer)},
		{JID: lid(1), IsSuperAdmin: true},
	}}
	g = Info(strange, person(lid(1)))
	if len(g.Participants) != 2 || g.Participants[0].PhoneNumber != "+15550000001" || g.Role != postern.GroupOwner {
		t.Errorf("%+v", g)
	}
}

// Notices without what they usually have are read as far as they go.
func TestChangesOfANotice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		evt  events.GroupInfo
		want postern.GroupChange
	}{
		"nothing":  {},
		"approval": {evt: events.GroupInfo{MembershipApprovalMode: &types.GroupMembershipApprovalMode{IsJoinApprovalRequired: true}}},
		"name":     {evt: events.GroupInfo{Name: &types.GroupName{Name: "A"}}, want: postern.GroupChange{Subject: new("A")}},
		"rules": {
			evt: events.GroupInfo{
				Announce: &types.GroupAnnounce{IsAnnounce: true}, Locked: &types.GroupLocked{},
				Ephemeral: &types.GroupEphemeral{DisappearingTimer: 86400}, Topic: &types.GroupTopic{TopicDeleted: true},
			},
			want: postern.GroupChange{
				AnnounceOnly: new(true), AdminsEdit: new(false), Disappearing: new(86400), Description: new(""),
			},
		},
	} {
		if got := changes(&tt.evt); show(got) != show(tt.want) {
			t.Errorf("%s: %s, want %s", name, show(got), show(tt.want))
		}
	}
}

func show(c postern.GroupChange) string {
	return fmt.Sprint(at(c.Subject), at(c.Description), at(c.AnnounceOnly), at(c.AdminsEdit), at(c.JoinApproval),
		at(c.Disappearing))
}

func at[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%v,", *p)
}

// What the network refuses is told apart from what it did not answer, and no error contains an address.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{
		&whatsmeow.IQError{Code: 403}:                            network.ErrGroupForbids,
		&whatsmeow.IQError{Code: 401}:                            network.ErrGroupForbids,
		&whatsmeow.IQError{Code: 404}:                            network.ErrNoSuchGroup,
		&whatsmeow.IQError{Code: 429}:                            network.ErrTooManyAsks,
		&whatsmeow.IQError{Code: 406}:                            network.ErrGroupRefused,
		whatsmeow.ErrInviteLinkRevoked:                           network.ErrInviteUseless,
		whatsmeow.ErrNotConnected:                                network.ErrNotConnected,
		&whatsmeow.IQError{Code: 503}:                            errNoAnswer,
		&whatsmeow.IQError{}:                                     errNoAnswer,
		whatsmeow.ErrIQTimedOut:                                  errNoAnswer,
		errors.New("failed for 15550000001@s.whatsapp.net: no"):  errNoAnswer,
		fmt.Errorf("wrapped: %w", &whatsmeow.IQError{Code: 403}): network.ErrGroupForbids,
	} {
		got := refusal(err)
		if !errors.Is(got, want) || strings.Contains(got.Error(), "1555") {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if refusal(nil) != nil {
		t.Error("no error is refused")
	}
}

// Only calls that ring now can be rejected, and not more than a few are remembered.
func TestRinging(t *testing.T) {
	t.Parallel()
	var r Ringing
	now := time.Now()
	for i := range 10 * maxRinging {
		r.Begin(fmt.Sprint(i), lid(i), now)
	}
	r.Begin("old", lid(1), now.Add(-2*ringTime))
	r.Begin("ended", lid(2), now)
	r.End("ended")
	r.End("never")
	for id, rings := range map[string]bool{"0": false, "319": true, "old": false, "ended": false, "": false} {
		if _, ok := r.creator(id); ok != rings {
			t.Errorf("call %q rings: %v", id, ok)
		}
	}
	if len(r.calls) > maxRinging {
		t.Errorf("%d calls", len(r.calls))
	}
}
