package testkit_test

import (
	"fmt"
	"net/http"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// Numbers are looked up on the network once a day, and no faster than the device may start chats.
func TestNumbersAreChecked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		check := func(status int, numbers ...string) (list []postern.CheckedNumber) {
			t.Helper()
			var answer struct{ Data []postern.CheckedNumber }
			c.Call("POST", path(d, "/contacts/check"), map[string]any{"phoneNumbers": numbers}, status, &answer)
			return answer.Data
		}
		list := check(200, "+1 (555) 000-0011", absent, ann)
		if len(list) != 3 || !list[0].Exists || list[0].NetworkNumber != ann || list[0].LID == "" || list[1].Exists ||
			list[1].PhoneNumber != absent || list[1].NetworkNumber != "" || list[2] != list[0] {
			t.Fatalf("the answers are %+v", list)
		}
		c.Call("PATCH", path(d, ""), map[string]any{"pace": map[string]any{"newChatsPerMinute": 4}}, 200, nil)
		check(200, ann, absent) // known
		check(422, "+15550000021", "+15550000022", "+15550000023", "+15550000024", "+15550000025")
		check(200, "+15550000021", "+15550000022", ann)
		a := c.Do("POST", path(d, "/contacts/check"), map[string]any{"phoneNumbers": []string{"+15550000023"}})
		if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("beyond the pace: %d %s", a.Status, a.Body)
		}
		check(422, "anna")
	})
}

// Who types is shown in the chat, and a call that rings is rejected.
func TestWhatIsShownAtOnce(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("call.*")
	d := c.Link(phone)
	_, chat := newGroup(t, k, ann, phone)
	for _, typing := range []string{"text", "voice", "paused"} {
		c.Call("POST", path(d, "/chats/"+ann+"/typing"), map[string]any{"typing": typing}, 204, nil)
	}
	c.Call("POST", path(d, "/chats/"+chat+"/typing"), map[string]any{"typing": "text"}, 204, nil)
	c.Call("POST", path(d, "/chats/nobody/typing"), map[string]any{"typing": "text"}, 404, nil)
	c.Call("POST", path(d, "/chats/"+absent+"/typing"), map[string]any{"typing": "text"}, 404, nil)
	c.Call("POST", path(d, "/chats/+5531987654321/typing"), map[string]any{"typing": "text"}, 204, nil)
	id, err := k.Vendor.Call(t.Context(), phone, ann, vendorsim.Call{})
	if err != nil {
		t.Fatal(err)
	}
	hooks.Await(postern.CallReceived)
	c.Call("POST", path(d, "/calls/"+id+"/reject"), nil, 204, nil)
	c.Call("POST", path(d, "/calls/"+id+"/reject"), nil, 404, nil)
	want := []string{
		"typing " + ann, "recording " + ann, "paused " + ann, "typing " + chat[len("group:"):], "typing +553187654321",
		"rejected " + ann,
	}
	testkit.Eventually(t, "the phones show it", func() (bool, any) {
		got := []string{}
		for _, m := range k.Vendor.Moments(phone) {
			got = append(got, fmt.Sprint(m.Kind, " ", m.Peer))
		}
		return fmt.Sprint(got) == fmt.Sprint(want), got
	})
	if id, err = k.Vendor.Call(t.Context(), phone, ann, vendorsim.Call{Video: true}); err == nil {
		hooks.AwaitCount(postern.CallReceived, 2)
		err = k.Vendor.HangUp(t.Context(), phone, ann, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the call no longer rings", func() (bool, any) {
		a := c.Do("POST", path(d, "/calls/"+id+"/reject"), nil)
		return a.Status == http.StatusNotFound, a.Status
	})
}
