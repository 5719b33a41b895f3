package library

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/media/blob"
	"postern/internal/postern"
)

const workspace = postern.WorkspaceID("ws_01JD8Z3NDEKTSV4RRFFQ69G5FA")

// memory is a catalog: the files of all workspaces by their hash, and the blobs that are counted.
type memory struct {
	mu      sync.Mutex
	files   map[string]int
	counted map[string]bool
	broken  string // the hash of a blob of which nothing can be said
}

var errBroken = errors.New("the blob is broken")

func (m *memory) Held(_ context.Context, _ postern.WorkspaceID, hash string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hash == m.broken {
		return false, errBroken
	}
	return m.files[hash] > 0, nil
}

func (m *memory) Release(_ context.Context, _ postern.WorkspaceID, hash string) (free bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hash == m.broken {
		return false, errBroken
	}
	if free = m.files[hash] == 0; free {
		delete(m.counted, hash)
	}
	return free, nil
}

func (m *memory) Unheld(ctx context.Context, free func(postern.WorkspaceID, string) error) (err error) {
	m.mu.Lock()
	list := slices.Sorted(maps.Keys(m.counted))
	m.mu.Unlock()
	for _, hash := range list {
		m.mu.Lock()
		held := m.files[hash] > 0
		m.mu.Unlock()
		if !held {
			err = free(workspace, hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) add(file Taken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[file.SHA256]++
	m.counted[file.SHA256] = true
	return nil
}

// remove removes a file of the catalog.
func (m *memory) remove(file postern.Media) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[file.SHA256]--
}

// shelves is a library and its catalog.
type shelves struct {
	*Library
	t       *testing.T
	catalog *memory
	dir     string // of the blobs
}

func open(t *testing.T) shelves {
	t.Helper()
	dir := t.TempDir()
	blobs, err := blob.OpenDirectory(filepath.Join(dir, "media"))
	if err != nil {
		t.Fatal(err)
	}
	catalog := &memory{files: map[string]int{}, counted: map[string]bool{}}
	l, err := Open(blobs, filepath.Join(dir, "transit"), catalog)
	if err != nil {
		t.Fatal(err)
	}
	return shelves{l, t, catalog, filepath.Join(dir, "media")}
}

// enough is room for all files of a test.
var enough = postern.Storage{Limit: 1 << 30}

// take keeps a file.
func (l shelves) take(text string) (m postern.Media) {
	l.t.Helper()
	err := l.Take(l.t.Context(), workspace, strings.NewReader(text), enough, func(file Taken) error {
		m = file.Media
		return l.catalog.add(file)
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

// read returns what the storage says to reading a file.
func (l shelves) read(m postern.Media) error {
	r, err := l.Open(l.t.Context(), workspace, m)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	_, err = io.ReadAll(r)
	return err
}

// A nearly full disk is left to the database.
func TestNearlyFullDiskTakesNoFiles(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.Room(); err != nil {
		t.Error(err)
	}
	l.floor = math.MaxUint64
	if err := l.Room(); postern.ReasonOf(err) != postern.Unavailable {
		t.Errorf("the room of a nearly full disk: %v", err)
	}
	err := l.Take(t.Context(), workspace, strings.NewReader("hello"), enough, l.catalog.add)
	if postern.ReasonOf(err) != postern.Unavailable {
		t.Errorf("a file is taken with %v", err)
	}
}

// The sweep removes what is old and unknown, what is counted and belongs to no file, and nothing
// else.
func TestSweepRemovesWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	l := open(t)
	held, unknown, left := l.take("held"), l.take("unknown"), l.take("left")
	l.catalog.remove(unknown)
	l.catalog.remove(left)
	delete(l.catalog.counted, unknown.SHA256)
	if err := l.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil || l.read(unknown) != nil {
		t.Errorf("a sweep of older files: %v, then %v", err, l.read(unknown))
	}
	if err := l.read(left); !errors.Is(err, fs.ErrNotExist) || l.catalog.counted[left.SHA256] {
		t.Errorf("what is counted and belongs to no file is read with %v", err)
	}
	if err := l.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || l.read(held) != nil {
		t.Errorf("a sweep: %v, then %v", err, l.read(held))
	}
	if err := l.read(unknown); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody holds is read with %v", err)
	}
}

// A blob that cannot be removed does not keep those that follow, whether they are counted or not.
func TestSweepLeavesOutWhatItCannotRemove(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{true, false} {
		l := open(t)
		list := []postern.Media{l.take("a"), l.take("b"), l.take("c")}
		slices.SortFunc(list, func(a, b postern.Media) int { return strings.Compare(a.SHA256, b.SHA256) })
		for _, m := range list {
			l.catalog.remove(m)
		}
		before := time.Now().Add(-time.Hour) // those that are counted go, however young they are
		if !counted {
			clear(l.catalog.counted)
			before = time.Now().Add(time.Hour)
		}
		l.catalog.broken = list[0].SHA256
		if err := l.Sweep(t.Context(), before); !errors.Is(err, errBroken) {
			t.Errorf("counted %v: the sweep ends with %v", counted, err)
		}
		for i, m := range list {
			if err := l.read(m); errors.Is(err, fs.ErrNotExist) != (i > 0) {
				t.Errorf("counted %v: file %d is read with %v", counted, i, err)
			}
		}
	}
}

// counting counts what is read of an endless file.
type counting struct{ n int64 }

func (c *counting) Read(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// A file is read no further than there is room for it.
func TestFileBeyondTheRoomIsReadNoFurther(t *testing.T) {
	t.Parallel()
	l := open(t)
	for _, room := range []int64{0, 1000, 300_000} {
		var c counting
		limits := postern.Storage{Used: 5000, Limit: 5000 + room}
		err := l.Take(t.Context(), workspace, &c, limits, l.catalog.add)
		if postern.ReasonOf(err) != postern.ResourceLimit || c.n != room+1 {
			t.Errorf("with room for %d bytes, %d are read: %v", room, c.n, err)
		}
	}
	var c counting
	err := l.Take(t.Context(), workspace, &c, enough, l.catalog.add)
	if postern.ReasonOf(err) != postern.PayloadTooLarge || c.n != postern.MaxMedia+1 {
		t.Errorf("%d bytes of a file that is too large are read: %v", c.n, err)
	}
}

// The bytes of a file that is not added are removed, unless another file has them.
func TestFileThatIsNotAddedLeavesNothing(t *testing.T) {
	t.Parallel()
	l := open(t)
	refused := errors.New("refused")
	for _, held := range []bool{false, true} {
		var file postern.Media
		if held {
			l.take("hello")
		}
		err := l.Take(t.Context(), workspace, strings.NewReader("hello"), enough, func(m Taken) error {
			file = m.Media
			if err := l.read(file); err != nil {
				t.Errorf("the bytes are not there when the file is added: %v", err)
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Errorf("the file is refused with %v", err)
		}
		if err := l.read(file); errors.Is(err, fs.ErrNotExist) == held {
			t.Errorf("the bytes are read with %v, and another file has them: %v", err, held)
		}
	}
}

// Bytes are not removed while a file with them is being added.
func TestBytesAreNotRemovedWhileAFileIsAdded(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := l.take("hello")
	l.catalog.remove(first)
	err := l.Take(t.Context(), workspace, strings.NewReader("hello"), enough, func(m Taken) error {
		return errors.Join(l.Drop(t.Context(), workspace, m.SHA256), l.catalog.add(m))
	})
	if err != nil || l.read(first) != nil {
		t.Errorf("the file is added with %v, and read with %v", err, l.read(first))
	}
}

// A file with bytes that are being removed is added after that. The bytes are removed once.
func TestFileIsAddedAfterTheRemovalOfItsBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		first := l.take("hello")
		l.catalog.remove(first)
		hash, err := blob.ParseHash(first.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		name := blob.Name{Workspace: workspace, Hash: hash}
		end, ok := l.holds.remove(name)
		if !ok {
			t.Fatal("the bytes are held")
		}
		if err := l.Drop(t.Context(), workspace, first.SHA256); err != nil || l.read(first) != nil {
			t.Errorf("a second removal: %v, then %v", err, l.read(first))
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.holds.hold(canceled, name); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who leaves waits: %v", err)
		}
		var added atomic.Bool
		go func() { l.take("hello"); added.Store(true) }()
		if synctest.Wait(); added.Load() {
			t.Error("a file is added while its bytes are being removed")
		}
		end()
		if synctest.Wait(); !added.Load() || l.read(first) != nil {
			t.Errorf("after the removal the file is added: %v, and read with %v", added.Load(), l.read(first))
		}
		if len(l.holds.users) != 0 || len(l.holds.removals) != 0 {
			t.Errorf("left: %+v", l.holds)
		}
	})
}

// photo is a picture with some detail.
func photo(t *testing.T, encode func(io.Writer, image.Image) error) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 600, 400))
	for i := range img.Pix {
		img.Pix[i] = uint8(i * i >> 9)
	}
	var b strings.Builder
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func inJPEG(w io.Writer, img image.Image) error { return jpeg.Encode(w, img, nil) }

// The thumbnail of a photo is made when the photo is stored, and is the one that it would have got
// when it is sent.
func TestThumbnailIsMadeOnce(t *testing.T) {
	l := open(t)
	var kept Taken
	taking := func(content string) {
		t.Helper()
		err := l.Take(t.Context(), workspace, strings.NewReader(content), enough, func(file Taken) error {
			kept = file
			return l.catalog.add(file)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	preparing := func(file Taken, kind postern.Kind) Prepared {
		t.Helper()
		p, err := l.Prepare(t.Context(), workspace, file, kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	content := photo(t, inJPEG)
	taking(content)
	late, early := preparing(Taken{Media: kept.Media}, postern.KindImage), preparing(kept, postern.KindImage)
	if len(kept.Thumbnail) == 0 || !bytes.Equal(late.Thumbnail, kept.Thumbnail) {
		t.Errorf("thumbnails of %d bytes when it was stored and %d when it is sent",
			len(kept.Thumbnail), len(late.Thumbnail))
	}
	if early.Description != late.Description || !bytes.Equal(early.Thumbnail, late.Thumbnail) {
		t.Errorf("with its thumbnail the picture is %+v, without %+v", early.Description, late.Description)
	}
	for name, p := range map[string]Prepared{"with": early, "without": late} {
		got, err := io.ReadAll(io.NewSectionReader(p.Body, 0, p.Size))
		if err != nil || string(got) != content {
			t.Errorf("%s its thumbnail: %d bytes, %v, want %d", name, len(got), err, len(content))
		}
	}
	if p := preparing(kept, postern.KindDocument); p.Thumbnail != nil {
		t.Error("a document has a thumbnail")
	}
	damaged := kept
	damaged.SHA256 = strings.Repeat("0", 64)
	if err := os.MkdirAll(filepath.Join(l.dir, string(workspace), "00"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(l.dir, string(workspace), "00", damaged.SHA256)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := l.Prepare(t.Context(), workspace, damaged, postern.KindImage)
	if postern.ReasonOf(err) != postern.ValidationFailed {
		t.Errorf("bytes that are not those of the file are sent: %v", err)
	}
	taking(photo(t, png.Encode)) // would have to be decoded
	if kept.Thumbnail != nil {
		t.Error("a PNG file was decoded when it was stored")
	}
	if p := preparing(kept, postern.KindImage); p.Thumbnail == nil {
		t.Error("a PNG file has no thumbnail when it is sent")
	}
	taking(content[:len(content)/2]) // damaged, which is said when it is sent
}
