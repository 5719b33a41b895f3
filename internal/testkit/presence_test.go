package testkit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/store/migrated"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// shownTo reads the stream of what others show to a device.
type shownTo struct {
	t      *testing.T
	leave  context.CancelFunc
	events chan [2]string // name and data; closed at the end of the stream
}

func readShown(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, chats ...string) *shownTo {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	at := k.URL() + path(d, "/presence/stream")
	if len(chats) > 0 {
		at += "?chatId=" + url.QueryEscape(strings.Join(chats, ","))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	res, err := testkit.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered %d", res.StatusCode)
	}
	s := &shownTo{t, cancel, make(chan [2]string, 100)}
	go func() {
		defer res.Body.Close()
		defer close(s.events)
		name := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if after, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = after
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.events <- [2]string{name, data}
			}
		}
	}()
	return s
}

// next returns the next event.
func (s *shownTo) next() (name string, data map[string]any) {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if err := json.Unmarshal([]byte(e[1]), &data); !ok || err != nil {
			s.t.Fatalf("the stream shows %q, open %t", e, ok)
		}
		return e[0], data
	case <-time.After(time.Minute):
		s.t.Fatal("nothing is shown")
		return "", nil
	}
}

// sees checks members of the next event.
func (s *shownTo) sees(name string, want map[string]any) {
	s.t.Helper()
	got, data := s.next()
	if got != name {
		s.t.Fatalf("the stream shows %s %v, want %s", got, data, name)
	}
	s.matches(data, want)
}

func (s *shownTo) matches(got, want map[string]any) {
	s.t.Helper()
	for member, value := range want {
		if fmt.Sprint(got[member]) != fmt.Sprint(value) {
			s.t.Fatalf("%s is %v, want %v, in %v", member, got[member], value, got)
		}
	}
}

// watches waits until the stream says whether updates arrive.
func (s *shownTo) watches(want bool) {
	s.t.Helper()
	s.sees("watching", map[string]any{"watching": want, "notWatched": "[]"})
}

// begins waits until updates arrive, and the first is there, in any order.
func (s *shownTo) begins(presence map[string]any) {
	s.t.Helper()
	want := map[string]map[string]any{"watching": {"watching": true, "notWatched": "[]"}, "presence": presence}
	for len(want) > 0 {
		name, data := s.next()
		if want[name] == nil {
			s.t.Fatalf("the stream shows %s %v", name, data)
		}
		s.matches(data, want[name])
		delete(want, name)
	}
}

// showsItself waits for what a companion of the account showed last.
func showsItself(t *testing.T, k *testkit.Kit, want ...vendorsim.MomentKind) {
	t.Helper()
	testkit.Eventually(t, "what the account shows", func() (bool, any) {
		var kinds []vendorsim.MomentKind
		for _, m := range k.Vendor.Moments(phone) {
			kinds = append(kinds, m.Kind)
		}
		return len(kinds) >= len(want) && slices.Equal(kinds[len(kinds)-len(want):], want), kinds
	})
}

// Readers see who types and who is online, and the account is online while there is a reader. Nothing of it is stored.
func TestOthersShowThemselves(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		network := k.Vendor.Online()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		c.Call("GET", path(d, "/presence/stream?chatId=group:1234"), nil, 422, nil)
		must(network.Appear(ann, vendorsim.Seen{Last: time.Unix(1_700_000_000, 0)}))
		s := readShown(t, k, c, d, ann)
		s.begins(map[string]any{"chatId": ann, "available": false, "lastSeenAt": "2023-11-14T22:13:20.000Z"})
		showsItself(t, k, vendorsim.MomentAvailable, vendorsim.MomentSubscribed)

		must(network.Type(phone, ann, "", vendorsim.MomentTyping))
		s.sees("typing", map[string]any{"chatId": ann, "from": ann, "typing": "text"})
		must(network.Type(phone, ben, "", vendorsim.MomentRecording))
		s.sees("typing", map[string]any{"chatId": ben, "from": ben, "typing": "voice"})
		must(network.Appear(ben, vendorsim.Seen{Online: true})) // nobody has asked
		must(network.Appear(ann, vendorsim.Seen{Online: true}))
		s.sees("presence", map[string]any{"chatId": ann, "available": true, "lastSeenAt": nil})

		g, group := newGroup(t, k, phone, ann)
		c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"groups": false}}, 200, nil)
		must(network.Type(phone, ann, g.ID, vendorsim.MomentTyping))
		must(network.Type(phone, ann, "", vendorsim.MomentPaused))
		s.sees("typing", map[string]any{"chatId": ann, "typing": "paused"})
		c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"groups": true}}, 200, nil)
		must(network.Type(phone, ann, g.ID, vendorsim.MomentTyping))
		s.sees("typing", map[string]any{"chatId": group, "from": ann, "typing": "text"})

		second := readShown(t, k, c, d, ann)
		second.begins(map[string]any{"chatId": ann, "available": true}) // what is known
		must(k.Vendor.Fault(t.Context(), phone, vendorsim.FaultReplay))
		must(k.Vendor.Fault(t.Context(), phone, vendorsim.FaultDrop))
		for _, r := range []*shownTo{s, second} {
			r.watches(false)
			r.begins(map[string]any{"chatId": ann, "available": true}) // and nothing that is repeated
		}
		s.leave()
		must(network.Type(phone, ann, "", vendorsim.MomentTyping))
		second.sees("typing", map[string]any{"chatId": ann, "typing": "text"})
		second.leave()
		showsItself(t, k, vendorsim.MomentAvailable, vendorsim.MomentSubscribed, vendorsim.MomentUnavailable)

		third := readShown(t, k, c, d)
		third.watches(true)
		c.Call("DELETE", path(d, ""), nil, 204, nil)
		for e := range third.events { // until the stream ends
			if e[0] != "watching" {
				t.Errorf("the stream of a deleted device shows %s", e)
			}
		}
		var log struct{ Data []struct{ Type string } }
		c.Call("GET", "/v1/events?limit=100", nil, 200, &log)
		for _, e := range log.Data {
			if !strings.HasPrefix(e.Type, "device.") && e.Type != "group.joined" {
				t.Errorf("the log has %s", e.Type)
			}
		}
	})
}

// Readers at each server see what is shown, wherever the device's session is, and also when that changes.
func TestOthersShowThemselvesAtEachServer(t *testing.T) {
	t.Parallel()
	first := testkit.StartOn(t, migrated.URL(t))
	first.Stop()
	first.Shared = true
	first.Boot()
	c := first.Workspace("growth")
	d := c.Link(phone) // the other server has no reason to take it
	second := first.Another()
	network := first.Vendor.Online()
	readers := []*shownTo{readShown(t, first, c, d, ann), readShown(t, second, c, d, ben)}
	for i, who := range []string{ann, ben} {
		readers[i].watches(true)
		if err := network.Appear(who, vendorsim.Seen{Online: true}); err != nil {
			t.Fatal(err)
		}
		readers[i].sees("presence", map[string]any{"chatId": who, "available": true})
	}
	late := readShown(t, second, c, d, ann) // the other server has asked about her
	late.begins(map[string]any{"chatId": ann, "available": true})
	if err := network.Type(phone, ann, "", vendorsim.MomentTyping); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(readers, late) {
		r.sees("typing", map[string]any{"chatId": ann, "from": ann, "typing": "text"})
	}
	first.Stop()
	for who, r := range map[string]*shownTo{ben: readers[1], ann: late} {
		r.watches(false)
		r.begins(map[string]any{"chatId": who, "available": true})
	}
	if err := network.Type(phone, ben, "", vendorsim.MomentRecording); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*shownTo{readers[1], late} {
		r.sees("typing", map[string]any{"chatId": ben, "from": ben, "typing": "voice"})
		r.leave()
	}
	showsItself(t, second, vendorsim.MomentUnavailable)
}
