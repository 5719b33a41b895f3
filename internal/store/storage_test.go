package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"postern/internal/postern"
)

// mib is the smallest limit that an operator can choose.
const mib = 1 << 20

// stored is a file with a content that stands for a hash.
func stored(ws postern.WorkspaceID, content string, size int64) MediaRow {
	return MediaRow{
		Media:       postern.Media{ID: postern.NewMediaID(), Size: size, SHA256: content, Status: postern.MediaReady},
		WorkspaceID: ws, CreatedAt: testNow, UsedAt: testNow,
	}
}

func used(t *testing.T, db *Store, ws postern.WorkspaceID) int64 {
	t.Helper()
	u, err := db.Blobs.Storage(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

func limitStorage(t *testing.T, db *Store, ws postern.WorkspaceID, size int) {
	t.Helper()
	if _, err := db.Workspaces.ChangeLimits(t.Context(), ws, postern.Limits{StorageMiB: &size}, testNow); err != nil {
		t.Fatal(err)
	}
}

// shelf is what a workspace should store: the files by id, and the sizes of the contents that were
// not removed.
type shelf struct {
	ws       postern.WorkspaceID
	files    map[postern.MediaID]MediaRow
	contents map[string]int64
}

func (s *shelf) bytes() (sum int64) {
	for _, size := range s.contents {
		sum += size
	}
	return sum
}

func (s *shelf) holds(content string) bool {
	for _, f := range s.files {
		if f.SHA256 == content && f.Status == postern.MediaReady {
			return true
		}
	}
	return false
}

// any returns one of the files.
func (s *shelf) any(r *rand.Rand) (m MediaRow, ok bool) {
	ids := slices.Sorted(maps.Keys(s.files))
	if len(ids) == 0 {
		return m, false
	}
	return s.files[ids[r.IntN(len(ids))]], true
}

// step does one thing of those that change what is stored, or may.
func (s *shelf) step(t *testing.T, db *Store, r *rand.Rand) error {
	n := r.IntN(8)
	content, size := fmt.Sprintf("content %d", n), int64(n*n*1000)
	switch f, ok := s.any(r); r.IntN(7) {
	case 0, 1:
		m := stored(s.ws, content, size)
		s.files[m.ID], s.contents[content] = m, size
		return db.Media.Add(t.Context(), m, nil)
	case 2: // one that is fetched, and perhaps removed meanwhile
		m := stored(s.ws, content, size)
		m.Status = postern.MediaPending
		if err := db.Media.Add(t.Context(), m, nil); err != nil {
			return err
		}
		removed := r.IntN(4) == 0
		if removed {
			if err := db.Media.Expire(t.Context(), m); err != nil {
				return err
			}
		}
		m.Status = []postern.MediaStatus{postern.MediaReady, postern.MediaFailed}[r.IntN(2)]
		err := db.Media.Settle(t.Context(), m, testNow)
		if errors.Is(err, ErrSettled) == removed {
			err = nil
		}
		if s.files[m.ID] = m; removed {
			delete(s.files, m.ID)
		} else if m.Status == postern.MediaReady {
			s.contents[content] = size
		}
		return err
	case 3:
		if delete(s.files, f.ID); ok {
			return db.Media.Expire(t.Context(), f)
		}
	case 4:
		clear(s.files) // all of them are as old as each other
		_, err := db.Media.RemoveOld(t.Context(), s.ws, testNow+1, testNow+1)
		return err
	case 5:
		free, err := db.Blobs.Release(t.Context(), s.ws, content)
		if free == s.holds(content) {
			t.Errorf("%s is free: %v, and files have it: %v", content, free, s.holds(content))
		}
		if free {
			delete(s.contents, content)
		}
		return err
	case 6:
		return db.Blobs.Unheld(t.Context(), func(ws postern.WorkspaceID, hash string) error {
			if ws == s.ws && s.holds(hash) {
				t.Errorf("%s belongs to a file, and is to be removed", hash)
			}
			if ws == s.ws {
				delete(s.contents, hash)
				_, err := db.Blobs.Release(t.Context(), ws, hash)
				return err
			}
			return nil
		})
	}
	return nil
}

// The count of a workspace's bytes is the sum of its contents after everything that can change them.
func TestStoredBytesAreTheSumOfTheContents(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db, seed := e.open(t), rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		var shelves []*shelf
		for range 2 {
			shelves = append(shelves, &shelf{newWorkspace(t, db), map[postern.MediaID]MediaRow{}, map[string]int64{}})
		}
		for i := range 300 {
			s := shelves[r.IntN(2)]
			if err := s.step(t, db, r); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			for _, s := range shelves {
				if got, want := used(t, db, s.ws), s.bytes(); got != want {
					t.Fatalf("seed %d, step %d: %d bytes are counted, want %d", seed, i, got, want)
				}
			}
		}
	})
}

// Files that are added at the same time do not pass the limit together.
func TestStorageIsNotPassedTogether(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		ws := newWorkspace(t, db)
		limitStorage(t, db, ws, 1)
		var taken atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				err := db.Media.Add(t.Context(), stored(ws, fmt.Sprint(i), mib*3/10), nil)
				if err == nil {
					taken.Add(1)
				} else if postern.ReasonOf(err) != postern.ResourceLimit {
					t.Errorf("file %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if got := used(t, db, ws); taken.Load() != 3 || got != 3*(mib*3/10) {
			t.Errorf("%d files were taken, and %d bytes are counted; want 3", taken.Load(), got)
		}
		if rows := count(t, db, `SELECT count(*) FROM media`); rows != 3 {
			t.Errorf("there are %d files, want 3", rows)
		}
	})
}

// At the limit, a content that is stored already needs no room, also for a file that was fetched. A
// file without room stays pending, and can fail.
func TestStoredContentNeedsNoRoom(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		ws := newWorkspace(t, db)
		limitStorage(t, db, ws, 1)
		if err := db.Media.Add(t.Context(), stored(ws, "full", mib), nil); err != nil {
			t.Fatal(err)
		}
		if err := db.Media.Add(t.Context(), stored(ws, "full", mib), nil); err != nil {
			t.Errorf("the same content: %v", err)
		}
		err := db.Media.Add(t.Context(), stored(ws, "more", 1), nil)
		if postern.ReasonOf(err) != postern.ResourceLimit || !strings.Contains(err.Error(), "1 MiB of stored files") {
			t.Errorf("one byte more: %v", err)
		}
		fetched := stored(ws, "more", 1)
		fetched.Status = postern.MediaPending
		if err := db.Media.Add(t.Context(), fetched, nil); err != nil {
			t.Fatal(err)
		}
		fetched.Status = postern.MediaReady
		if err := db.Media.Settle(t.Context(), fetched, testNow); postern.ReasonOf(err) != postern.ResourceLimit {
			t.Errorf("a fetched file without room: %v", err)
		}
		fetched.Status = postern.MediaFailed
		if err := db.Media.Settle(t.Context(), fetched, testNow); err != nil {
			t.Errorf("giving up a file: %v", err)
		}
		if got := used(t, db, ws); got != mib {
			t.Errorf("%d bytes are counted, want %d", got, mib)
		}
	})
}

// A smaller limit removes nothing, and a full workspace of a neighbor takes no room.
func TestStorageOfAPlan(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		mine, other := newWorkspace(t, db), newWorkspace(t, db)
		plan, _ := postern.PlanByName("growth")
		if err := db.Media.Add(t.Context(), stored(mine, "all", plan.Caps.Bytes), nil); err != nil {
			t.Fatal(err)
		}
		limitStorage(t, db, mine, 0)
		if u, err := db.Blobs.Storage(t.Context(), mine); err != nil || u != (postern.Storage{Used: plan.Caps.Bytes}) ||
			u.Room() != 0 {
			t.Errorf("the storage is %+v, %v", u, err)
		}
		limitStorage(t, db, mine, -1)
		if u, err := db.Blobs.Storage(t.Context(), mine); err != nil || u.Limit != plan.Caps.Bytes {
			t.Errorf("after the limit was given back, the storage is %+v, %v", u, err)
		}
		if err := db.Media.Add(t.Context(), stored(other, "all", plan.Caps.Bytes), nil); err != nil {
			t.Errorf("the same content of another workspace: %v", err)
		}
		uses, err := db.Workspaces.GetWithUsage(t.Context(), mine, MonthOf(testNow))
		if err != nil || uses.Bytes != plan.Caps.Bytes {
			t.Errorf("operators see %d bytes, %v", uses.Bytes, err)
		}
	})
}

// An upgrade counts what is stored.
func TestUpgradeCountsStoredBytes(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		opts := e.empty(t)
		old := func(id, ws, hash string, size int) string {
			return fmt.Sprintf(`INSERT INTO media (id, workspace_id, device_id, message_id, hash, status, object, source,
				attempts, next_at, created_at, used_at, asked) VALUES ('%[1]s', '%[2]s', '', '', '%[3]s', 'ready',
				'{"id":"%[1]s","mimeType":"text/plain","size":%[4]d,"filename":"\"size\":7"}', $1, 0, 0, 1, 1, 0)`, id, ws, hash, size)
		}
		fill(t, atVersion(t, opts, 45), []string{
			`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'a', 'growth', 1), ('ws_2', 'b', 'free', 1)`,
			old("med_1", "ws_1", "aa", 100), old("med_2", "ws_1", "aa", 100), old("med_3", "ws_1", "bb", 20),
			old("med_4", "ws_2", "aa", 100), old("med_5", "ws_2", "", 5000),
		})
		db := reopen(t, opts)
		for ws, want := range map[postern.WorkspaceID]int64{"ws_1": 120, "ws_2": 100} {
			if got := used(t, db, ws); got != want {
				t.Errorf("%s stores %d bytes, want %d", ws, got, want)
			}
		}
		if err := db.Media.Add(t.Context(), stored("ws_1", "bb", 20), nil); err != nil || used(t, db, "ws_1") != 120 {
			t.Errorf("a content from before the upgrade counts again: %d, %v", used(t, db, "ws_1"), err)
		}
	})
}

// A thumbnail is stored once for each content, and is gone when the content is.
func TestThumbnailLastsAsLongAsItsContent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws, other := newWorkspace(t, db), newWorkspace(t, db)
		first, second, fetched := stored(ws, "photo", 10), stored(ws, "photo", 10), stored(ws, "fetched", 10)
		first.Thumbnail, second.Thumbnail = []byte("small"), []byte("another")
		fetched.Status = postern.MediaPending
		for _, m := range []MediaRow{first, second, fetched, stored(other, "photo", 10)} {
			if err := db.Media.Add(t.Context(), m, nil); err != nil {
				t.Fatal(err)
			}
		}
		fetched.Status, fetched.Thumbnail = postern.MediaReady, []byte("small too")
		if err := db.Media.Settle(t.Context(), fetched, testNow); err != nil {
			t.Fatal(err)
		}
		want := func(ws postern.WorkspaceID, content, want string) {
			t.Helper()
			if got, err := db.Blobs.Thumbnail(t.Context(), ws, content); string(got) != want || err != nil {
				t.Errorf("thumbnail of %s = %q, %v, want %q", content, got, err, want)
			}
		}
		want(ws, "photo", "small")
		want(ws, "fetched", "small too")
		want(other, "photo", "")
		if err := db.Media.Expire(t.Context(), first, second); err != nil {
			t.Fatal(err)
		}
		if free, err := db.Blobs.Release(t.Context(), ws, "photo"); !free || err != nil {
			t.Fatalf("release: %t, %v", free, err)
		}
		want(ws, "photo", "")
		want(ws, "fetched", "small too")
	})
}
