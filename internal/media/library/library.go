// Package library keeps the files of messages: it takes them in, finds out what they are,
// stores their bytes, and makes them ready to be sent.
package library

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"postern/internal/media"
	"postern/internal/media/blob"
	"postern/internal/postern"
)

// Catalog counts the blobs, and says which of them files have. A hash is in lower-case hexadecimal
// digits. [postern/internal/store.Blobs] is the catalog of a server.
type Catalog interface {
	// Held reports whether a file has a blob.
	Held(ctx context.Context, ws postern.WorkspaceID, hash string) (bool, error)
	// Release takes a blob that no file has off the count, and reports whether no file has it. A
	// file that is being added when it is called counts as one that has it.
	Release(ctx context.Context, ws postern.WorkspaceID, hash string) (free bool, err error)
	// Unheld calls free for each blob that is counted and that no file has.
	Unheld(ctx context.Context, free func(ws postern.WorkspaceID, hash string) error) error
}

// Library keeps the files of all workspaces. It is safe for concurrent use.
type Library struct {
	blobs     blob.Store
	catalog   Catalog
	holds     *holds
	converter *media.Converter
	scratch   string // directory for files in transit
	floor     uint64 // bytes of free disk space below which no file is taken
	shared    bool   // other servers work on the storage
}

const (
	// minFree is how much of the disk files leave to the database, which is usually on the same one.
	minFree = 512 << 20
	// dropTime is how long the storage has to remove the blob of a file that was not added.
	dropTime = 30 * time.Second
)

// Open opens a library over a storage. Scratch is a directory for files in transit, which is
// emptied.
func Open(blobs blob.Store, scratch string, catalog Catalog) (*Library, error) {
	if err := os.RemoveAll(scratch); err != nil {
		return nil, fmt.Errorf("empty the directory for files in transit: %w", err)
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for files in transit: %w", err)
	}
	return &Library{
		blobs: blobs, catalog: catalog, holds: newHolds(), converter: media.New(media.Options{Scratch: scratch}),
		scratch: scratch, floor: minFree,
	}, nil
}

// Share makes the library leave the removal of all blobs to the sweep, because other servers work on the
// same storage: one of them may just be adding a file with a blob that no file had. It must be called
// before the library is used.
func (l *Library) Share() { l.shared = true }

// Scratch creates a file in transit. The caller closes it and removes it; [Discard] does both. The
// error has the reason Unavailable if the disk is nearly full.
func (l *Library) Scratch() (*os.File, error) {
	f, err := l.blobs.Create()
	if err != nil {
		return nil, err
	}
	return f, l.leavesRoom(f)
}

// leavesRoom discards a new file if the disk is nearly full.
func (l *Library) leavesRoom(f *os.File) error {
	err := l.room(f)
	if err != nil {
		Discard(f)
	}
	return err
}

func (l *Library) room(f *os.File) error {
	var disk syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &disk); err != nil {
		return fmt.Errorf("read the free disk space: %w", err)
	}
	if disk.Bavail*uint64(disk.Bsize) < l.floor { //nolint:gosec // the size of a block is positive
		return postern.Errorf(postern.Unavailable, "the disk of the server is nearly full, so it takes no files")
	}
	return nil
}

// Room returns an error with the reason Unavailable while [Library.Scratch] would, because the disk is nearly
// full.
func (l *Library) Room() error {
	f, err := l.blobs.Create()
	if err != nil {
		return err
	}
	defer Discard(f)
	return l.room(f)
}

// Discard closes a file in transit and removes it.
func Discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// Taken is a file to send that was stored.
type Taken struct {
	postern.Media

	Thumbnail []byte // a small JPEG of a photo; nil if Prepare still has to make it
}

// Take reads a file to send of at most [postern.MaxMedia] bytes and keeps it; see [Library.Keep]. It
// stops as soon as the file is larger than the room that a workspace has. The error has the reason
// PayloadTooLarge or ResourceLimit if the file is too large. The thumbnail is made here, once, and not
// for each device that sends the file.
func (l *Library) Take(
	ctx context.Context, ws postern.WorkspaceID, r io.Reader, room postern.Storage, add func(Taken) error,
) error {
	f, err := l.Scratch()
	if err != nil {
		return err
	}
	defer Discard(f)
	if _, err := io.Copy(f, within(r, room)); err != nil {
		return err
	}
	thumbnail := l.converter.For(ws).Thumbnail(ctx, f.Name())
	return l.Keep(ctx, ws, f, func(m postern.Media) error { return add(Taken{m, thumbnail}) })
}

func within(r io.Reader, s postern.Storage) io.Reader {
	if s.Room() < postern.MaxMedia {
		return blob.LimitTo(r, s.Room(), s.Full())
	}
	return blob.Limit(r, postern.MaxMedia)
}

// Keep stores a file in transit, which is not written any more. Then add, which gets the file
// without an id and a name, adds it to the catalog. If add fails, the bytes are removed again,
// unless another file has them. The caller still discards the file.
func (l *Library) Keep(
	ctx context.Context, ws postern.WorkspaceID, f *os.File, add func(postern.Media) error,
) error {
	d, err := l.converter.For(ws).Describe(ctx, f.Name())
	if err != nil {
		return err
	}
	hash, size, err := blob.Sum(ctx, f)
	if err != nil {
		return err
	}
	return l.store(ctx, blob.Name{Workspace: ws, Hash: hash}, f, func() error {
		return add(postern.Media{
			MIMEType: d.MIMEType, Size: size, SHA256: hash.String(), Status: postern.MediaReady,
			Duration: d.Duration.Round(time.Millisecond).Seconds(), Width: d.Width, Height: d.Height,
		})
	})
}

// store stores a blob for a file. The blob is not removed before add has added the file.
func (l *Library) store(ctx context.Context, name blob.Name, f *os.File, add func() error) (err error) {
	release, err := l.holds.hold(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		if release(); err != nil {
			l.undo(ctx, name)
		}
	}()
	if err := l.blobs.Adopt(ctx, name, f); err != nil {
		return err
	}
	return add()
}

// undo removes the blob of a file that was not added. If that fails, a sweep does it.
func (l *Library) undo(ctx context.Context, name blob.Name) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime) // the caller may have left
	defer cancel()
	_ = l.drop(ctx, name)
}

// Drop removes the bytes of a file that was removed, unless another file of the workspace has them.
func (l *Library) Drop(ctx context.Context, ws postern.WorkspaceID, hash string) error {
	h, err := blob.ParseHash(hash)
	if err != nil {
		return fmt.Errorf("remove the bytes of a file: %w", err)
	}
	return l.drop(ctx, blob.Name{Workspace: ws, Hash: h})
}

// drop removes a blob that no file has, and with which no file is being added.
func (l *Library) drop(ctx context.Context, name blob.Name) error {
	return l.release(ctx, name, func() error {
		if l.shared {
			return nil
		}
		return l.blobs.Delete(ctx, name)
	})
}

// release takes a blob that no file has off the count, and then calls free. Meanwhile this server adds no
// file with it.
func (l *Library) release(ctx context.Context, name blob.Name, free func() error) error {
	end, ok := l.holds.remove(name)
	if !ok {
		return nil
	}
	defer end()
	isFree, err := l.catalog.Release(ctx, name.Workspace, name.Hash.String())
	if err != nil || !isFree {
		return err
	}
	return free()
}

// Open reads a file that is ready, from any place. It lasts as long as ctx. The caller closes
// it. Reads fail with an error that matches fs.ErrNotExist if the storage has lost the file.
func (l *Library) Open(ctx context.Context, ws postern.WorkspaceID, m postern.Media) (*blob.Reader, error) {
	hash, err := blob.ParseHash(m.SHA256)
	if err != nil {
		return nil, fmt.Errorf("open a file: %w", err)
	}
	return blob.NewReader(ctx, l.blobs, blob.Name{Workspace: ws, Hash: hash}, m.Size), nil
}

// Sendable returns nil if a message of a kind can carry a file of a type on this server.
func (l *Library) Sendable(kind postern.Kind, mimeType string) error {
	if err := media.Fits(kind, mimeType); err != nil {
		return err
	}
	needs := kind == postern.KindVideo || kind == postern.KindSticker ||
		kind == postern.KindVoice && mimeType != "audio/ogg"
	if needs && !l.converter.HasFFmpeg() {
		return postern.Invalid("/type", "this server has no ffmpeg, which messages of this kind need; "+
			"install it, or send the file as a document")
	}
	return nil
}

// Prepared is a file as a message of some kind carries it.
type Prepared struct {
	media.Prepared

	Body io.ReaderAt
	Size int64    // bytes
	file *os.File // in transit; nil if the file is in memory
}

// Close releases the file.
func (p Prepared) Close() {
	if p.file != nil {
		Discard(p.file)
	}
}

// ScratchDir is the directory for files in transit.
func (l *Library) ScratchDir() string { return l.scratch }

// maxInMemory is how many bytes a picture may have that is read into memory to be sent.
const maxInMemory = 2 << 20

// Prepare makes a file that is ready fit for messages of a kind. The caller closes it. An error of the
// reason ValidationFailed means that the kind cannot carry it.
func (l *Library) Prepare(ctx context.Context, ws postern.WorkspaceID, m Taken, kind postern.Kind) (Prepared, error) {
	if kind == postern.KindImage && len(m.Thumbnail) > 0 && m.Size <= maxInMemory {
		return l.asItIs(ctx, ws, m)
	}
	f, err := l.fetch(ctx, ws, m.Media)
	if err != nil {
		return Prepared{}, err
	}
	p, err := l.converter.For(ws).Prepare(ctx, kind, f.Name())
	if err != nil || p.File != "" {
		Discard(f)
	}
	if err == nil && p.File != "" {
		f, err = os.Open(p.File)
	}
	if err != nil {
		return Prepared{}, err
	}
	stat, err := f.Stat()
	if err != nil {
		Discard(f)
		return Prepared{}, err
	}
	return Prepared{p, f, stat.Size(), f}, nil
}

// asItIs reads a picture that needs no conversion and has its thumbnail.
func (l *Library) asItIs(ctx context.Context, ws postern.WorkspaceID, m Taken) (Prepared, error) {
	r, err := l.Open(ctx, ws, m.Media)
	if err != nil {
		return Prepared{}, err
	}
	defer r.Close()
	b := make([]byte, m.Size)
	if _, err := io.ReadFull(r, b); err != nil {
		return Prepared{}, err
	}
	if blob.Hash(sha256.Sum256(b)).String() != m.SHA256 {
		return Prepared{}, postern.Invalid("/media", "the stored file is damaged; upload it again")
	}
	d := media.Description{MIMEType: m.MIMEType, Width: m.Width, Height: m.Height}
	return Prepared{media.Prepared{Description: d, Thumbnail: m.Thumbnail}, bytes.NewReader(b), m.Size, nil}, nil
}

// Thumbnail makes a small JPEG of a picture of at most limit bytes; nil if that is not possible.
func (l *Library) Thumbnail(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	f, err := l.Scratch()
	if err != nil {
		return nil, err
	}
	defer Discard(f)
	if _, err := io.Copy(f, blob.Limit(r, limit)); err != nil {
		return nil, err
	}
	p, err := l.converter.Prepare(ctx, postern.KindImage, f.Name())
	return p.Thumbnail, errors.Join(err, p.Remove())
}

// Avatar makes the picture of a group or a person of a file that is ready; see [media.Converter.Avatar].
func (l *Library) Avatar(ctx context.Context, ws postern.WorkspaceID, m postern.Media) ([]byte, error) {
	f, err := l.fetch(ctx, ws, m)
	if err != nil {
		return nil, err
	}
	defer Discard(f)
	return l.converter.For(ws).Avatar(ctx, f.Name())
}

// fetch copies a file that is ready into one in transit.
func (l *Library) fetch(ctx context.Context, ws postern.WorkspaceID, m postern.Media) (*os.File, error) {
	r, err := l.Open(ctx, ws, m)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := os.CreateTemp(l.scratch, "file-")
	if err != nil {
		return nil, err
	}
	if err := l.leavesRoom(f); err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		Discard(f)
		return nil, err
	}
	return f, nil
}

// Check returns nil if files can be stored now.
func (l *Library) Check(ctx context.Context) error { return l.blobs.Check(ctx) }

// Mark returns the mark by which servers recognize the storage; see [blob.Store].
func (l *Library) Mark(ctx context.Context, fresh string) (string, error) {
	return l.blobs.Mark(ctx, fresh)
}

// Sweep removes the blobs that no file has: those that are counted, and those that were stored
// before a time and are not. It leaves out what cannot be removed, and returns the errors.
func (l *Library) Sweep(ctx context.Context, before time.Time) error {
	var failed failures
	err := l.catalog.Unheld(ctx, func(ws postern.WorkspaceID, hash string) error {
		return failed.add(ctx, l.Drop(ctx, ws, hash))
	})
	if err != nil {
		return err
	}
	for info, err := range l.blobs.Walk(ctx) {
		if err != nil {
			return err
		}
		if err := failed.add(ctx, l.sweep(ctx, info, before)); err != nil {
			return err
		}
	}
	return errors.Join(failed.err(), l.blobs.Tidy(ctx, before))
}

// sweep removes a blob that was stored before a time and that no file has.
func (l *Library) sweep(ctx context.Context, info blob.Info, before time.Time) error {
	if !info.Modified.Before(before) {
		return nil
	}
	held, err := l.catalog.Held(ctx, info.Workspace, info.Hash.String())
	if err != nil || held {
		return err
	}
	return l.release(ctx, info.Name, func() error { return l.deleteOld(ctx, info.Name, before) })
}

// failures are those of a sweep.
type failures []error

// mostFailures is how many blobs a sweep leaves out: with more, something is wrong with the storage.
const mostFailures = 100

// add notes an error. It returns all of them when the sweep is to stop.
func (f *failures) add(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	*f = append(*f, err)
	if ctx.Err() != nil || len(*f) >= mostFailures {
		return f.err()
	}
	return nil
}

func (f *failures) err() error { return errors.Join(*f...) }

// deleteOld deletes a blob, unless another server has stored it again since a time.
func (l *Library) deleteOld(ctx context.Context, name blob.Name, before time.Time) error {
	info, err := l.blobs.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Modified.Before(before):
		return nil
	}
	return l.blobs.Delete(ctx, name)
}
