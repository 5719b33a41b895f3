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
	blobs, err := openBlobs(a.cfg.Data, a.cfg.MediaURL, scratch)
	if err != nil {
		return nil, err
	}
	shelves, err := library.Open(blobs, scratch, a.db.Blobs)
	if err != nil {
		return nil, fmt.Errorf("open the storage for media: %w", err)
	}
	return shelves, nil
}

// openBlobs opens the storage at an address; "" is the directory media in the data directory.
func openBlobs(cfg config.Data, address seal.Secret, scratch string) (blob.Store, error) {
	if address == "" {
		dir, err := filepath.Abs(filepath.Join(cfg.Dir, "media"))
		if err != nil {
			return nil, fmt.Errorf("find the directory for media: %w", err)
		}
		address = seal.Secret((&url.URL{Scheme: "file", Path: dir}).String())
	}
	blobs, err := blob.Parse(address, scratch)
	if err != nil {
		return nil, fmt.Errorf("POSTERN_MEDIA_URL: %w", err)
	}
	return blobs, nil
}
