package testkit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// subgroups returns the groups of a community, each as its kind and subject.
func subgroups(c *testkit.Client, d postern.Device, community string) (list []string, ids []string) {
	var all struct{ Data []postern.Subgroup }
	c.Call("GET", path(d, "/groups/"+community+"/subgroups"), nil, 200, &all)
	for _, s := range all.Data {
		list, ids = append(list, s.Kind+" "+s.Subject), append(ids, s.ChatID)
	}
	return list, ids
}

// newGroupBy creates a group of a device's account.
func newGroupBy(c *testkit.Client, d postern.Device, more map[string]any) (g gateway.CreatedGroup) {
	in := map[string]any{"subject": "Acme", "participants": []string{ann}}
	for name, value := range more {
		in[name] = value
	}
	c.Call("POST", path(d, "/groups"), in, 201, &g)
	return g
}

// communityOf waits until a listed group belongs to a community; "" for none.
func communityOf(t *testing.T, c *testkit.Client, d postern.Device, chat, want string) {
	t.Helper()
	testkit.Eventually(t, chat+" belongs to "+want, func() (bool, any) {
		var all struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &all)
		i := slices.IndexFunc(all.Data, func(g postern.GroupSummary) bool { return g.ChatID == chat })
		return i >= 0 && string(all.Data[i].CommunityID) == want, all.Data
	})
}

// A community is created, with a group in it; other groups are put in and taken out. It is not a chat, and its groups are.
func TestCommunities(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("group.*")
		d := c.Link(phone)
		community := newGroupBy(c, d, map[string]any{"community": true})
		if community.Kind != postern.CommunityGroup || community.CommunityID != "" {
			t.Errorf("the community is %+v", community.GroupSummary)
		}
		inside := newGroupBy(c, d, map[string]any{"subject": "News", "communityId": community.ChatID})
		if inside.Kind != postern.PlainGroup || string(inside.CommunityID) != community.ChatID {
			t.Errorf("the group in it is %+v", inside.GroupSummary)
		}
		list, ids := subgroups(c, d, community.ChatID)
		if !slices.Equal(list, []string{"announcements Acme", "group News"}) || ids[1] != inside.ChatID {
			t.Fatalf("its groups are %q", list)
		}
		communityOf(t, c, d, ids[0], community.ChatID)

		send := func(to string) testkit.Answer {
			return c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": to, "body": "hello"})
		}
		if a := send(community.ChatID); a.Status != 422 || !strings.Contains(string(a.Body), "subgroups") {
			t.Errorf("a message to the community is answered %d %s", a.Status, a.Body)
		}
		for _, chat := range ids {
			if a := send(chat); a.Status != 202 {
				t.Errorf("a message to %s is answered %d %s", chat, a.Status, a.Body)
			}
		}
		testkit.Eventually(t, "both are shown by a member", func() (bool, any) {
			shown := k.Vendor.Shown(ann)
			return len(shown) == 2, shown
		})

		other := newGroupBy(c, d, map[string]any{"subject": "Shop", "participants": []string{ben}})
		link := path(d, "/groups/"+community.ChatID+"/subgroups/"+other.ChatID)
		c.Call("PUT", link, nil, 204, nil)
		communityOf(t, c, d, other.ChatID, community.ChatID)
		if list, _ := subgroups(c, d, community.ChatID); !slices.Contains(list, "group Shop") || len(list) != 3 {
			t.Errorf("its groups are %q", list)
		}
		var whole postern.Group
		c.Call("GET", path(d, "/groups/"+community.ChatID), nil, 200, &whole)
		if whole.Size != 3 {
			t.Errorf("the community has %d members", whole.Size)
		}
		c.Call("DELETE", link, nil, 204, nil)
		communityOf(t, c, d, other.ChatID, "")
		told := 0
		for _, got := range hooks.AwaitCount(postern.GroupUpdated, 2) {
			g := members(t, got, "group")
			if g["chatId"] == other.ChatID && fmt.Sprint(g["changed"]) == "[communityId]" {
				told++
			}
		}
		if told != 2 {
			t.Errorf("%d events report that the group changed its community", told)
		}
		c.Call("DELETE", link, nil, 404, nil)
		c.Call("GET", path(d, "/groups/"+other.ChatID+"/subgroups"), nil, 404, nil)
		c.Call("PUT", path(d, "/groups/x/subgroups/"+other.ChatID), nil, 404, nil)
	})
}

// What others do with communities arrives. The account may not put its group into the community of somebody else.
func TestCommunitiesOfOthers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		g, chat := newGroup(t, k, ann, phone)
		communityOf(t, c, d, chat, "")
		community, err := k.Vendor.Communities().Create("Theirs", ann)
		if err != nil {
			t.Fatal(err)
		}
		own := newGroupBy(c, d, nil)
		c.Call("PUT", path(d, "/groups/group:"+community.ID+"/subgroups/"+own.ChatID), nil, 409, nil)
		for _, on := range []bool{true, false} {
			if err := k.Vendor.Communities().Link(community.ID, g.ID, ann, on); err != nil {
				t.Fatal(err)
			}
			want := ""
			if on {
				want = "group:" + community.ID
			}
			communityOf(t, c, d, chat, want)
		}
		if got := c.Do("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": "group:" + community.ID, "body": "hello",
		}); got.Status != 422 {
			t.Errorf("a message to the community is answered %d %s", got.Status, got.Body)
		}
	})
}
