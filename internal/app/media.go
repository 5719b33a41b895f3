package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"postern/internal/media/blob"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/seal"
)

// openLibrary opens the storage for the files of messages. With PostgreSQL it has to be named,
// because the data directory is not shared; without it there is no library.
func (a *App) openLibrary() (*library.Library, error) {
	if a.cfg.DatabaseURL != "" && a.cfg.MediaURL == "" {
		a.log.Warn("POSTERN_MEDIA_URL is not set: messages with files can neither be sent nor received")
		return nil, nil //nolint:nilnil // the users of a library check for nil
	}
	scratch := filepath.Join(a.cfg.Dir, "transit")
	address := a.cfg.MediaURL
	if address == "" {
		dir, err := filepath.Abs(filepath.Join(a.cfg.Dir, "media"))
		if err != nil {
			return nil, fmt.Errorf("find the directory for media: %w", err)
		}
		address = seal.Secret((&url.URL{Scheme: "file", Path: dir}).String())
	}
	blobs, err := blob.Parse(address, scratch)
	if err != nil {
		return nil, fmt.Errorf("POSTERN_MEDIA_URL: %w", err)
	}
	shelves, err := library.Open(blobs, scratch, a.db.Blobs)
	if err != nil {
		return nil, fmt.Errorf("open the storage for media: %w", err)
	}
	return shelves, nil
}

const (
	// storageSetting holds the mark of the storage that the servers of a database share.
	storageSetting = "media_storage"
	storageCheck   = 10 * time.Second
)

// Why a server is not ready.
const (
	noStorage     = "no-media-storage"
	otherStorage  = "other-media-storage"
	storageFailed = "media-storage-unreachable"
)

// watchStorage makes the server ready when it has the same storage as the others: with another one, it
// would store files where they do not find them.
func (a *App) watchStorage(ctx context.Context) error {
	for before := ""; ; {
		why, err := a.storageProblem(ctx)
		if why != before && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "the server is not ready: it does not have the media storage of the other servers; "+
				"set POSTERN_MEDIA_URL to theirs", "reason", why, "error", err)
		}
		a.health.Set(why)
		if why == "" {
			return nil
		}
		if before = why; postern.Sleep(ctx, storageCheck) != nil {
			return nil //nolint:nilerr // the server stops
		}
	}
}

// storageProblem compares the mark of this server's storage with that of the first server that had one.
func (a *App) storageProblem(ctx context.Context) (why string, err error) {
	known, err := a.db.Settings.Get(ctx, storageSetting)
	switch {
	case err != nil:
		return storageFailed, err
	case a.library == nil && known == "":
		return "", nil
	case a.library == nil:
		return noStorage, nil
	}
	fresh := ""
	if known == "" {
		fresh = rand.Text()
	}
	mark, err := a.library.Mark(ctx, fresh)
	if err == nil && known == "" {
		known, err = a.db.Settings.SetOnce(ctx, storageSetting, mark)
	}
	switch {
	case err != nil:
		return storageFailed, err
	case mark != known:
		return otherStorage, nil
	}
	return "", nil
}
