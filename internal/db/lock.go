package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// LockedError means that another process holds the data directory.
type LockedError struct {
	Dir string
	PID int // 0 when it could not be read
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("the data directory %s is in use by process %d; stop that server or choose another directory",
		e.Dir, e.PID)
}

// LockName is the name of the file by which a data directory is locked. It stays when the lock is released.
const LockName = "postern.lock"

// DirLock is an exclusive lock on a data directory. The kernel releases it when the process ends, however it
// ends.
type DirLock struct{ file *os.File }

// LockDir locks a data directory, and makes it if it is missing. If another process holds the lock, the error
// is a [*LockedError].
func LockDir(dir string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be written: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid := readPID(path)
		return nil, errors.Join(&LockedError{Dir: dir, PID: pid}, f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("the data directory cannot be written: %w", err), f.Close())
	}
	return &DirLock{f}, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(path string) int {
	b, err := os.ReadFile(path) //nolint:gosec // as above
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// Release releases the lock at once, even if a program that is just being started
// briefly holds a copy of the file.
func (l *DirLock) Release() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
