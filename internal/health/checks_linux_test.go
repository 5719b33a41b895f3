package health

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDiskIsFull fills a file system of 80 MiB in memory. It needs the right to mount one, so
// without it, it runs itself in a user namespace.
func TestDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=80m"); err != nil {
		runInNamespace(t)
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if got := reasonOf(t, Disk(dir)); got != "" {
		t.Fatalf("%q on an empty disk", got)
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, Disk(dir)); got != "disk-full" {
		t.Errorf("%q on a full disk", got)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, Disk(dir)); got != "" {
		t.Errorf("%q after the file is removed", got)
	}
}

func runInNamespace(t *testing.T) {
	t.Helper()
	if os.Getenv("IN_NAMESPACE") != "" {
		t.Fatal("this system allows no mounts in user namespaces")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--mount", os.Args[0],
		"-test.run=^TestDiskIsFull$")
	cmd.Env = append(os.Environ(), "IN_NAMESPACE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
