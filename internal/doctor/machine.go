package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"postern/internal/health"
)

const (
	littleDisk = 2 << 30  // bytes
	leastDisk  = 64 << 20 // bytes; a server with less is not ready

	writes    = 21                     // of which the median counts
	slowWrite = 20 * time.Millisecond  // a commit takes as long
	badWrite  = 250 * time.Millisecond // the same

	filesForServer = 500 // of the database, its own, and requests
	filesForDevice = 2   // the connection, and a file that is sent

	bytesForServer = 64 << 20
	bytesForDevice = 300 << 10 // with some room; see docs/scale.md
)

// Disk checks that a directory can be written, has free space, and keeps what is written soon.
func Disk(dir string) Check {
	return Check{"disk", func(ctx context.Context) Finding {
		dir := existing(dir)
		free, err := health.FreeSpace(dir)
		if err != nil {
			return Fail(err.Error(), "Name another directory with --data-dir.")
		}
		took, err := writeTime(ctx, dir)
		if err != nil {
			return Fail("Nothing can be written to the data directory: "+err.Error(),
				"Give it to the user that runs Postern.")
		}
		detail := fmt.Sprintf("%.1f GiB free; a small write is on the disk after %s.", float64(free)/(1<<30),
			took.Round(10*time.Microsecond))
		switch {
		case free < leastDisk:
			return Fail(detail, "Free some space: a server with less than 64 MiB is not ready.")
		case took > badWrite:
			return Fail(detail, "Use a local disk: each message would wait for several such writes.")
		case free < littleDisk:
			return warn(detail, "Enlarge the disk, or lower POSTERN_RETENTION_MEDIA.")
		case took > slowWrite:
			return warn(detail, "Use a faster disk, such as a local SSD. Until then, fewer messages can be accepted "+
				"per second.")
		}
		return ok(detail)
	}}
}

// existing is the nearest directory above one that the server still has to create.
func existing(dir string) string {
	for {
		_, err := os.Stat(dir)
		if parent := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		return dir
	}
}

// writeTime is the median time that a small write takes until it is on the disk.
func writeTime(ctx context.Context, dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	times := make([]time.Duration, 0, writes)
	for range writes {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := errors.Join(f.Sync(), ctx.Err()); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// Files checks the limit of open files and connections for a number of devices.
func Files(devices int) Check {
	return Check{"files", func(context.Context) Finding {
		var l syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			return Skip(err.Error())
		}
		need := uint64(filesForServer + filesForDevice*devices) //nolint:gosec // not negative
		detail := fmt.Sprintf("The process may open %d files and connections; %d devices need about %d.", l.Max,
			devices, need)
		if l.Max < need { // Go raises the current limit to the largest one
			return Fail(detail, "Raise the limit: ulimit -n, or LimitNOFILE in the systemd unit.")
		}
		return ok(detail)
	}}
}

// Memory checks that there is memory for a number of devices.
func Memory(devices int) Check {
	return Check{"memory", func(context.Context) Finding {
		free, err := freeMemory()
		if err != nil {
			return Skip("The free memory could not be read: " + err.Error() + ".")
		}
		need := int64(bytesForServer + bytesForDevice*devices)
		detail := fmt.Sprintf("%d MiB are available; %d devices need about %d MiB.", free>>20, devices, need>>20)
		if free < need {
			return warn(detail, "Add memory, or share the devices among several servers.")
		}
		return ok(detail)
	}}
}

// readers says who can read a file that is closed to all others.
func readers(info os.FileInfo) string {
	if info.Mode().Perm()&0o040 != 0 {
		return "its owner and its group"
	}
	return "its owner"
}

// Key checks the file with the secret key. fits looks whether it has what the database needs.
func Key(path string, besideDatabase bool, fits func(context.Context) error) Check {
	return Check{"secret-key", func(ctx context.Context) Finding {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return Skip("It is created in " + path + " when the server starts for the first time.")
		}
		switch {
		case err != nil:
			return Fail(err.Error(), "Make the file readable for the user that runs Postern.")
		case info.Mode().Perm()&0o027 != 0: // a group that may only read it is how Kubernetes gives a secret to a process
			return Fail(fmt.Sprintf("Others can read %s (mode %04o).", path, info.Mode().Perm()), "chmod 600 "+path)
		}
		if err := fits(ctx); err != nil {
			return Fail(err.Error()+".", "Restore the file, or name it by POSTERN_SECRET_KEY_FILE.")
		}
		if besideDatabase {
			return warn(path+" is in the same directory as the database, so a copy of the directory contains both.",
				"Keep a copy of the key in another place. To separate the two, move the file and set "+
					"POSTERN_SECRET_KEY_FILE.")
		}
		return ok(filepath.Base(path) + " can be read by " + readers(info) + " only.")
	}}
}
