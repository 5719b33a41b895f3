package vendorsim

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	// maxBlob is the size of the largest blob in bytes: 100 MiB of media, its padding and its MAC.
	maxBlob = 100<<20 + 16 + macSize
	// maxBlobsOnDisk and maxBlobsInMemory are how many bytes of blobs a Vendor keeps. The oldest
	// blobs are dropped.
	maxBlobsOnDisk   = 4 << 30
	maxBlobsInMemory = 512 << 20

	blobDir = "media"
	// partial is the end of the name of a blob that is being received.
	partial = ".partial"
)

var (
	errBlobTooLarge = errors.New("more than 100 MiB")
	errNoBlob       = errors.New("no such blob")
)

// blobs keeps the encrypted files of messages: below the state directory, or in memory for a Vendor
// without one.
type blobs struct {
	dir   string // "" keeps them in memory
	limit int64  // bytes of all blobs

	mu    sync.Mutex // guards the fields below
	list  []*blob    // oldest first
	total int64      // bytes
}

// blob is one encrypted file. All but its expiry is fixed.
type blob struct {
	id      string // begins with the hidden address of the account that sent or received it
	size    int64
	data    []byte // in memory; nil on the disk
	expired bool   // the vendor no longer hands it out, but a phone still has it
}

// openBlobs returns the blobs that are stored below a state directory, "" for none.
func openBlobs(state string) (*blobs, error) {
	if state == "" {
		return &blobs{limit: maxBlobsInMemory}, nil
	}
	b := &blobs{dir: filepath.Join(state, blobDir), limit: maxBlobsOnDisk}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open media: %w", err)
	}
	if err := b.scan(); err != nil {
		return nil, fmt.Errorf("open media: %w", err)
	}
	return b, nil
}

// scan lists the files of the directory and removes those that were only partly received.
func (b *blobs) scan() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	age := make(map[*blob]int64)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), partial) {
			err = errors.Join(err, os.Remove(filepath.Join(b.dir, e.Name())))
			continue
		}
		info, statErr := e.Info()
		if statErr != nil {
			return statErr
		}
		one := &blob{id: e.Name(), size: info.Size()}
		age[one] = info.ModTime().UnixNano()
		b.list, b.total = append(b.list, one), b.total+one.size
	}
	slices.SortStableFunc(b.list, func(x, y *blob) int { return cmp.Compare(age[x], age[y]) })
	return err
}

// draft is a blob that is being received. It must be kept or discarded.
type draft struct {
	blobs *blobs
	file  *os.File // nil in memory
	data  bytes.Buffer
	hash  hash.Hash
	size  int64
}

func (b *blobs) create() (*draft, error) {
	d := &draft{blobs: b, hash: sha256.New()}
	if b.dir == "" {
		return d, nil
	}
	var err error
	d.file, err = os.CreateTemp(b.dir, "*"+partial)
	return d, err
}

// Write appends to the draft. It refuses more than maxBlob bytes.
func (d *draft) Write(p []byte) (int, error) {
	if d.size += int64(len(p)); d.size > maxBlob {
		return 0, errBlobTooLarge
	}
	d.hash.Write(p)
	if d.file == nil {
		return d.data.Write(p)
	}
	return d.file.Write(p)
}

// sum returns the SHA-256 of what was written.
func (d *draft) sum() []byte { return d.hash.Sum(nil) }

// keep stores the draft for an account.
func (d *draft) keep(account number) (*blob, error) {
	one := &blob{id: account.lid().User + "-" + hex.EncodeToString(newSecret()[:12]), size: d.size}
	if d.file == nil {
		one.data = d.data.Bytes()
	} else if err := d.store(one.id); err != nil {
		d.discard()
		return nil, err
	}
	d.blobs.add(one)
	return one, nil
}

func (d *draft) store(id string) error {
	if err := d.file.Close(); err != nil {
		return err
	}
	return os.Rename(d.file.Name(), filepath.Join(d.blobs.dir, id))
}

// discard removes what was written.
func (d *draft) discard() {
	if d.file != nil {
		_ = d.file.Close() // it is removed anyway
		_ = os.Remove(d.file.Name())
	}
}

// add lists a blob and drops the oldest ones above the limit.
func (b *blobs) add(one *blob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list, b.total = append(b.list, one), b.total+one.size
	for b.total > b.limit && len(b.list) > 1 {
		b.drop(0)
	}
}

// drop removes the blob at an index. The caller holds b.mu.
func (b *blobs) drop(i int) {
	if b.dir != "" {
		_ = os.Remove(filepath.Join(b.dir, b.list[i].id)) // a file that stays is listed at the next start
	}
	b.total -= b.list[i].size
	b.list = slices.Delete(b.list, i, i+1)
}

// remove drops a blob, and reports whether there was one.
func (b *blobs) remove(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.list, func(one *blob) bool { return one.id == id })
	if i < 0 {
		return false
	}
	b.drop(i)
	return true
}

// expire makes the blobs of an account expire.
func (b *blobs) expire(account number) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.list {
		one.expired = one.expired || ownerOf(one.id) == account
	}
}

// open opens a blob, which the caller closes. expired is true for one that only a phone still has.
func (b *blobs) open(id string) (r io.ReadSeekCloser, expired bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.list, func(one *blob) bool { return one.id == id })
	switch {
	case i < 0:
		return nil, false, errNoBlob
	case b.dir == "":
		return inMemory{bytes.NewReader(b.list[i].data)}, b.list[i].expired, nil
	}
	f, err := os.Open(filepath.Join(b.dir, b.list[i].id))
	return f, b.list[i].expired, err
}

type inMemory struct{ *bytes.Reader }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// again stores another copy of a blob, for an account. The copy does not expire with the blob.
func (b *blobs) again(id string, account number) (*blob, error) {
	r, _, err := b.open(id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // opened for reading
	d, err := b.create()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(d, r); err != nil {
		d.discard()
		return nil, err
	}
	return d.keep(account)
}
