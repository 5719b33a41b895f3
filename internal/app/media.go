package app

import (
	"fmt"
	"net/url"
	"path/filepath"

	"postern/internal/config"
	"postern/internal/media/blob"
	"postern/internal/media/library"
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
	address, err := mediaAddress(a.cfg.Data, a.cfg.MediaURL)
	if err != nil {
		return nil, err
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

// mediaAddress returns the address of the storage for files; without one that is set, it is that of the
// directory media in the data directory.
func mediaAddress(cfg config.Data, set seal.Secret) (seal.Secret, error) {
	if set != "" {
		return set, nil
	}
	dir, err := filepath.Abs(filepath.Join(cfg.Dir, "media"))
	if err != nil {
		return "", fmt.Errorf("find the directory for media: %w", err)
	}
	return seal.Secret((&url.URL{Scheme: "file", Path: dir}).String()), nil
}
