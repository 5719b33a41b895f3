package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// A group of 300 is created, written to, read by all, changed and left. A direct message that is sent right behind the one
// to the group does not wait for long.
func TestGroupOfThreeHundred(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		members := make([]string, 299)
		for i := range members {
			members[i] = fmt.Sprintf("+1556000%04d", i)
		}
		var g gateway.CreatedGroup
		c.Call("POST", path(d, "/groups"), map[string]any{"subject": "All", "participants": members}, 201, &g)
		if g.Size != 300 || len(g.Participants) != 300 || len(g.Outcomes) != 0 {
			t.Fatalf("the group has %d members, and outcomes %+v", g.Size, g.Outcomes)
		}
		send := func(to, body string) (m postern.Message) {
			c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": to, "body": body}, 202, &m)
			return m
		}
		for _, body := range []string{"first", "second"} {
			m, began := send(g.ChatID, body), time.Now()
			direct := send(ann, "direct")
			c.AwaitMessage(direct.ID, postern.Delivered)
			t.Logf("the direct message behind the %s one to the group is delivered after %v", body, time.Since(began))
			c.AwaitMessage(m.ID, postern.Delivered)
			t.Logf("and the one to the group after %v", time.Since(began))
			for _, member := range members {
				shown := k.Vendor.Shown(member)
				if len(shown) == 0 || shown[len(shown)-1].Body != body {
					t.Fatalf("the phone of %s shows %+v", member, shown)
				}
				if err := k.Vendor.GroupReceipt(phone, member, m.NetworkID, vendorsim.Read); err != nil {
					t.Fatal(err)
				}
			}
			c.AwaitMessage(m.ID, postern.Read)
			t.Logf("and read after %v", time.Since(began))
		}
		at := path(d, "/groups/"+g.ChatID)
		c.Call("POST", at+"/participants", map[string]any{"remove": members[:100], "promote": members[100:150]}, 200, nil)
		c.Call("PATCH", at, map[string]any{"subject": "Some"}, 200, nil)
		var after postern.Group
		c.Call("GET", at, nil, 200, &after)
		admins := 0
		for _, p := range after.Participants {
			if p.Role != postern.GroupMember {
				admins++
			}
		}
		if after.Size != 200 || after.Subject != "Some" || admins != 51 {
			t.Errorf("the group has %d members and %d administrators: %s", after.Size, admins, after.Subject)
		}
		m := send(g.ChatID, "third")
		c.AwaitMessage(m.ID, postern.Delivered)
		if shown := k.Vendor.Shown(members[0]); shown[len(shown)-1].Body == "third" {
			t.Error("somebody who was removed got the message")
		}
		c.Call("POST", at+"/leave", nil, 204, nil)
		if left := k.Vendor.Groups(members[299-1])[0]; len(left.Members) != 199 {
			t.Errorf("%d members are left", len(left.Members))
		}
	})
}
