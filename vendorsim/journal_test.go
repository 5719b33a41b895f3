package vendorsim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// reopen opens the journal in dir and returns its values as text.
func reopen(t *testing.T, dir string) (*journal, map[string]string) {
	t.Helper()
	j, raw, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	values := make(map[string]string)
	for k, x := range raw {
		values[k] = string(x)
	}
	return j, values
}

func wantValues(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("journal holds %v, want %v", got, want)
	}
}

func TestJournalKeepsTheLastValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	j.put("a", []byte("1"))
	j.put("b", []byte("2"))
	j.put("a", []byte("3"))
	j.put("c", nil)
	j.remove("b")
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Errorf("second close = %v", err)
	}
	_, values := reopen(t, dir)
	wantValues(t, values, map[string]string{"a": "3", "c": ""})
}

func TestJournalSurvivesWithoutClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	j.put("flushed", []byte("yes"))
	if err := j.flush(); err != nil {
		t.Fatal(err)
	}
	j.put("buffered", []byte("no"))
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_, values := reopen(t, copied)
	wantValues(t, values, map[string]string{"flushed": "yes"})
}

func TestJournalCutsATornTail(t *testing.T) {
	t.Parallel()
	whole := appendRecord(nil, "first", []byte("1"), 1)
	torn := appendRecord(nil, "second", []byte("22"), 2)
	for cut := range torn {
		dir := t.TempDir()
		path := filepath.Join(dir, journalName)
		if err := os.WriteFile(path, slices.Concat(whole, torn[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		j, values := reopen(t, dir)
		wantValues(t, values, map[string]string{"first": "1"})
		j.put("third", []byte("3"))
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		_, values = reopen(t, dir)
		wantValues(t, values, map[string]string{"first": "1", "third": "3"})
	}
}

func TestJournalStopsAtDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := appendRecord(nil, "good", []byte("1"), 1)
	bad := len(raw)
	raw = appendRecord(raw, "damaged", []byte("2"), 1)
	raw[bad+headerSize] ^= 1
	if err := os.WriteFile(filepath.Join(dir, journalName), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, values := reopen(t, dir)
	wantValues(t, values, map[string]string{"good": "1"})
}

func TestJournalCompacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	value := []byte(strings.Repeat("x", 1<<20))
	for range compactAt>>20 + 8 {
		j.put("big", value)
		if err := j.flush(); err != nil {
			t.Fatal(err)
		}
	}
	j.put("small", []byte("1"))
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(j.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 16<<20 {
		t.Errorf("journal of one value of 1 MB has %d bytes", info.Size())
	}
	_, values := reopen(t, dir)
	wantValues(t, values, map[string]string{"big": string(value), "small": "1"})
}

func TestJournalManyWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 20 {
				j.put(fmt.Sprintf("%d/%d", w, i), []byte("x"))
				if err := j.sync(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if j.durable != j.end {
		t.Errorf("%d of %d bytes are on the disk", j.durable, j.end)
	}
	_ = j.close()
	_, values := reopen(t, dir)
	if len(values) != 400 {
		t.Errorf("journal holds %d values, want 400", len(values))
	}
	if err := j.sync(); err == nil {
		t.Error("a closed journal took a sync")
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, "a", []byte("1"), 1), "a", nil, removal))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journalName), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		_, first := reopen(t, dir)
		_, second := reopen(t, dir)
		wantValues(t, second, first)
	})
}

// When the disk was full for a while, nothing is lost: the same records are written later.
func TestJournalSurvivesAFullDisk(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.put("before", []byte("1"))
	if err := j.sync(); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	low := before
	low.Cur = uint64(j.size) + 5 // a part of the next record
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	j.put("meanwhile", []byte("2"))
	full := j.sync()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Error("a record is durable that the disk had no room for")
	}
	j.put("after", []byte("3"))
	if err := errors.Join(j.sync(), j.close()); err != nil {
		t.Fatal(err)
	}
	j, values, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for key, want := range map[string]string{"before": "1", "meanwhile": "2", "after": "3"} {
		if got := string(values[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
