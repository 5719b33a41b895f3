package vendorsim

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stored keeps a blob of a size.
func stored(t *testing.T, b *blobs, size int) *blob {
	t.Helper()
	d, err := b.create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(d, strings.Repeat("x", size)); err != nil {
		t.Fatal(err)
	}
	one, err := d.keep("15550001111")
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// present reports whether a blob can be opened.
func present(t *testing.T, b *blobs, one *blob) bool {
	t.Helper()
	r, _, err := b.open(one.id)
	if err != nil {
		return false
	}
	if data, err := io.ReadAll(r); err != nil || int64(len(data)) != one.size {
		t.Errorf("blob has %d bytes, %v, want %d", len(data), err, one.size)
	}
	return r.Close() == nil
}

func TestOldestBlobsAreDropped(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		b, err := openBlobs(dir)
		if err != nil {
			t.Fatal(err)
		}
		b.limit = 100
		first, second, third := stored(t, b, 40), stored(t, b, 40), stored(t, b, 40)
		if present(t, b, first) || !present(t, b, second) || !present(t, b, third) || b.total != 80 {
			t.Errorf("in %q the blobs have %d bytes, want the 80 of the last two", dir, b.total)
		}
		if large := stored(t, b, 200); !present(t, b, large) || present(t, b, third) {
			t.Errorf("in %q a blob above the limit is not kept alone", dir)
		}
	}
}

func TestBlobsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := openBlobs(dir)
	if err != nil {
		t.Fatal(err)
	}
	young, old := stored(t, b, 10), stored(t, b, 10)
	at := time.Unix(1_700_000_000, 0)
	for i, one := range []*blob{old, young} {
		path := filepath.Join(dir, blobDir, one.id)
		if err := os.Chtimes(path, at, at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err = openBlobs(dir); err != nil {
		t.Fatal(err)
	}
	b.limit = 20
	stored(t, b, 10)
	if present(t, b, old) || !present(t, b, young) {
		t.Error("after a restart the oldest blob is not the first to be dropped")
	}
}

func TestBlobNamesItsOwner(t *testing.T) {
	t.Parallel()
	b, err := openBlobs("")
	if err != nil {
		t.Fatal(err)
	}
	one := stored(t, b, 1)
	if got := ownerOf(blobID(one.path())); got != "15550001111" {
		t.Errorf("owner of %s is %q", one.path(), got)
	}
	if got := ownerOf("nobody-1"); got != "" {
		t.Errorf("owner of an invalid name is %q", got)
	}
}
