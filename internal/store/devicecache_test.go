package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// cachedAndRead returns the devices as callers get them and as they are on disk.
func cachedAndRead(t *testing.T, db *Store, ws postern.WorkspaceID, only []postern.DeviceID) (cached, read string) {
	t.Helper()
	p := Page{Limit: 50}
	list, err := db.Devices.List(t.Context(), ws, only, p)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := db.Devices.read(t.Context(), deviceQuery{workspace: ws, only: textList(only), page: p})
	if err != nil {
		t.Fatal(err)
	}
	return dump(t, list), dump(t, fresh)
}

func dump(t *testing.T, list []postern.Device) string {
	t.Helper()
	var lines []string
	for _, d := range list {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return strings.Join(lines, "\n")
}

// Every operation that changes a device is followed by reads that must show it.
func TestCachedDevicesAreThoseOnDisk(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db, ctx := e.open(t), t.Context()
		ws, other := newWorkspace(t, db), newWorkspace(t, db)
		newDevice(t, db, other, postern.Unlinked)
		d, second := newDevice(t, db, ws, postern.Unlinked), newDevice(t, db, ws, postern.Unlinked)
		l := openLinkOf(d, 5)
		steps := []func() error{
			func() error { return db.Links.Open(ctx, l) },
			func() error {
				_, err := db.Links.End(ctx, LinkEnd{
					WorkspaceID: d.WorkspaceID,
					DeviceID:    d.ID, LinkID: l.Link.ID, Status: postern.LinkExpired,
					Reason: "timeout", At: testNow,
				})
				return err
			},
			func() error {
				return db.Devices.SetState(ctx,
					SetDeviceState{
						WorkspaceID: ws, DeviceID: d.ID,
						Status:      postern.Connected,
						DisplayName: "Ann", At: testNow,
					})
			},
			func() error { return db.Devices.ResetSessions(ctx) },
			func() error {
				return db.Devices.RequestUnlink(ctx,
					SetDeviceState{
						WorkspaceID: ws, DeviceID: d.ID,
						Status:  postern.Unlinked,
						Desired: postern.WantIdle, At: testNow,
					})
			},
			func() error { newDevice(t, db, ws, postern.Linking); return nil },
			func() error { return db.Devices.RequestDelete(ctx, ws, second.ID, nil, testNow) },
		}
		before, _ := cachedAndRead(t, db, ws, nil)
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			cached, read := cachedAndRead(t, db, ws, nil)
			if cached != read {
				t.Errorf("after step %d callers get\n%s\nand on disk is\n%s", i, cached, read)
			}
			if i > 0 && read == before {
				t.Errorf("step %d has changed nothing: it tests nothing", i)
			}
			before = read
		}
		if cached, _ := cachedAndRead(t, db, other, nil); strings.Contains(cached, string(d.ID)) {
			t.Error("another workspace's device is in the list")
		}
		if cached, _ := cachedAndRead(t, db, ws, []postern.DeviceID{}); cached != "" {
			t.Errorf("a key of no device lists %s", cached)
		}
	})
}

// A caller whose change was answered sees the change, even with concurrent reads.
func TestCachedDevicesShowWhatWasAnswered(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		ws := newWorkspace(t, db)
		d := newDevice(t, db, ws, postern.Unlinked)
		ctx, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		defer readers.Wait()
		defer stop()
		for range 4 {
			readers.Go(func() {
				for ctx.Err() == nil {
					_, _ = db.Devices.Get(ctx, ws, d.ID) // keeps the device in the cache
				}
			})
		}
		for i := range 200 {
			reason := fmt.Sprint("reason ", i)
			err := db.Devices.SetState(t.Context(),
				SetDeviceState{
					WorkspaceID: ws, DeviceID: d.ID,
					Status: postern.Disconnected,
					Reason: reason, At: testNow,
				})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := db.Devices.Get(t.Context(), ws, d.ID); err != nil || string(got.StatusReason) != reason {
				t.Fatalf("after the change to %q was answered the device says %q (%v)", reason, got.StatusReason, err)
			}
		}
	})
}

// The cache stays within its bound, and a caller cannot modify what it holds.
func TestCachedDevicesAreBounded(t *testing.T) {
	var k deviceCache
	big := map[string]string{"a": strings.Repeat("x", cacheBytes/64)}
	for i := range 1000 {
		q := deviceQuery{workspace: postern.WorkspaceID(fmt.Sprint(i))}
		list, err := k.get(q, func() ([]postern.Device, error) {
			return []postern.Device{{Name: "d", Metadata: big}},
				nil
		})
		if err != nil || k.bytes > cacheBytes {
			t.Fatalf("%d bytes are cached, want at most %d (%v)", k.bytes, cacheBytes, err)
		}
		list[0].Name = "changed by a caller"
		list, _ = k.get(q, func() ([]postern.Device, error) { return nil, fmt.Errorf("it is cached") })
		if len(list) != 1 || list[0].Name != "d" {
			t.Fatalf("the cache holds %v", list)
		}
	}
}

// A statement that changes devices without changeDevices would leave stale devices in the
// cache. Only the sequence of events may change that way, because no read shows it.
func TestStatementsThatChangeDevicesSayThat(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	writes := regexp.MustCompile(
		`(?i)(update|insert into|insert or \w+ into|replace into|delete from)\s+device\b( SET sequence )?`)
	says := regexp.MustCompile("(changeDevices?\\(t|newDeviceStatement\\(\"[a-z_, ]+\"), `$")
	found := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, at := range writes.FindAllStringSubmatchIndex(string(b), -1) {
			found++
			before := string(b[:at[0]])
			if at[4] < 0 && !says.MatchString(before) {
				t.Errorf("%s: %s", name, b[at[0]:at[1]])
			}
		}
	}
	if found < 8 {
		t.Errorf("%d statements were found, want at least 8", found)
	}
}

func TestCacheCountsItsReads(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
		before := db.System.Figures()
		for range 3 {
			if _, err := db.Devices.Get(t.Context(), d.WorkspaceID, d.ID); err != nil {
				t.Fatal(err)
			}
		}
		after := db.System.Figures()
		hits, misses := after.CacheHits-before.CacheHits, after.CacheMisses-before.CacheMisses
		if want := db.cache != nil; want != (hits == 2 && misses == 1) || !want && hits+misses != 0 {
			t.Errorf("%d hits and %d misses, with a cache: %t", hits, misses, want)
		}
	})
}

func TestSeenDevicesAreRead(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		for _, at := range []postern.Time{testNow.Add(time.Minute), testNow} { // none goes back
			if err := db.Devices.Seen(t.Context(), []SeenDevice{{d.ID, at}}); err != nil {
				t.Fatal(err)
			}
			got, err := db.Devices.Get(t.Context(), d.WorkspaceID, d.ID)
			if err != nil || got.LastSeenAt != testNow.Add(time.Minute) {
				t.Errorf("last seen at %s (%v)", got.LastSeenAt, err)
			}
		}
	})
}

// A device that connects again through another proxy is down since then.
func TestDeviceIsDownSinceItsProxyChanged(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		_, err := db.Devices.Change(t.Context(), d.WorkspaceID, d.ID, func(d *postern.Device) ([]Act, error) {
			d.Proxy = []byte("sealed")
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, `SELECT count(*) FROM device WHERE id = $1 AND status = 'connecting' AND down_at > 0`, d.ID); n != 1 {
			t.Error("the device is not down, or since no time")
		}
	})
}
