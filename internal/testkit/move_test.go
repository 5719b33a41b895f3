package testkit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/internal/db"
	"postern/internal/db/dbcopy"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/transfer"
	"postern/internal/testkit"
)

// A data directory moves to PostgreSQL and back: the device connects without a scan, everything that was
// there is still there, and what follows is numbered as if nothing had happened.
func TestDataMovesToPostgreSQLAndBack(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive()
	d := c.Link(phone)
	var file postern.Media
	c.Upload("a.txt", strings.NewReader("the contents of a file"), &file)
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "the first message"); err != nil {
		t.Fatal(err)
	}
	hooks.Await(postern.MessageReceived)
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/chats/"+customer+"/read", nil, 202, nil)
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "the second message"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the second message", func() (bool, any) {
		got := chatOf(c, d)
		return got.UnreadCount == 1, got
	})
	old, first := k.Config.Dir, transfer.Place{Dir: k.Config.Dir}
	url := transfer.Place{URL: dbtest.URL(t)}

	here := moveTo(t, k, c, d, first, url)
	k.Config.Dir = t.TempDir()
	key, err := os.ReadFile(filepath.Join(old, "secret.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(k.Config.Dir, "secret.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	back := moveTo(t, k, c, d, url, transfer.Place{Dir: k.Config.Dir})
	is := func(t dbcopy.Table) bool { return t.Name == "workspace" } // nothing has changed it meanwhile
	if a, b := slices.IndexFunc(here, is), slices.IndexFunc(back, is); here[a] != back[b] {
		t.Errorf("%v was moved, and %v moved back", here[a], back[b])
	}
	if _, err := os.Stat(filepath.Join(old, db.FileName)); err == nil {
		t.Error("the old database still has its name")
	}
	checkSequence(t, hooks.All(), d.ID)
}

// moveTo moves the data of a kit and goes on there.
func moveTo(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, from, to transfer.Place) []dbcopy.Table {
	t.Helper()
	before, unread := everything(c), chatOf(c, d).UnreadCount
	k.Stop()
	tables, err := transfer.Move(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	k.Config.DatabaseURL = seal.Secret(to.URL)
	if to.URL != "" {
		k.Config.SecretKeyFile = filepath.Join(k.Config.Dir, "secret.key")
	} else {
		k.Config.SecretKeyFile = ""
	}
	k.Boot()
	c.Await(d.ID, postern.Connected)
	m := send(c, d, reader, "after the move")
	c.AwaitMessage(m.ID, postern.Read)
	after := everything(c)
	if got := chatOf(c, d).UnreadCount; got != unread {
		t.Errorf("%d messages are unread, and %d were", got, unread)
	}
	for path, list := range before {
		if !isWithin(list, after[path]) {
			t.Errorf("%s showed\n%s\nand shows\n%s", path, list, after[path])
		}
	}
	testkit.Eventually(t, "an old message is found by its words", func() (bool, any) {
		var found struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?q=first", nil, 200, &found)
		return len(found.Data) == 1, found
	})
	return tables
}

// chatOf is the chat with the customer.
func chatOf(c *testkit.Client, d postern.Device) (chat postern.Chat) {
	c.Call("GET", "/v1/devices/"+string(d.ID)+"/chats/"+customer, nil, 200, &chat)
	return chat
}

// everything is what lists show, by their paths.
func everything(c *testkit.Client) map[string][]json.RawMessage {
	shown := map[string][]json.RawMessage{}
	for _, path := range []string{"/v1/messages?limit=100", "/v1/events?limit=100", "/v1/webhooks"} {
		var list struct{ Data []json.RawMessage }
		c.Call("GET", path, nil, 200, &list)
		shown[path] = list.Data
	}
	return shown
}

// isWithin reports whether a list has all entries of another, in their order.
func isWithin(part, list []json.RawMessage) bool {
	for _, entry := range part {
		i := slices.IndexFunc(list, func(e json.RawMessage) bool { return bytes.Equal(e, entry) })
		if i < 0 {
			return false
		}
		list = list[i+1:]
	}
	return true
}
