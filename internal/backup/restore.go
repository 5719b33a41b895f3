package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"postern/internal/media/blob"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/transfer"
)

// RestoredSetting is the setting with the moment of the backup that a database was restored from.
const RestoredSetting = "restored_from"

// Target is where a backup is restored to.
type Target struct {
	Database transfer.Place
	Media    Opener // nil leaves the files of messages out
	// Outdated are the kinds of session keys that are removed. A backup has old ratchets: a message that
	// is sent with one would not be readable, because the recipient has seen its keys before. Without
	// them, both ends begin a new session.
	Outdated []string
}

// forgotten are the settings that describe the place in which the database was.
var forgotten = []string{store.StorageSetting}

// Restore verifies a backup and fills an empty data directory, or an empty PostgreSQL database, with it. If
// it fails, the target has no database.
func Restore(ctx context.Context, dir string, to Target) (m Manifest, err error) {
	if m, err = Verify(ctx, dir); err != nil {
		return m, err
	}
	if m.Media.Files > 0 && to.Media == nil {
		return m, errors.New("the backup has files of messages, and there is no storage for them: set " +
			"POSTERN_MEDIA_URL")
	}
	release, err := to.Database.Lock()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, release()) }()
	work, err := to.workspace()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := to.prepare(ctx, dir, work, m); err != nil {
		return m, err
	}
	if err := to.restoreMedia(ctx, dir, work); err != nil {
		return m, err
	}
	return m, to.fill(ctx, work)
}

// workspace makes the directory in which the database is prepared. A target directory must not contain
// anything but a secret key.
func (to Target) workspace() (string, error) {
	if to.Database.URL != "" {
		return os.MkdirTemp("", "postern-restore")
	}
	dir := to.Database.Dir
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	work := filepath.Join(dir, "restore"+partial)
	if _, err := os.Lstat(work); err == nil {
		return "", fmt.Errorf("a restore to %s was interrupted; remove %s and %s, and try again", dir, work,
			filepath.Join(dir, mediaName))
	}
	for _, e := range entries {
		if !slices.Contains([]string{"secret.key", "lost+found", transfer.LockName}, e.Name()) {
			return "", fmt.Errorf("the directory %s is not empty: it has %q; name another one with --data-dir", dir,
				e.Name())
		}
	}
	return work, os.Mkdir(work, 0o700)
}

// prepare copies the database, migrates it, and removes what must not be used again.
func (to Target) prepare(ctx context.Context, dir, work string, m Manifest) error {
	if err := copyFile(filepath.Join(dir, databaseName), filepath.Join(work, databaseName)); err != nil {
		return err
	}
	return transfer.Open(ctx, work, func(s *store.Store) error {
		for _, name := range forgotten {
			if err := s.Settings.Set(ctx, name, ""); err != nil {
				return err
			}
		}
		return errors.Join(
			s.Devices.ResetSessions(ctx), // none is connected here
			s.SessionKeys.DeleteKinds(ctx, to.Outdated...),
			s.Settings.Set(ctx, RestoredSetting, m.Moment.Format("2006-01-02T15:04:05.000Z07:00")))
	})
}

func copyFile(from, to string) error {
	r, err := os.Open(from) //nolint:gosec // the operator names the directory
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Sync(), w.Close())
}

// restoreMedia copies the files that the database in work has and the backup has.
func (to Target) restoreMedia(ctx context.Context, dir, work string) error {
	from, err := openMedia(dir)
	if to.Media == nil || from == nil || err != nil {
		return err
	}
	stored, err := to.Media()
	if err != nil {
		return err
	}
	return transfer.Open(ctx, work, func(s *store.Store) error {
		return s.Blobs.Each(ctx, func(ws postern.WorkspaceID, hash string, _ int64) error {
			err := copyBlob(ctx, from, stored, ws, hash)
			if errors.Is(err, fs.ErrNotExist) { // it was deleted while the backup was made
				return nil
			}
			return err
		})
	})
}

// openMedia opens the files of a backup; nil if it has none.
func openMedia(dir string) (blob.Store, error) {
	dir = filepath.Join(dir, mediaName)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as documented
	}
	return blob.OpenDirectory(dir)
}

// fill makes the prepared database that of the target, as the last step.
func (to Target) fill(ctx context.Context, work string) error {
	if to.Database.URL != "" {
		_, err := transfer.Fill(ctx, transfer.Place{Dir: work}, to.Database)
		return err
	}
	if err := os.Rename(filepath.Join(work, databaseName), filepath.Join(to.Database.Dir, databaseName)); err != nil {
		return err
	}
	return syncFile(to.Database.Dir)
}
