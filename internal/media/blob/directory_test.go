package blob_test

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"postern/internal/media/blob"
)

func openDirectory(t *testing.T, dir string) *blob.Directory {
	t.Helper()
	d, err := blob.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// agedDirectory is a directory whose files a test can make older.
type agedDirectory struct {
	*blob.Directory
	t   *testing.T
	dir string
}

func oldDirectory(t *testing.T) blob.Store {
	t.Helper()
	dir := t.TempDir()
	return agedDirectory{openDirectory(t, dir), t, dir}
}

// Age makes all files older, so that nothing has to wait for the clock.
func (d agedDirectory) Age(by time.Duration) {
	d.t.Helper()
	for _, name := range files(d.t, d.dir) {
		changeTime(d.t, name, time.Now().Add(-by))
	}
}

func changeTime(t *testing.T, name string, to time.Time) {
	t.Helper()
	if err := os.Chtimes(name, to, to); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheOwnerReadsFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "media")
	put(t, openDirectory(t, dir), workspace, []byte("x"))
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSymbolicLinksDoNotLeadOutside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	d := openDirectory(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, string(workspace))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Put(t.Context(), workspace, strings.NewReader("x")); err == nil {
		t.Error("a blob was stored through a symbolic link")
	}
	if left := append(files(t, outside), files(t, filepath.Join(dir, "tmp"))...); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestTidyRemovesOnlyOldTemporaryFiles(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	d := openDirectory(t, dir)
	kept := put(t, d, workspace, []byte("x"))
	for _, name := range []string{"young", "old"} {
		writeFile(t, filepath.Join(dir, "tmp", name))
	}
	changeTime(t, filepath.Join(dir, "tmp", "old"), now.Add(-2*time.Hour))
	if err := d.Tidy(t.Context(), now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if left := files(t, filepath.Join(dir, "tmp")); len(left) != 1 || filepath.Base(left[0]) != "young" {
		t.Errorf("left %q, want the young file", left)
	}
	get(t, d, kept, 0, -1)
}

// A file that is adopted is not written a second time.
func TestDirectoryAdoptsWithoutACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openDirectory(t, dir)
	f := created(t, d, noise(1, 1000))
	before, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Adopt(t.Context(), blob.Name{Workspace: workspace}, f); err != nil {
		t.Fatal(err)
	}
	left := files(t, dir)
	if after, err := os.Stat(left[0]); err != nil || len(left) != 1 || !os.SameFile(before, after) {
		t.Errorf("left %q, %v, want the same file", left, err)
	}
}

// The disk must have the bytes of a file and its name, once each. The directories above the first
// file of a workspace need two more.
func TestStoredFileWaitsTwiceForTheDisk(t *testing.T) {
	t.Parallel()
	d := openDirectory(t, t.TempDir())
	syncs := d.CountSyncs()
	for _, want := range []int64{4, 2} {
		before := syncs.Load()
		if err := d.Adopt(t.Context(), blob.Name{Workspace: workspace}, created(t, d, noise(1, 1000))); err != nil {
			t.Fatal(err)
		}
		if got := syncs.Load() - before; got != want {
			t.Errorf("the disk was waited for %d times, want %d", got, want)
		}
	}
}

func TestDirectoryThatFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openDirectory(t, dir)
	writeFile(t, filepath.Join(dir, string(workspace))) // a file where the workspace's directory belongs
	if _, _, err := d.Put(t.Context(), workspace, bytes.NewReader(noise(1, 100_000))); err == nil {
		t.Error("Put succeeded without a place for the blob")
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("left %q", left)
	}
	if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err == nil {
		t.Error("Check did not notice that nothing can be written")
	}
}

// TestFullDiskLeavesNothing runs alone, because the limit holds for the process.
func TestFullDiskLeavesNothing(t *testing.T) { //nolint:paralleltest // see above
	dir := t.TempDir()
	d := openDirectory(t, dir)
	limitFiles(t, 256<<10)
	if _, _, err := d.Put(t.Context(), workspace, bytes.NewReader(noise(2, 1<<20))); err == nil {
		t.Error("Put succeeded beyond the limit of the disk")
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

// limitFiles bounds the size of files that the process writes until the test ends.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	})
}
