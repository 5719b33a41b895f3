package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	asks "postern/internal/store/requests"
)

const aGroup = "/groups/group:120363041234567890"

const aChannel = "/channels/channel:120363041234567890"

// theChannel is the channel that is followed and unfollowed here.
func theChannel() postern.Channel {
	return postern.Channel{
		ChatID: "channel:120363041234567890", Name: "Opening hours", Description: "When our shops are open", Followers: 250,
		Role: postern.ChannelFollower, URL: "https://chat.example.com/channel/0029VaJt3mHkq0s7c9oWf2", CreatedAt: 1795251600000,
	}
}

// theGroup is the only group of each device here.
func theGroup() postern.Group {
	return postern.Group{
		GroupSummary: postern.GroupSummary{
			ChatID: "group:120363041234567890", Subject: "Support", Size: 2, Role: postern.GroupAdmin, CreatedAt: 1795251600000,
			Kind: postern.PlainGroup,
		},
		Participants: []postern.Participant{
			{PhoneNumber: "+15550001111", LID: "lid:123456789012346", Role: postern.GroupAdmin},
			{PhoneNumber: "+15551234567", LID: "lid:123456789012345", Role: postern.GroupMember},
		},
	}
}

// grouped is a device that is in the group.
func grouped(t *tenant) string {
	id := connected(t)
	d, err := t.db.Devices.ForEngine(t.t.Context(), postern.DeviceID(id))
	if err == nil {
		g := theGroup()
		err = t.g.Sessions.NoteGroup(t.t.Context(), d, postern.GroupNotice{ChatID: g.ChatID, Seen: &g, Joins: true})
	}
	if err != nil {
		t.t.Fatal(err)
	}
	labeled(t, id)
	return id
}

// labeled makes two labels of a device, and puts one on a chat.
func labeled(t *tenant, id string) {
	label, other := postern.Label{ID: "5", Name: "New customer", Color: 3}, postern.Label{ID: "6", Name: "Paid", Color: 4}
	err := t.g.Sessions.SetLabels(t.t.Context(), postern.DeviceID(id), postern.LabelChanges{
		Labels: []postern.LabelEdit{{Label: label}, {Label: other}}, Chats: []postern.ChatLabel{{ChatID: "+15551234567", LabelID: "5", On: true}},
	})
	if err != nil {
		t.t.Fatal(err)
	}
}

// member is the device of the tenant for the routes of groups.
func member(t *tenant) string {
	t.inGroup.Do(func() { t.grouped = grouped(t) })
	return t.grouped
}

// answerRequests answers what callers ask the live sessions of devices, until ctx is done: there is one group. What cannot
// be answered fails the test that waits for it.
func answerRequests(ctx context.Context, g *gateway.Gateway) {
	table := g.Sessions.Requests()
	waiting := table.Watch()
	defer waiting.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-waiting.C():
		}
		for _, id := range waiting.Take() {
			list, err := table.Take(ctx, postern.DeviceID(id), 10)
			if err != nil {
				continue
			}
			for _, r := range list {
				if table.Answer(ctx, r, answerGroup(r)) != nil {
					return
				}
			}
		}
	}
}

func answerGroup(r asks.Request) asks.Outcome {
	who := postern.ParticipantOutcome{
		PhoneNumber: "+15551234567", LID: "lid:123456789012345", Action: postern.AddParticipants, Status: postern.ParticipantDone,
	}
	var output any
	switch r.Kind {
	case gateway.CheckNumbers:
		output = []postern.CheckedNumber{
			{PhoneNumber: "+15551234567", Exists: true, NetworkNumber: "+15551234567", LID: "lid:123456789012345"},
		}
	case gateway.ListChannels:
		output = []postern.Channel{theChannel(), {
			ChatID: "channel:120363041234567891", Name: "Offers", Followers: 80, Role: postern.ChannelOwner,
			URL: "https://chat.example.com/channel/0029VaJt3mHkq0s7c9oWf3", CreatedAt: 1795251600000,
		}}
	case gateway.FollowChannel:
		output = theChannel()
	case gateway.ShowTyping, gateway.RejectCall, gateway.AskHistory, gateway.ChangeChat, gateway.UnfollowChannel, gateway.ChangeBlocked:
		output = struct{}{}
	case gateway.ChangeLabel:
		output = postern.Label{ID: "5", Name: "New customer", Color: 3}
	case gateway.ListBlocked:
		output = []postern.BlockedContact{
			{ChatID: "+15551234567", PhoneNumber: "+15551234567", LID: "lid:123456789012345"},
			{ChatID: "lid:123456789012347", LID: "lid:123456789012347"},
		}
	case gateway.ContactPicture:
		output = gateway.Picture{ID: "1", Bytes: jpegFile()}
	case gateway.GetProfile, gateway.ChangeProfile:
		output = gateway.ShownProfile{
			Name: "Acme", About: "We answer from 9 to 5", Picture: gateway.Picture{ID: "1", Bytes: jpegFile()},
		}
	}
	switch gateway.GroupAction(r.Kind) {
	case gateway.GroupGet, gateway.GroupChange:
		output = theGroup()
	case gateway.GroupCreate:
		who.PhoneNumber, who.LID, who.Status = "+15557654321", "", postern.ParticipantNotAllowed
		output = gateway.CreatedGroup{Group: theGroup(), Outcomes: []postern.ParticipantOutcome{who}}
	case gateway.GroupParticipants:
		output = []postern.ParticipantOutcome{who}
	case gateway.GroupInvite:
		output = gateway.Invitation{URL: "https://chat.example.com/Jt3mHkq0s7c9oWf2Yv1xZb"}
	case gateway.GroupRequests:
		output = []postern.JoinRequest{
			{LID: who.LID, RequestedAt: 1795251600000}, {LID: "lid:123456789012347", RequestedAt: 1795251600000},
		}
	case gateway.GroupPicture:
		output = gateway.Picture{ID: "1", Bytes: jpegFile()}
	case gateway.GroupSubgroups:
		output = []postern.Subgroup{
			{ChatID: "group:120363041234567891", Subject: "Support", Kind: postern.AnnouncementsGroup},
			{ChatID: "group:120363041234567892", Subject: "Sales", Kind: postern.PlainGroup},
		}
	case gateway.GroupLeave, gateway.GroupSetPicture, gateway.GroupLink:
		output = struct{}{}
	case gateway.GroupJoin:
		output = gateway.JoinedGroup{ChatID: theGroup().ChatID, Status: "joined"}
	}
	raw, err := json.Marshal(output)
	if err != nil {
		return asks.Outcome{Reason: postern.Internal, Detail: err.Error()}
	}
	return asks.Outcome{Output: raw}
}

// TestGroupRequestsAreChecked sends what no session is asked for.
func TestGroupRequestsAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("growth")
	id := grouped(mine)
	at := "/v1/devices/" + id + "/groups"
	for _, c := range []struct {
		method, path, body string
		status             int
		reason             postern.Reason
	}{
		{"POST", at, `{"subject":"","participants":[]}`, 422, postern.ValidationFailed},
		{"POST", at, `{"subject":"A","participants":["anna"]}`, 422, postern.ValidationFailed},
		{"POST", at, `{"subject":"A","participants":["group:1"]}`, 422, postern.ValidationFailed},
		{"POST", at, `{"subject":"A"}`, 422, postern.ValidationFailed},
		{"POST", at + "/join", `{"invite":"a b"}`, 422, postern.ValidationFailed},
		{"GET", at + "/+15551234567", "", 404, postern.NotFound},
		{"GET", at + "/group:x", "", 404, postern.NotFound},
		{"PATCH", "/v1/devices/" + id + aGroup, `{"disappearing":5}`, 422, postern.ValidationFailed},
		{"POST", "/v1/devices/" + id + aGroup + "/participants", `{}`, 200, ""},
		{"POST", "/v1/devices/" + id + aGroup + "/requests", `{"approve":["x"]}`, 422, postern.ValidationFailed},
	} {
		mine.do(c.method, c.path, c.body).want(c.status, c.reason)
	}
	mine.do("POST", "/v1/devices/"+id+"/pause", "").want(http.StatusOK, "")
	mine.do("GET", at, "").want(http.StatusOK, "")
	mine.do("GET", "/v1/devices/"+id+aGroup, "").want(http.StatusConflict, postern.DeviceNotConnected)
}

// jpegFile is a small picture.
func jpegFile() []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		panic(err) // it is always the same
	}
	return b.Bytes()
}
