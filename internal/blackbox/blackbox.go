// Package blackbox records what the process is doing where a crash leaves it.
//
// Some failures end the process without a chance to recover: a panic in a goroutine of a
// library, or a fatal error of the runtime. A [Box] is a small file that is mapped into
// memory. Writing to it costs no system call, and the kernel keeps what was written however
// the process ends. The next start reads it, and the report of the crash that the runtime
// wrote beside it.
//
// The file survives the process, not the machine: after a power failure it may hold anything,
// and what it says is then ignored, because there is no report.
package blackbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
)

const (
	mapName    = "processing.map"
	reportName = "crash.txt"      // of this process; empty until it crashes
	lastName   = "crash.last.txt" // of the latest process that crashed

	slotSize = 64
	// maxSlots bounds what can be recorded at the same time; more is not recorded. The file
	// takes space only for the slots that were used.
	maxSlots = 1 << 14

	subjectAt, maxSubject = 2, 38
	whatAt, maxWhat       = subjectAt + maxSubject, slotSize - subjectAt - maxSubject
)

// Entry is something that was in progress.
type Entry struct {
	Subject string // whom it was for, such as the id of a device
	What    string // such as "frame"
}

// Left is what the previous process left behind.
type Left struct {
	Report  Report  // of its crash; "" if it ended in another way, such as by a signal
	Entries []Entry // what was in progress when it ended
}

// Box is the record of this process. A nil Box records nothing.
type Box struct {
	report *os.File

	mu   sync.Mutex // guards the fields below
	data []byte     // the mapped file; nil once closed
	next int        // slots from here on were never used
	free []int
}

// Open reads what the previous process left in the directory, and starts a new record. The
// caller holds the directory's lock. There can be one Box with a report in a process: of
// several, the latest gets it.
func Open(dir string) (*Box, Left, error) {
	left, err := takeLeft(dir)
	if err != nil {
		return nil, left, fmt.Errorf("read the record of a crash: %w", err)
	}
	b := &Box{}
	if err := b.open(dir); err != nil {
		return nil, left, errors.Join(fmt.Errorf("start a record for crashes: %w", err), b.Close())
	}
	return b, left, nil
}

func (b *Box) open(dir string) (err error) {
	if b.data, err = mapFile(filepath.Join(dir, mapName)); err != nil {
		return err
	}
	b.report, err = os.OpenFile(filepath.Join(dir, reportName), //nolint:gosec // the operator names the directory
		os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return debug.SetCrashOutput(b.report, debug.CrashOptions{})
}

// mapFile maps a new, empty file.
func mapFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if err := f.Truncate(slotSize * maxSlots); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, slotSize*maxSlots, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// Close ends the record. Marks that are still set say nothing from now on.
func (b *Box) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	if b.data != nil {
		clear(b.data)
		errs = append(errs, syscall.Munmap(b.data))
		b.data = nil
	}
	if b.report != nil {
		errs = append(errs, debug.SetCrashOutput(nil, debug.CrashOptions{}), b.report.Close())
		b.report = nil
	}
	return errors.Join(errs...)
}

// Mark records what is in progress for one subject. It takes a slot only while something is, so
// that the number of subjects has no bound. Its methods may be called from any goroutine.
type Mark struct {
	box     *Box
	subject string

	// The fields below are guarded by box.mu.
	slot     int    // -1 while nothing is recorded
	what     string // as recorded
	released bool
}

// Mark returns an empty mark for a subject. The caller must release it.
func (b *Box) Mark(subject string) *Mark {
	if b == nil {
		return nil
	}
	return &Mark{box: b, subject: subject, slot: -1}
}

// Set records what is in progress; "" records that nothing is.
func (m *Mark) Set(what string) {
	if m == nil {
		return
	}
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	m.set(what)
}

// Release ends the mark: Set does nothing from now on.
func (m *Mark) Release() {
	if m == nil {
		return
	}
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	m.set("")
	m.released = true
}

// set is Set. The caller holds box.mu.
func (m *Mark) set(what string) {
	b := m.box
	if b.data == nil || m.released || what == m.what {
		return
	}
	if m.slot < 0 {
		if m.slot = b.take(); m.slot < 0 {
			return
		}
	}
	m.what = what
	at := m.slot * slotSize
	write(b.data[at:at+slotSize], m.subject, what)
	if what == "" {
		b.free, m.slot = append(b.free, m.slot), -1
	}
}

// take returns a slot that is not in use, or -1. The caller holds mu.
func (b *Box) take() int {
	if n := len(b.free); n > 0 {
		slot := b.free[n-1]
		b.free = b.free[:n-1]
		return slot
	}
	if b.next == maxSlots {
		return -1
	}
	b.next++
	return b.next - 1
}

// write fills a slot. Its first byte is the length of what, which is 0 while nothing is in
// progress; it is written last.
func write(slot []byte, subject, what string) {
	slot[0] = 0
	if what == "" {
		return
	}
	slot[1] = byte(copy(slot[subjectAt:subjectAt+maxSubject], subject)) //nolint:gosec // at most maxSubject
	slot[0] = byte(copy(slot[whatAt:], what))                           //nolint:gosec // at most maxWhat
}

// read returns the entry of a slot; ok is false if nothing was in progress.
func read(slot []byte) (e Entry, ok bool) {
	what, subject := int(slot[0]), int(slot[1])
	if what == 0 || what > maxWhat || subject > maxSubject {
		return e, false
	}
	return Entry{string(slot[subjectAt : subjectAt+subject]), string(slot[whatAt : whatAt+what])}, true
}
