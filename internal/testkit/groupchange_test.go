package testkit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// groupOf is the object of an event about a group.
type groupOf struct {
	ChatID       string
	Subject      string
	Size         int
	Role         string
	Changed      []string
	Action       string
	By           *struct{ PhoneNumber string }
	Participants []struct{ PhoneNumber, Role string }
}

func (g groupOf) String() string {
	by := ""
	if g.By != nil {
		by = g.By.PhoneNumber
	}
	who := make([]string, len(g.Participants))
	for i, p := range g.Participants {
		who[i] = p.PhoneNumber
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %v %v by %s, %d members, %s", g.Subject, g.Action, g.Changed, who, by, g.Size, g.Role))
}

// wantGroups compares the events of a type about groups, in their order.
func wantGroups(t *testing.T, hooks *testkit.Receiver, kind postern.EventType, want ...string) {
	t.Helper()
	for i, got := range hooks.AwaitCount(kind, len(want)) {
		var e struct{ Group groupOf }
		decode(t, got, &e)
		if e.Group.String() != want[i] {
			t.Errorf("%s %d: %s\nwant %s", kind, i, e.Group, want[i])
		}
	}
}

func decode(t *testing.T, d testkit.Delivery, to any) {
	t.Helper()
	if err := json.Unmarshal(d.Body, to); err != nil {
		t.Fatal(err)
	}
}

// linked links a device that is in a group, and waits until its groups are listed.
func linked(t *testing.T, k *testkit.Kit, c *testkit.Client) postern.Device {
	t.Helper()
	g, _ := newGroup(t, k, ann, phone)
	d := c.Link(phone)
	testkit.Eventually(t, "the groups are listed", func() (bool, any) {
		var list struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &list)
		return len(list.Data) == 1 && list.Data[0].ChatID == "group:"+g.ID, list
	})
	return d
}

const private = vendorsim.NumberPrivate

// A group is created, changed and left by the API; all phones see it, and every change is reported once.
func TestGroupIsManaged(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.*")
		d := linked(t, k, c)
		var made gateway.CreatedGroup
		c.Call("POST", path(d, "/groups"), map[string]any{
			"subject": "Support", "participants": []string{ann, private, vendorsim.NumberUnknown},
		}, 201, &made)
		if made.Size != 2 || made.Role != postern.GroupOwner || len(made.Participants) != 2 || len(made.Outcomes) != 2 {
			t.Fatalf("the new group is %+v", made)
		}
		for _, o := range made.Outcomes {
			want := map[string]string{private: postern.ParticipantNotAllowed, vendorsim.NumberUnknown: postern.ParticipantNotFound}
			if o.Status != want[string(o.PhoneNumber)] {
				t.Errorf("an outcome is %+v", o)
			}
		}
		at := path(d, "/groups/"+made.ChatID)
		var g postern.Group
		c.Call("PATCH", at, map[string]any{
			"subject": "Sales", "description": "Ask us", "announceOnly": true, "adminsEdit": true, "joinApproval": true,
			"disappearing": 604800,
		}, 200, &g)
		if g.Subject != "Sales" || g.Description != "Ask us" || !g.AnnounceOnly || !g.AdminsEdit || !g.JoinApproval ||
			g.Disappearing != 604800 {
			t.Errorf("the changed group is %+v", g)
		}
		var outcomes struct{ Data []postern.ParticipantOutcome }
		c.Call("POST", at+"/participants", map[string]any{"add": []string{ben, ann}, "promote": []string{ben}}, 200, &outcomes)
		statuses := []string{}
		for _, o := range outcomes.Data {
			statuses = append(statuses, fmt.Sprint(o.PhoneNumber, " ", o.Action, " ", o.Status))
		}
		slices.Sort(statuses)
		if want := []string{ann + " add unchanged", ben + " add done", ben + " promote done"}; !slices.Equal(statuses, want) {
			t.Errorf("the outcomes are %v", statuses)
		}
		c.Call("POST", at+"/participants", map[string]any{"remove": []string{ann}}, 200, nil)
		c.Call("POST", at+"/leave", nil, 204, nil)
		c.Call("GET", at, nil, 409, nil)
		wantGroups(t, hooks, postern.GroupJoined, "Support  [] [] by "+phone+", 2 members, owner")
		wantGroups(t, hooks, postern.GroupParticipants,
			"Sales add [] ["+ben+"] by "+phone+", 3 members, owner", "Sales promote [] ["+ben+"] by "+phone+", 3 members, owner",
			"Sales remove [] ["+ann+"] by "+phone+", 2 members, owner")
		wantGroups(t, hooks, postern.GroupLeft, "Sales  [] [] by "+phone+", 1 members, owner")
		all := map[string]bool{}
		for _, got := range hooks.All() {
			var e struct{ Group groupOf }
			decode(t, got, &e)
			for _, name := range e.Group.Changed {
				if all[name] {
					t.Errorf("the change of %s is reported twice", name)
				}
				all[name] = true
			}
		}
		if len(all) != 6 {
			t.Errorf("the changes that were reported are %v", all)
		}
		if left := k.Vendor.Groups(ben); len(left) != 1 || left[0].Description != "Ask us" || len(left[0].Members) != 1 {
			t.Errorf("the phones see %+v", left)
		}
	})
}

// What others do in a group is reported, and the list shows it, without asking the network again.
func TestGroupsChangedByOthers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.*")
		old, _ := newGroup(t, k, ann, phone)
		d := c.Link(phone)
		subjects := func() []string {
			var list struct{ Data []postern.GroupSummary }
			c.Call("GET", path(d, "/groups"), nil, 200, &list)
			names := []string{}
			for _, g := range list.Data {
				names = append(names, fmt.Sprint(g.Subject, " ", g.Size, " ", g.Role))
			}
			slices.Sort(names)
			return names
		}
		eventually := func(want ...string) {
			t.Helper()
			testkit.Eventually(t, fmt.Sprintf("the groups are %v", want), func() (bool, any) {
				got := subjects()
				return slices.Equal(got, want), got
			})
		}
		eventually("Support 2 member")
		change := func(by string, g vendorsim.GroupChange) {
			t.Helper()
			if err := k.Vendor.ChangeGroup(old.ID, by, g); err != nil {
				t.Fatal(err)
			}
		}
		change(ann, vendorsim.GroupChange{Subject: new("Help"), Add: []string{ben}})
		change(ann, vendorsim.GroupChange{Promote: []string{phone}})
		eventually("Help 3 admin")
		wantGroups(t, hooks, postern.GroupUpdated, "Help  [subject] [] by "+ann+", 2 members, member")
		wantGroups(t, hooks, postern.GroupParticipants, "Help add [] ["+ben+"] by "+ann+", 3 members, member",
			"Help promote [] ["+phone+"] by "+ann+", 3 members, admin")
		change(ann, vendorsim.GroupChange{Remove: []string{phone}})
		wantGroups(t, hooks, postern.GroupLeft, "Help  [] [] by "+ann+", 2 members, admin")
		eventually()
		change(ann, vendorsim.GroupChange{Add: []string{phone}})
		wantGroups(t, hooks, postern.GroupJoined, "Help  [] [] by "+ann+", 3 members, member")
		c.Call("PATCH", path(d, "/groups/group:"+old.ID), map[string]any{"announceOnly": true}, 409, nil)
		c.Call("GET", path(d, "/groups/group:"+old.ID+"/invite"), nil, 409, nil)
		c.Call("GET", path(d, "/groups/group:120300"), nil, 404, nil)
	})
}

// A notice does not say whether administrators approve new members from now on, so the group is read.
func TestApprovalChangedByOthers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.updated")
		d := linked(t, k, c)
		g := k.Vendor.Groups(phone)[0]
		for i, on := range []bool{true, false} {
			if err := k.Vendor.ChangeGroup(g.ID, ann, vendorsim.GroupChange{JoinApproval: &on}); err != nil {
				t.Fatal(err)
			}
			hooks.AwaitCount(postern.GroupUpdated, i+1)
			var list struct{ Data []postern.GroupSummary }
			c.Call("GET", path(d, "/groups"), nil, 200, &list)
			if list.Data[0].JoinApproval != on {
				t.Errorf("the group is %+v", list.Data[0])
			}
		}
		const want = "Support  [joinApproval] [] by " + ann + ", 2 members, member"
		wantGroups(t, hooks, postern.GroupUpdated, want, want)
	})
}

// People join by the invitation, and wait for an administrator where the group wants that.
func TestGroupInvitations(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.*")
		d := linked(t, k, c)
		var made gateway.CreatedGroup
		c.Call("POST", path(d, "/groups"), map[string]any{"subject": "Support", "participants": []string{}}, 201, &made)
		at := path(d, "/groups/"+made.ChatID)
		id := strings.TrimPrefix(made.ChatID, "group:")
		if waits, err := k.Vendor.JoinGroup(id, ann); waits || err != nil {
			t.Fatal(waits, err)
		}
		wantGroups(t, hooks, postern.GroupParticipants, "Support add [] ["+ann+"] by "+ann+", 2 members, owner")
		c.Call("PATCH", at, map[string]any{"joinApproval": true}, 200, nil)
		for _, who := range []string{ben, reader} {
			if waits, err := k.Vendor.JoinGroup(id, who); !waits || err != nil {
				t.Fatal(waits, err)
			}
		}
		var waiting struct{ Data []postern.JoinRequest }
		c.Call("GET", at+"/requests", nil, 200, &waiting)
		if len(waiting.Data) != 2 || waiting.Data[0].LID == "" || waiting.Data[0].RequestedAt == 0 {
			t.Errorf("those who wait are %+v", waiting.Data)
		}
		var outcomes struct{ Data []postern.ParticipantOutcome }
		c.Call("POST", at+"/requests", map[string]any{"approve": []string{ben}, "reject": []string{reader}}, 200, &outcomes)
		if len(outcomes.Data) != 2 || outcomes.Data[0].Status != postern.ParticipantDone {
			t.Errorf("the outcomes are %+v", outcomes.Data)
		}
		var before, after gateway.Invitation
		c.Call("GET", at+"/invite", nil, 200, &before)
		c.Call("POST", at+"/invite/reset", nil, 200, &after)
		if before.URL == after.URL || before.URL == "" {
			t.Errorf("the invitations are %q and %q", before.URL, after.URL)
		}
		e := c.Link(ben2)
		c.Call("POST", path(e, "/groups/join"), map[string]any{"invite": before.URL}, 409, nil)
		var joined gateway.JoinedGroup
		c.Call("POST", path(e, "/groups/join"), map[string]any{"invite": after.URL}, 200, &joined)
		if joined.Status != "requested" || joined.ChatID != made.ChatID {
			t.Errorf("joining is %+v", joined)
		}
		c.Call("PATCH", at, map[string]any{"joinApproval": false}, 200, nil)
		c.Call("POST", path(e, "/groups/join"), map[string]any{"invite": after.URL}, 200, &joined)
		if joined.Status != "joined" {
			t.Errorf("joining is %+v", joined)
		}
		c.Call("POST", path(e, "/groups/join"), map[string]any{"invite": "no/code!"}, http.StatusUnprocessableEntity, nil)
	})
}

const ben2 = "+15550000013"

// One idempotency key creates one group, and a refusal frees it.
func TestGroupIsCreatedOnce(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	body := map[string]any{"subject": "Support", "participants": []string{ann}}
	var first, again gateway.CreatedGroup
	for _, g := range []*gateway.CreatedGroup{&first, &again} {
		a := c.Do("POST", path(d, "/groups"), body, "Idempotency-Key", "one")
		if err := json.Unmarshal(a.Body, g); err != nil || a.Status != http.StatusCreated {
			t.Fatal(a.Status, err)
		}
	}
	if first.ChatID == "" || first.ChatID != again.ChatID {
		t.Errorf("the groups are %q and %q", first.ChatID, again.ChatID)
	}
	if groups := k.Vendor.Groups(ann); len(groups) != 1 {
		t.Errorf("%d groups", len(groups))
	}
	for _, code := range []string{"wrong", "another"} {
		a := c.Do("POST", path(d, "/groups/join"), map[string]any{"invite": code}, "Idempotency-Key", "two")
		if a.Status != http.StatusConflict {
			t.Error(a.Status, string(a.Body))
		}
	}
}

// Those who do not let others add them get a message with which they can join, if the caller asks for it.
func TestThoseWhoCannotBeAddedAreInvited(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.participants", "message.received")
		d := linked(t, k, c)
		var made gateway.CreatedGroup
		c.Call("POST", path(d, "/groups"), map[string]any{"subject": "Support", "participants": []string{private}}, 201, &made)
		if len(made.Outcomes) != 1 || made.Outcomes[0].Invited || len(k.Vendor.Shown(private)) != 0 {
			t.Errorf("nobody asked for an invitation: %+v", made.Outcomes)
		}
		var outcomes struct{ Data []postern.ParticipantOutcome }
		at := path(d, "/groups/"+made.ChatID)
		c.Call("POST", at+"/participants", map[string]any{"add": []string{ann, private}, "invite": true}, 200, &outcomes)
		for _, o := range outcomes.Data {
			if o.Invited != (o.PhoneNumber == private) {
				t.Errorf("an outcome is %+v", o)
			}
		}
		shown := k.Vendor.Shown(private)
		if len(shown) != 1 || shown[0].Invite == nil || shown[0].Invite.Name != "Support" || shown[0].From != phone {
			t.Fatalf("the phone shows %+v", shown)
		}
		if err := k.Vendor.AcceptInvite(*shown[0].Invite, private); err != nil {
			t.Fatal(err)
		}
		wantGroups(t, hooks, postern.GroupParticipants, "Support add [] ["+ann+"] by "+phone+", 2 members, owner",
			"Support add [] ["+private+"] by "+private+", 3 members, owner")
		c.Call("POST", path(d, "/groups"), map[string]any{
			"subject": "Sales", "participants": []string{private}, "invite": true,
		}, 201, &made)
		if len(made.Outcomes) != 1 || !made.Outcomes[0].Invited || len(k.Vendor.Shown(private)) != 2 {
			t.Errorf("the outcomes are %+v", made.Outcomes)
		}
		_, err := k.Vendor.SendContent(t.Context(), phone, ann, vendorsim.Content{
			Type: vendorsim.TypeInvite, Invite: &vendorsim.Invite{Group: "120300", Name: "Theirs", Code: "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Message postern.Message }
		decode(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], &e)
		if e.Message.Content.Kind != postern.KindUnsupported || e.Message.Content.UnknownKind != "groupInvite" {
			t.Errorf("received %+v", e.Message.Content)
		}
	})
}

// The picture of a group is set, read as a file of the device, and removed. It is fetched again only when it has changed.
func TestGroupPictures(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := linked(t, k, c)
		g := k.Vendor.Groups(phone)[0]
		at := path(d, "/groups/group:"+g.ID+"/picture")
		c.Call("GET", at, nil, 404, nil)
		wide := encodeTo(t, png.Encode, image.NewGray(image.Rect(0, 0, 1500, 900)))
		c.Call("PUT", at, map[string]any{"media": map[string]any{"data": wide, "mimeType": "image/png"}}, 204, nil)
		sent, err := jpeg.Decode(bytes.NewReader(k.Vendor.GroupPicture(g.ID)))
		if err != nil || sent.Bounds().Dx() != 640 || sent.Bounds().Dy() != 640 {
			t.Fatalf("the phones see %v, %v", sent, err)
		}
		var first, same, other postern.Media
		c.Call("GET", at, nil, 200, &first)
		if first.MIMEType != "image/jpeg" || first.Width != 640 {
			t.Errorf("the file is %+v", first)
		}
		if a := c.Do("GET", "/v1/media/"+string(first.ID)+"/content", nil); !bytes.Equal(a.Body, k.Vendor.GroupPicture(g.ID)) {
			t.Errorf("the content has %d bytes: %d", len(a.Body), a.Status)
		}
		c.Call("GET", at, nil, 200, &same)
		if err := k.Vendor.SetGroupPicture(g.ID, ann, encodeTo(t, asJPEG, image.NewGray(image.Rect(0, 0, 96, 96)))); err != nil {
			t.Fatal(err)
		}
		c.Call("GET", at, nil, 200, &other)
		if same.ID != first.ID || other.ID == first.ID || other.Width != 96 {
			t.Errorf("the files are %+v, %+v and %+v", first, same, other)
		}
		if err := k.Vendor.ChangeGroup(g.ID, ann, vendorsim.GroupChange{AdminsEdit: new(true)}); err != nil {
			t.Fatal(err)
		}
		c.Call("DELETE", at, nil, 409, nil)
		if err := k.Vendor.ChangeGroup(g.ID, ann, vendorsim.GroupChange{AdminsEdit: new(false)}); err != nil {
			t.Fatal(err)
		}
		c.Call("DELETE", at, nil, 204, nil)
		c.Call("GET", at, nil, 404, nil)
		c.Call("PUT", at, map[string]any{"media": map[string]any{"data": []byte("text"), "mimeType": "image/png"}}, 422, nil)
	})
}

func encodeTo(t *testing.T, encode func(io.Writer, image.Image) error, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The timer of a group is a property of the group, and no message needs to tell it: the messages to the group carry it
// as soon as it is set, until it is turned off. Changes of it are kept for devices that want nothing else of groups, too.
func TestTimerOfAGroupIsKept(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := linked(t, k, c)
		var list struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &list)
		chat := list.Data[0].ChatID
		carries := func(seconds int) {
			t.Helper()
			testkit.Eventually(t, fmt.Sprintf("messages carry a timer of %d s", seconds), func() (bool, any) {
				m := c.AwaitMessage(send(c, d, chat, "hello").ID, postern.Delivered)
				shown, err := k.Vendor.ShownMessage(ann, m.NetworkID)
				if err != nil {
					t.Fatal(err)
				}
				return shown.Expires == seconds, shown.Expires
			})
		}
		set := func(seconds int) {
			t.Helper()
			change := vendorsim.GroupChange{Disappearing: new(seconds)}
			if err := k.Vendor.ChangeGroup(strings.TrimPrefix(chat, "group:"), ann, change); err != nil {
				t.Fatal(err)
			}
		}
		set(86400)
		carries(86400)
		c.Call("PATCH", path(d, "/groups/"+chat), map[string]any{"disappearing": 604800}, 200, nil)
		carries(604800)
		set(0)
		carries(0)
		c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"groups": false}}, 200, nil)
		set(86400)
		carries(86400)
	})
}
