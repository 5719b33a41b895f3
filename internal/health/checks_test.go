package health

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// reasonOf returns the reason of the failure, and "" if there is none.
func reasonOf(t *testing.T, c Check) string {
	t.Helper()
	err := c.Run(t.Context())
	if err == nil {
		return ""
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return f.Reason
}

func TestFilesAreExhausted(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, Files()); got != "" {
		t.Fatalf("%q before the limit is lowered", got)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = uint64(f.Fd()) + 2
	if err := errors.Join(f.Close(), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low)); err != nil {
		t.Fatal(err)
	}
	noFile := openMany()
	got := reasonOf(t, Files())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if !IsNoFiles(noFile) || IsNoFiles(os.ErrNotExist) {
		t.Errorf("with a low limit, a file is not opened with %v", noFile)
	}
	if got != "files-exhausted" {
		t.Errorf("%q with a low limit", got)
	}
	if got := reasonOf(t, Files()); got != "" {
		t.Errorf("%q after the limit is raised again", got)
	}
}

func TestMissingDirectoryHasNoSpace(t *testing.T) {
	t.Parallel()
	if err := Disk(t.TempDir() + "/missing").Run(t.Context()); err == nil {
		t.Error("the disk of a directory that does not exist is fine")
	}
}

// openMany opens files until that fails, and closes them.
func openMany() error {
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer f.Close()
	}
}
