package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"postern/internal/postern"
)

const (
	tempDir  = "tmp" // for files that are being written; no workspace has this name
	dirMode  = 0o700
	fileMode = 0o600
)

// Directory is a Store in a directory of the local machine, or one that machines share.
// Paths cannot leave it, not even through symbolic links.
type Directory struct {
	root *os.Root
	sync func(*os.File) error // waits until the disk has a file or directory
}

// OpenDirectory opens a directory, and creates it if it is missing.
func OpenDirectory(name string) (*Directory, error) {
	if err := os.MkdirAll(name, dirMode); err != nil { //nolint:gosec // the operator names it
		return nil, fmt.Errorf("create media directory: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open media directory: %w", err)
	}
	if err := root.MkdirAll(tempDir, dirMode); err != nil {
		return nil, fmt.Errorf("create media directory: %w", err)
	}
	return &Directory{root: root, sync: (*os.File).Sync}, nil
}

// Put writes a temporary file, which gets its name when all of it is on the disk.
func (d *Directory) Put(ctx context.Context, ws postern.WorkspaceID, r io.Reader) (Name, int64, error) {
	if err := checkWorkspace(ws); err != nil {
		return Name{}, 0, err
	}
	temp := tempName()
	hash, size, err := d.write(ctx, temp, r)
	name := Name{Workspace: ws, Hash: hash}
	if err == nil {
		err = d.publish(temp, name)
	}
	if err != nil {
		return Name{}, 0, errors.Join(err, ignoreMissing(d.root.Remove(temp)))
	}
	return name, size, nil
}

// Create creates a temporary file.
func (d *Directory) Create() (*os.File, error) {
	return d.root.OpenFile(tempName(), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
}

// Adopt renames the file when all of it is on the disk.
func (d *Directory) Adopt(ctx context.Context, name Name, f *os.File) error {
	if err := errors.Join(checkWorkspace(name.Workspace), ctx.Err()); err != nil {
		return err
	}
	if err := d.sync(f); err != nil {
		return err
	}
	return d.publish(tempDir+"/"+filepath.Base(f.Name()), name)
}

func tempName() string { return tempDir + "/" + rand.Text() }

// write fills a new file and waits until the disk has it.
func (d *Directory) write(ctx context.Context, name string, r io.Reader) (Hash, int64, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return Hash{}, 0, err
	}
	hash, size, err := copyHashed(ctx, f, r)
	if err == nil {
		err = d.sync(f)
	}
	return hash, size, errors.Join(err, f.Close())
}

// publish renames a written file to its blob's name. The rename replaces an older copy
// of the same content, whose readers keep what they opened.
func (d *Directory) publish(temp string, name Name) error {
	key, err := name.key()
	if err != nil {
		return err
	}
	err = d.root.Rename(temp, key)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.makeParents(key); err == nil {
			err = d.root.Rename(temp, key)
		}
	}
	if err != nil {
		return err
	}
	return d.syncDir(path.Dir(key))
}

// makeParents creates the directories above a blob, so that a crash does not lose them.
func (d *Directory) makeParents(key string) error {
	parent := path.Dir(key)
	if err := d.root.MkdirAll(parent, dirMode); err != nil {
		return err
	}
	return errors.Join(d.syncDir(path.Dir(parent)), d.syncDir("."))
}

func (d *Directory) syncDir(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

// Open opens the file. A file that is deleted meanwhile is read to its end.
func (d *Directory) Open(_ context.Context, name Name, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, errNegativeOffset
	}
	key, err := name.key()
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(key)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if length < 0 {
		return f, nil
	}
	return section{io.LimitReader(f, length), f}, nil
}

var errNegativeOffset = errors.New("the offset of a blob is not negative")

// section reads a part of a file and closes the whole.
type section struct {
	io.Reader
	io.Closer
}

// Stat describes one blob.
func (d *Directory) Stat(_ context.Context, name Name) (Info, error) {
	key, err := name.key()
	if err != nil {
		return Info{}, err
	}
	stat, err := d.root.Stat(key)
	if err != nil {
		return Info{}, err
	}
	return Info{Name: name, Size: stat.Size(), Modified: stat.ModTime()}, nil
}

// Delete removes the file. Empty directories stay: a Put may be about to use them.
func (d *Directory) Delete(_ context.Context, name Name) error {
	key, err := name.key()
	if err != nil {
		return err
	}
	return ignoreMissing(d.root.Remove(key))
}

// Walk reads one directory after the other.
func (d *Directory) Walk(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := fs.WalkDir(d.root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil {
				return errors.Join(ignoreMissing(err), ctx.Err())
			}
			name, ok := parseKey(file)
			if !ok || !entry.Type().IsRegular() {
				return nil
			}
			stat, err := entry.Info()
			if err != nil {
				return ignoreMissing(err) // deleted meanwhile
			}
			if !yield(Info{Name: name, Size: stat.Size(), Modified: stat.ModTime()}, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Info{}, err)
		}
	}
}

var errStopped = errors.New("the caller of Walk has seen enough")

// Tidy removes temporary files that were last written before that time.
func (d *Directory) Tidy(ctx context.Context, before time.Time) error {
	entries, err := fs.ReadDir(d.root.FS(), tempDir)
	for _, entry := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		stat, missing := entry.Info()
		if missing == nil && stat.ModTime().Before(before) {
			err = errors.Join(err, ignoreMissing(d.root.Remove(tempDir+"/"+entry.Name())))
		}
	}
	return err
}

// Check creates a file and removes it again.
func (d *Directory) Check(ctx context.Context) error {
	name := tempName()
	_, _, err := d.write(ctx, name, &io.LimitedReader{})
	return errors.Join(err, ignoreMissing(d.root.Remove(name)))
}

// Mark reads the file with the mark, or makes one that appears with all of its content.
func (d *Directory) Mark(ctx context.Context, fresh string) (string, error) {
	text, err := d.root.ReadFile(markName)
	if !errors.Is(err, fs.ErrNotExist) || fresh == "" {
		return strings.TrimSpace(string(text)), ignoreMissing(err)
	}
	temp := tempName()
	if _, _, err = d.write(ctx, temp, strings.NewReader(fresh+"\n")); err == nil {
		err = d.root.Link(temp, markName)
	}
	if err := errors.Join(err, ignoreMissing(d.root.Remove(temp)), d.syncDir(".")); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("mark the media directory: %w", err)
	}
	return d.Mark(ctx, "")
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
