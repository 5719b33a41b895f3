package testkit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// arrives checks that an account still receives what a contact writes to it.
func arrives(t *testing.T, k *testkit.Kit, hooks *testkit.Receiver, account string, n int) {
	t.Helper()
	if _, err := k.Vendor.Send(t.Context(), account, ann, "still there"); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.MessageReceived, n)
}

// A subject of 1 MB with control characters is cut, and stored by both engines.
func TestHostileSubjects(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "group.*")
		d := linked(t, k, c)
		g := k.Vendor.Groups(phone)[0]
		bombs := []string{
			strings.Repeat("a", 1<<20), "\x00\x01\x1b[2J\u202e" + strings.Repeat("\x00", 1<<16), "\xff\xfe" + strings.Repeat("\xc3", 1<<10),
			strings.Repeat("e\u0301\u0302", 1<<16),
		}
		for i, bomb := range bombs {
			change := vendorsim.GroupChange{Subject: &bomb, Description: new(bomb + bomb)}
			if err := k.Vendor.ChangeGroup(g.ID, ann, change); err != nil {
				t.Fatal(err)
			}
			arrives(t, k, hooks, phone, i+1)
		}
		for _, got := range hooks.AwaitCount(postern.GroupUpdated, len(bombs)) {
			var e struct{ Group postern.GroupSummary }
			decode(t, got, &e)
			if n := utf8.RuneCountInString(e.Group.Subject); n > postern.MaxGroupSubject || len(got.Body) > 1<<15 {
				t.Errorf("an event has %d bytes, and a subject of %d characters", len(got.Body), n)
			}
		}
		var list struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &list)
		if len(list.Data) != 1 {
			t.Errorf("the groups are %+v", list)
		}
	})
}

// A notice about a group that the account is not in changes nothing, and neither does one that is not complete.
func TestHostileNotices(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "group.*")
		d := linked(t, k, c)
		mine := k.Vendor.Groups(phone)[0].ID
		subject := waBinary.Node{Tag: "subject", Attrs: waBinary.Attrs{"subject": "Theirs", "s_t": 1, "s_o": types.EmptyJID}}
		stranger := waBinary.Node{Tag: "remove", Content: []waBinary.Node{
			{Tag: "participant", Attrs: waBinary.Attrs{"jid": types.NewJID("1999", types.HiddenUserServer)}},
		}}
		for id, children := range map[string][]waBinary.Node{
			"120300000000000007": {subject, stranger, {Tag: "delete", Attrs: waBinary.Attrs{"reason": "x"}}},
			mine:                 {stranger, {Tag: "subject"}, {Tag: "create"}, {Tag: "announcement"}, {Tag: "nonsense"}},
		} {
			for _, child := range children {
				if err := k.Vendor.ForgeGroupNotice(phone, id, ben, child); err != nil {
					t.Fatal(err)
				}
			}
		}
		arrives(t, k, hooks, phone, 1)
		for _, got := range hooks.All() {
			if strings.HasPrefix(fmt.Sprint(got.Event["type"]), "group.") {
				t.Errorf("an event reports %s", got.Body)
			}
		}
		var list struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &list)
		if len(list.Data) != 1 || list.Data[0].Subject != "Support" || list.Data[0].Size != 2 {
			t.Errorf("the groups are %+v", list)
		}
	})
}

// The largest group that a stanza can describe, of which the account learns when it is linked and by a notice, is cut to
// what groups of the network have. A member writes in it, and an account of another workspace receives meanwhile. No
// client can be told of 100,000 members: a list of the protocol has at most 65,535 nodes.
func TestLargestGroupOfAStanza(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, other := k.Workspace("growth"), k.Workspace("growth")
		hooks, others := c.Receive("message.received", "group.*"), other.Receive("message.received")
		other.Link("+15550001112")
		crowd := make([]string, 100_000)
		for i := range crowd {
			crowd[i] = fmt.Sprintf("+1557%07d", i)
		}
		if _, err := k.Vendor.CreateGroup("All", crowd...); !errors.Is(err, vendorsim.ErrTooManyMembers) {
			t.Errorf("a group of %d: %v", len(crowd), err)
		}
		crowd = append(crowd[:65_499:65_499], phone)
		first, _ := newGroup(t, k, crowd...)
		d := c.Link(phone)
		known := func(n int) {
			t.Helper()
			testkit.Eventually(t, fmt.Sprint(n, " groups"), func() (bool, any) {
				var list struct{ Data []postern.GroupSummary }
				c.Call("GET", path(d, "/groups"), nil, 200, &list)
				return len(list.Data) == n && list.Data[0].Size == 5000, list
			})
		}
		known(1)
		newGroup(t, k, crowd...)
		if _, err := k.VendorOf(other.Workspace).Send(t.Context(), "+15550001112", ann, "meanwhile"); err != nil {
			t.Fatal(err)
		}
		others.AwaitCount(postern.MessageReceived, 1)
		known(2)
		hooks.AwaitCount(postern.GroupJoined, 1)
		writeIn(t, k, first, crowd[len(crowd)-2], "I am here")
		hooks.AwaitCount(postern.MessageReceived, 1)
		arrives(t, k, hooks, phone, 2)
		if now := c.Device(d.ID); now.Status != postern.Connected {
			t.Errorf("the device is %s (%s)", now.Status, now.StatusReason)
		}
	})
}
