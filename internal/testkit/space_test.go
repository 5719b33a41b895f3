package testkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// phoneOf returns the texts that the simulated phone of a device shows.
func phoneOf(c *testkit.Client, d postern.Device) (texts []string) {
	var shown struct{ Data []struct{ Body string } }
	c.Call("GET", "/v1/sandbox/devices/"+string(d.ID)+"/phone", nil, 200, &shown)
	for _, m := range shown.Data {
		texts = append(texts, m.Body)
	}
	return texts
}

// TestT1SandboxNumbersBelongToTheirWorkspace links the same number in two workspaces, by
// codes that are open at the same time, and writes from both.
func TestT1SandboxNumbersBelongToTheirWorkspace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		type side struct {
			c *testkit.Client
			d postern.Device
		}
		var sides []side
		for range 2 {
			c := k.Workspace("growth")
			d := create(c)
			c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": phone}, 201, nil)
			awaitLink(t, c, d, func(l postern.Link) bool { return l.PairingCode != "" })
			sides = append(sides, side{c, d})
		}
		for i, s := range sides {
			if a := enter(s.c, s.d, map[string]any{}); a.Status != 200 {
				t.Fatalf("workspace %d: the phone got %d: %s", i, a.Status, a.Body)
			}
			s.c.Await(s.d.ID, postern.Connected)
		}
		say := func(round string) {
			for i, s := range sides {
				text := round + " of " + string(s.c.Workspace)
				s.c.AwaitMessage(send(s.c, s.d, reader, text).ID, postern.Read)
				s.c.Call("POST", "/v1/sandbox/devices/"+string(s.d.ID)+"/inbound",
					map[string]any{"from": customer, "body": "answer " + text}, 200, nil)
				testkit.Eventually(t, "the answer", func() (bool, any) {
					list := bodies(s.c, "direction=inbound&deviceId="+string(s.d.ID))
					return len(list) > 0 && list[len(list)-1] == "answer "+text, list
				})
				other := string(sides[1-i].c.Workspace)
				for _, seen := range append(phoneOf(s.c, s.d), bodies(s.c, "")...) {
					if strings.Contains(seen, other) {
						t.Errorf("workspace %d sees %q of the other one", i, seen)
					}
				}
			}
		}
		say("first")
		k.Stop()
		k.Boot()
		for _, s := range sides {
			s.c.Await(s.d.ID, postern.Connected)
		}
		say("second")
		if accounts := k.SessionAccounts(); len(accounts) != 2 {
			t.Errorf("session keys of %q, want two accounts", accounts)
		}
	})
}

// TestSandboxDirectoryWithoutSpacesIsOpened starts with the directory of a server whose
// workspaces shared one number space.
func TestSandboxDirectoryWithoutSpacesIsOpened(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	k.Stop()
	vendor := t.TempDir()
	k.OpenSpaces(vendor, nil)
	k.Boot()
	c := k.Workspace("growth")
	d := c.Link(phone)
	c.AwaitMessage(send(c, d, reader, "before").ID, postern.Read)
	k.Stop()
	k.OpenSpaces("", nil)
	space := filepath.Join(vendor, "spaces", string(c.Workspace))
	if err := os.Rename(filepath.Join(space, "vendor.journal"), filepath.Join(vendor, "vendor.journal")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(space); err != nil {
		t.Fatal(err)
	}
	k.OpenSpaces(vendor, map[string]string{phone: string(c.Workspace)})
	k.Boot()
	c.Await(d.ID, postern.Connected)
	c.AwaitMessage(send(c, d, reader, "after").ID, postern.Read)
	if got := phoneOf(c, d); len(got) != 2 || got[0] != "before" || got[1] != "after" {
		t.Errorf("the phone shows %q, want what was written before and after", got)
	}
}
