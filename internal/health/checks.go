package health

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

const (
	// lowDisk is the free space, in bytes, below which a server stops being ready: enough for the
	// database to finish what it has begun, and for an operator to repair it.
	lowDisk = 64 << 20

	// spareFiles is how many files a server must be able to open: those of one request with a file
	// and a webhook, with some room.
	spareFiles = 16
)

// Disk checks that the file system of a directory has free space.
func Disk(dir string) Check {
	return Check{"disk", func(context.Context) error {
		free, err := FreeSpace(dir)
		if err != nil {
			return fmt.Errorf("read the free space of the data directory: %w", err)
		}
		if free >= lowDisk {
			return nil
		}
		return &Failure{Reason: "disk-full", Detail: fmt.Sprintf("The disk of the data directory has %d MiB free; "+
			"at least %d MiB are needed. Free some space or enlarge the disk.", free>>20, lowDisk>>20)}
	}}
}

// FreeSpace returns how many bytes a process without special rights can still write to the file system of a
// directory.
func FreeSpace(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil //nolint:gosec,unconvert // the types differ between systems
}

// Files checks that the process can still open files and connections.
func Files() Check {
	return Check{"files", func(context.Context) error {
		for range spareFiles {
			f, err := os.Open(os.DevNull)
			switch {
			case IsNoFiles(err):
				return &Failure{Reason: "files-exhausted", Detail: fmt.Sprintf("The process cannot open %d more files "+
					"or connections. Raise its limit (ulimit -n, or LimitNOFILE in the systemd unit).", spareFiles)}
			case err != nil:
				return err
			}
			defer f.Close() //nolint:revive // a few, for as long as the check takes
		}
		return nil
	}}
}

// IsNoFiles tells whether an error is that no more files can be opened, which [Files] reports.
func IsNoFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
