// Package backup makes backups of the database and of the files of messages while servers run, and
// restores them.
//
// A backup is a directory: postern.db, the database as it was at one moment, in SQLite whichever database
// it comes from; media, the files of messages; manifest.json; and SHA256SUMS, the checksum of each file in
// the form that sha256sum checks. The secret key is not in it.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"postern/internal/db/dbcopy"
	"postern/internal/media/blob"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/transfer"
)

// The names in a backup.
const (
	databaseName = "postern.db"
	mediaName    = "media"
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"

	format = 1 // of the directory
)

// partial is added to the name of a backup or a database that is not complete.
const partial = ".partial"

// Manifest describes a backup.
type Manifest struct {
	Format  int            `json:"format"`
	Moment  time.Time      `json:"moment"`  // everything that was accepted before it is in the backup
	Release string         `json:"release"` // that made it
	Version int64          `json:"version"` // of the database
	Tables  []dbcopy.Table `json:"tables"`
	Media   Media          `json:"media"`
	// SecretKeys are the ids of the secret keys without which the backup cannot be used.
	SecretKeys []string `json:"secretKeys"`
}

// Media counts the files of messages in a backup.
type Media struct {
	Included bool  `json:"included"`
	Files    int64 `json:"files"`
	Bytes    int64 `json:"bytes"`
	Missing  int64 `json:"missing"` // that were deleted while the backup was made
	Lost     int64 `json:"lost"`    // that the storage lacks although the database has them
}

// Source is what is backed up.
type Source struct {
	Database transfer.Place
	Media    Opener // nil leaves the files of messages out
	Release  string
	// AllowLost makes a backup although the storage lacks files that the database has.
	AllowLost bool
}

// Opener opens the storage for the files of messages. That of a source fails with fs.ErrNotExist if there is
// no storage, and that of a target creates it.
type Opener func() (blob.Store, error)

// Make makes a backup in a directory that must not exist yet, and reads it back to check it. The directory
// appears when the backup is complete.
func Make(ctx context.Context, from Source, dir string) (m Manifest, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return m, fmt.Errorf("%s exists already; name a directory that does not exist yet", dir)
	}
	dir = filepath.Clean(dir)
	part := dir + partial
	if err := os.Mkdir(part, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is left of a backup that was interrupted, or is being made now; remove it first", part)
		}
		return m, err
	}
	if m, err = from.writeTo(ctx, part); err == nil {
		_, err = Verify(ctx, part)
	}
	if err != nil {
		return m, errors.Join(err, os.RemoveAll(part))
	}
	return m, publish(part, dir)
}

// writeTo writes everything but the last name.
func (from Source) writeTo(ctx context.Context, dir string) (m Manifest, err error) {
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return m, err
	}
	s, err := transfer.Copy(ctx, from.Database, work)
	if err != nil {
		return m, err
	}
	m = Manifest{Format: format, Moment: s.Moment, Release: from.Release, Version: s.Version, Tables: s.Tables}
	if m.SecretKeys, err = transfer.SecretKeys(ctx, transfer.Place{Dir: work}); err != nil {
		return m, err
	}
	sums, err := newSums(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sums.close()) }()
	if m.Media, err = from.copyMedia(ctx, work, filepath.Join(dir, mediaName), sums); err != nil {
		return m, err
	}
	err = errors.Join(os.Rename(s.File, filepath.Join(dir, databaseName)), os.RemoveAll(work))
	if err == nil {
		err = errors.Join(writeJSON(filepath.Join(dir, manifestName), m), sums.hash(databaseName),
			sums.hash(manifestName))
	}
	return m, err
}

// copyMedia copies the files that the database in work has.
func (from Source) copyMedia(ctx context.Context, work, dir string, sums *sums) (m Media, err error) {
	if from.Media == nil {
		return m, nil
	}
	m.Included = true
	stored, err := from.openMedia(ctx)
	if err != nil {
		return m, err
	}
	to, err := blob.OpenDirectory(dir)
	if err != nil {
		return m, err
	}
	missing := map[blobKey]bool{}
	err = transfer.Open(ctx, work, func(s *store.Store) error {
		return s.Blobs.Each(ctx, func(ws postern.WorkspaceID, hash string, size int64) error {
			err := copyBlob(ctx, stored, to, ws, hash)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				missing[blobKey{ws, hash}] = true
				return nil
			case err != nil:
				return fmt.Errorf("copy the file %s/%s: %w", ws, hash, err)
			}
			m.Files++
			m.Bytes += size
			return sums.add(hash, mediaPath(ws, hash))
		})
	})
	if err != nil {
		return m, err
	}
	m.Lost, err = from.countLost(ctx, stored, missing)
	m.Missing = int64(len(missing)) - m.Lost
	return m, err
}

// openMedia opens the storage, which must be that of the servers; nil if there is none.
func (from Source) openMedia(ctx context.Context) (blob.Store, error) {
	stored, err := from.Media()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as documented
	}
	if err != nil {
		return nil, err
	}
	known, err := transfer.Setting(ctx, from.Database, store.StorageSetting)
	if err != nil || known == "" {
		return stored, err
	}
	mark, err := stored.Mark(ctx, "")
	if err == nil && mark != known {
		err = errors.New("the media storage is not that of the servers; set POSTERN_MEDIA_URL to theirs")
	}
	return stored, err
}

type blobKey struct {
	ws   postern.WorkspaceID
	hash string
}

// countLost counts the missing files that the database still has. A server that deletes a file removes it
// from the database first, and one that adds it stores it first.
func (from Source) countLost(ctx context.Context, stored blob.Store, missing map[blobKey]bool) (n int64, err error) {
	if len(missing) == 0 {
		return 0, nil
	}
	var wanted []blobKey
	err = transfer.EachBlob(ctx, from.Database, func(ws postern.WorkspaceID, hash string) {
		if key := (blobKey{ws, hash}); missing[key] {
			wanted = append(wanted, key)
		}
	})
	if err != nil {
		return 0, err
	}
	var example blobKey
	for _, key := range wanted {
		switch has, err := hasBlob(ctx, stored, key); {
		case err != nil:
			return 0, err
		case !has:
			n, example = n+1, key
		}
	}
	if n > 0 && !from.AllowLost {
		err = fmt.Errorf("the media storage lacks %d files that the database has, such as %s/%s; check "+
			"POSTERN_MEDIA_URL, or back up without them with --allow-lost", n, example.ws, example.hash)
	}
	return n, err
}

func hasBlob(ctx context.Context, stored blob.Store, key blobKey) (bool, error) {
	h, err := blob.ParseHash(key.hash)
	if stored == nil || err != nil {
		return false, err
	}
	_, err = stored.Stat(ctx, blob.Name{Workspace: key.ws, Hash: h})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func mediaPath(ws postern.WorkspaceID, hash string) string {
	return filepath.Join(mediaName, string(ws), hash[:2], hash)
}

// copyBlob copies a blob from a storage, of which nil has none. The target names it by the content that it gets, so a broken one is noticed.
func copyBlob(ctx context.Context, from, to blob.Store, ws postern.WorkspaceID, hash string) error {
	h, err := blob.ParseHash(hash)
	if err != nil {
		return err
	}
	if from == nil {
		return fs.ErrNotExist
	}
	r, err := from.Open(ctx, blob.Name{Workspace: ws, Hash: h}, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	name, _, err := to.Put(ctx, ws, r)
	if err == nil && name.Hash != h {
		err = fmt.Errorf("its content has the checksum %s", name.Hash)
	}
	return err
}

func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o600)
}

// publish gives a complete directory its name, after all of it is on disk.
func publish(part, dir string) error {
	err := filepath.WalkDir(part, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syncFile(path))
	})
	if err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	return syncFile(filepath.Dir(dir))
}

// syncFile waits until a file or a directory is on disk.
func syncFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // the operator names the directory
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
