package vendorsim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const (
	journalName = "vendor.journal"
	// headerSize is a checksum of the rest, the length of the key and the length of the value.
	headerSize = 4 + 2 + 4
	// removal replaces the length of the value if the key was removed.
	removal = 0xFFFF_FFFF
	// compactAt is the smallest size at which a journal in use is rewritten. A larger one is
	// rewritten when it has grown fourfold since the last time.
	compactAt = 64 << 20
	// maxKept is how many bytes are kept while the disk is full.
	maxKept = 64 << 20
)

var errJournalClosed = errors.New("journal is closed")

// journal is an append-only file of key/value records. The last record of a key has its value.
//
// put and remove only fill a buffer. flush passes it to the operating system, so that killing the
// process loses nothing. sync waits until it is on the disk; one fsync serves all waiting callers.
type journal struct {
	path string

	mu      sync.Mutex // guards the fields below
	settled *sync.Cond // a Sync has ended
	file    *os.File
	buf     []byte // appended, not yet written
	size    int64  // of the file
	floor   int64  // size after the last rewriting
	end     int64  // bytes appended since opening
	durable int64  // bytes of those that are on the disk
	syncing bool
	err     error // the first failure; later writes return it
}

// openJournal opens the journal in dir, or creates it, and returns its values. It cuts off a record
// at the end that was only partly written before a crash.
func openJournal(dir string) (*journal, map[string][]byte, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	j := &journal{path: filepath.Join(dir, journalName)}
	j.settled = sync.NewCond(&j.mu)
	values, err := j.rewrite()
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	return j, values, nil
}

// put makes value the value of key.
func (j *journal) put(key string, value []byte) { j.append(key, value, sizeOf(value)) }

// remove removes key.
func (j *journal) remove(key string) { j.append(key, nil, removal) }

func (j *journal) append(key string, value []byte, size uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.buf)
	j.buf = appendRecord(j.buf, key, value, size)
	j.end += int64(len(j.buf) - before)
}

// sizeOf returns the length of a value, which is far below the limit of 4 GB.
func sizeOf(value []byte) uint32 {
	return uint32(len(value)) //nolint:gosec // see above
}

func appendRecord(dst []byte, key string, value []byte, size uint32) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key))) //nolint:gosec // keys are some dozen bytes
	dst = binary.BigEndian.AppendUint32(dst, size)
	dst = append(append(dst, key...), value...)
	binary.BigEndian.PutUint32(dst[start:], crc32.ChecksumIEEE(dst[start+4:]))
	return dst
}

// flush writes all appended records to the file, so that they survive the end of the process.
func (j *journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write()
}

// sync waits until all appended records are on the disk.
func (j *journal) sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	want := j.end
	for j.err == nil && j.durable < want {
		if j.syncing {
			j.settled.Wait()
			continue
		}
		if err := j.fsync(); err != nil {
			return err
		}
	}
	return j.err
}

// fsync serves every caller that appended before it began. It releases the lock meanwhile.
func (j *journal) fsync() error {
	if err := j.write(); err != nil {
		return err
	}
	goal, file := j.end, j.file
	j.syncing = true
	j.mu.Unlock()
	err := file.Sync()
	j.mu.Lock()
	j.syncing = false
	if err != nil {
		_ = j.fail(err) // the waiting callers read j.err
	}
	j.durable = goal
	j.settled.Broadcast()
	return j.err
}

// write passes the buffer on. If the disk is full, the buffer stays, and a later call tries again.
func (j *journal) write() error {
	if j.err != nil || len(j.buf) == 0 {
		return j.err
	}
	if _, err := j.file.Write(j.buf); err != nil {
		return j.undo(err)
	}
	j.size += int64(len(j.buf))
	j.buf = j.buf[:0]
	if cap(j.buf) > maxFrame {
		j.buf = nil
	}
	if j.size > max(compactAt, 4*j.floor) && !j.syncing {
		return j.compact()
	}
	return nil
}

// undo cuts off what was written in part, because records behind it could not be read.
func (j *journal) undo(cause error) error {
	if err := j.file.Truncate(j.size); err != nil || len(j.buf) > maxKept {
		return j.fail(errors.Join(cause, err))
	}
	return fmt.Errorf("write journal: %w", cause)
}

func (j *journal) fail(err error) error {
	if j.err == nil {
		j.err = fmt.Errorf("write journal: %w", err)
	}
	return j.err
}

// compact removes the records that later ones have replaced.
func (j *journal) compact() error {
	if err := j.file.Close(); err != nil {
		return j.fail(err)
	}
	if _, err := j.rewrite(); err != nil {
		return j.fail(err)
	}
	j.durable = j.end
	return nil
}

// close writes the buffer and closes the file.
func (j *journal) close() error {
	err := j.sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, errJournalClosed) {
		return nil
	}
	j.err = errJournalClosed
	return errors.Join(err, j.file.Close())
}

// rewrite replaces the file by one with only the current records, and opens it for appending.
func (j *journal) rewrite() (map[string][]byte, error) {
	values, err := readJournal(j.path)
	if err != nil {
		return nil, err
	}
	next := j.path + ".new"
	if err := writeJournal(next, values); err != nil {
		return nil, err
	}
	if err := os.Rename(next, j.path); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		return nil, err
	}
	if j.file, err = os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	info, err := j.file.Stat()
	if err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	j.size, j.floor = info.Size(), info.Size()
	return values, nil
}

func writeJournal(path string, values map[string][]byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // the caller's directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	for _, key := range sortedKeys(values) {
		if _, err := w.Write(appendRecord(nil, key, values[key], sizeOf(values[key]))); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// readJournal replays a file up to its end or its first damaged record.
func readJournal(path string) (map[string][]byte, error) {
	values := make(map[string][]byte)
	f, err := os.Open(path) //nolint:gosec // the caller chose the directory
	if errors.Is(err, os.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading, so no data can be lost
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &io.LimitedReader{R: bufio.NewReaderSize(f, 1<<16), N: info.Size()}
	for replayRecord(r, values) {
	}
	return values, nil
}

// replayRecord applies the next record. It reports false if there is no complete one.
func replayRecord(r *io.LimitedReader, values map[string][]byte) bool {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return false
	}
	keySize := int64(binary.BigEndian.Uint16(header[4:]))
	valueSize := binary.BigEndian.Uint32(header[6:])
	rest := keySize
	if valueSize != removal {
		rest += int64(valueSize)
	}
	if rest > r.N {
		return false
	}
	body := make([]byte, rest)
	if _, err := io.ReadFull(r, body); err != nil {
		return false
	}
	sum := crc32.Update(crc32.ChecksumIEEE(header[4:]), crc32.IEEETable, body)
	if sum != binary.BigEndian.Uint32(header[:]) {
		return false
	}
	if key := string(body[:keySize]); valueSize == removal {
		delete(values, key)
	} else {
		values[key] = body[keySize:]
	}
	return true
}

// syncDir makes the renaming of a file in the directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller chose the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func sortedKeys(values map[string][]byte) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
