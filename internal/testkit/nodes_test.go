package testkit_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/migrated"
	"postern/internal/testkit"
)

// Two servers on one database share its devices. Each takes requests for all of them, every event
// is posted once, and when one stops, the other works for all.
func TestTwoServersShareOneDatabase(t *testing.T) {
	t.Parallel()
	first, second := twoServers(t)
	c := first.Workspace("growth")
	hooks := c.Receive(string(postern.MessageSent))
	var devices []postern.Device
	for i := range 4 {
		devices = append(devices, linkMoving(t, c, fmt.Sprintf("+1555000%04d", i)))
	}
	testkit.Eventually(t, "two devices on each server", func() (bool, any) {
		owners := ownersOf(t, string(first.Config.DatabaseURL))
		return len(owners) == 2 && owners[0] == 2 && owners[1] == 2, owners
	})
	for i, d := range devices {
		for _, at := range []*testkit.Client{c, c.At(second)} {
			at.Await(d.ID, postern.Connected)
			m := queue(at, d, fmt.Sprint("to ", i)) // it may be changing its server
			at.AwaitMessage(m.ID, postern.Read)
		}
	}
	hooks.AwaitCount(postern.MessageSent, 8)
	second.Stop()
	for _, d := range devices {
		c.Await(d.ID, postern.Connected)
		m := queue(c, d, "alone again")
		c.AwaitMessage(m.ID, postern.Read)
	}
	if got := len(hooks.AwaitCount(postern.MessageSent, 12)); got != 12 {
		t.Errorf("%d events of 12 messages", got)
	}
}

// Each server asks the session of a device, wherever it runs. One idempotency key creates one group, whichever servers
// get the requests.
func TestEachServerAsksSessions(t *testing.T) {
	t.Parallel()
	first, second := twoServers(t)
	c := first.Workspace("growth")
	d := linkMoving(t, c, phone)
	testkit.Eventually(t, "the device stays where it is", func() (bool, any) {
		owners := ownersOf(t, string(first.Config.DatabaseURL))
		return len(owners) == 1, owners
	})
	ids := map[string]bool{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range 6 {
		at := []*testkit.Client{c, c.At(second)}[i%2]
		all.Go(func() {
			body := map[string]any{"subject": "Support", "participants": []string{ann}}
			a := at.Do("POST", path(d, "/groups"), body, "Idempotency-Key", "one")
			var g gateway.CreatedGroup
			if a.Status == http.StatusConflict { // the first request is still running
				return
			}
			if err := json.Unmarshal(a.Body, &g); err != nil || a.Status != http.StatusCreated {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[g.ChatID] = true
		})
	}
	all.Wait()
	if groups := first.Vendor.Groups(ann); len(groups) != 1 || len(ids) != 1 {
		t.Fatalf("%d groups, told of %v", len(groups), ids)
	}
	for chat := range ids {
		for _, at := range []*testkit.Client{c, c.At(second)} {
			var g postern.Group
			at.Call("GET", path(d, "/groups/"+chat), nil, 200, &g)
			if g.Subject != "Support" || g.Size != 2 {
				t.Errorf("the group is %+v", g)
			}
		}
	}
}

// A server that has another storage of files than the others, or none, is not ready.
func TestServersShareTheStorageOfFiles(t *testing.T) {
	t.Parallel()
	first := testkit.StartOn(t, migrated.URL(t))
	first.Stop()
	first.Shared = true
	first.Boot()
	ready := func(k *testkit.Kit, want string) {
		t.Helper()
		testkit.Eventually(t, "readiness "+want, func() (bool, any) {
			res, err := http.Get(k.OpsURL() + "/readyz") //nolint:noctx // the test ends with it
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			return err == nil && strings.Contains(string(text), want), string(text)
		})
	}
	ready(first, "ok")
	ready(first.Another(), "ok")
	dir := t.TempDir()
	ready(first.Another(func(c *config.Server) { c.MediaURL = seal.Secret("file://" + dir) }), "other-media-storage")
	ready(first.Another(func(c *config.Server) { c.MediaURL = "" }), "no-media-storage")
	mark, err := os.ReadFile(filepath.Join(first.Config.Dir, "media", "storage.id"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "storage.id"), mark, 0o600) // as a copy of the storage has it
	}
	if err != nil {
		t.Fatal(err)
	}
	ready(first.Another(func(c *config.Server) { c.MediaURL = seal.Secret("file://" + dir) }), "ok")
}

// linkMoving links a device that may be given to another server meanwhile, which replaces its code: the
// phone scans again as long as the attempt is open.
func linkMoving(t *testing.T, c *testkit.Client, number string) postern.Device {
	t.Helper()
	d := create(c)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	testkit.Eventually(t, "a scan of the code that is valid", func() (bool, any) {
		a := enter(c, d, map[string]any{"phoneNumber": number})
		var l postern.Link
		if c.Call("GET", path(d, "/link"), nil, 200, &l); a.Status != 200 && !l.Status.Open() {
			t.Fatalf("the scan is answered %d %s, and the attempt is %s (%s)", a.Status, a.Body, l.Status, l.Reason)
		}
		return a.Status == 200, string(a.Body)
	})
	return c.Await(d.ID, postern.Connected)
}

// ownersOf returns how many devices each server owns.
func ownersOf(t *testing.T, url string) (counts []int) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT count(*) FROM device WHERE owner <> '' GROUP BY owner`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		n := 0
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}
