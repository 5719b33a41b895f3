package health

import "testing"

// The file system /proc has no free space.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	if got := reasonOf(t, Disk("/proc")); got != "disk-full" {
		t.Errorf("%q on a full disk", got)
	}
	if got := reasonOf(t, Disk(t.TempDir())); got != "" {
		t.Errorf("%q on a disk with space", got)
	}
}
