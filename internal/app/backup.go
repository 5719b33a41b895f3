package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"postern/internal/backup"
	"postern/internal/config"
	"postern/internal/media/blob"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/seal"
	"postern/internal/store/transfer"
)

// BackupOptions say how a backup is made.
type BackupOptions struct {
	Media     seal.Secret // address of the files of messages; "" is in the data directory
	Release   string      // that makes the backup
	AllowLost bool        // makes it although files are missing; see [backup.Source]
}

// Backup makes a backup in a directory that does not exist yet. Servers may run meanwhile.
func Backup(ctx context.Context, cfg config.Data, o BackupOptions, dir string) (m backup.Manifest, err error) {
	err = withMedia(cfg, o.Media, blob.ParseExisting, func(open backup.Opener) error {
		from := backup.Source{Database: placeOf(cfg), Media: open, Release: o.Release, AllowLost: o.AllowLost}
		m, err = backup.Make(ctx, from, dir)
		return err
	})
	return m, err
}

// Restore fills an empty data directory or PostgreSQL database from a backup.
func Restore(ctx context.Context, cfg config.Data, media seal.Secret, dir string) (m backup.Manifest, err error) {
	err = withMedia(cfg, media, blob.Parse, func(open backup.Opener) error {
		m, err = backup.Restore(ctx, dir, backup.Target{Database: placeOf(cfg), Media: open, Outdated: keys.Ratchets()})
		return err
	})
	return m, err
}

func placeOf(cfg config.Data) transfer.Place {
	return transfer.Place{Dir: cfg.Dir, URL: cfg.DatabaseURL.Reveal()}
}

// withMedia calls do with what opens the storage for files; nil if none is named.
func withMedia(
	cfg config.Data, set seal.Secret, open func(address seal.Secret, scratch string) (blob.Store, error),
	do func(backup.Opener) error,
) error {
	if set == "" && cfg.DatabaseURL != "" {
		return do(nil)
	}
	address, err := mediaAddress(cfg, set)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "postern-files") // for uploads to a bucket
	if err != nil {
		return err
	}
	return errors.Join(do(func() (blob.Store, error) {
		blobs, err := open(address, scratch)
		if err != nil {
			err = fmt.Errorf("POSTERN_MEDIA_URL: %w", err)
		}
		return blobs, err
	}), os.RemoveAll(scratch))
}

// warnOfRestore reports once that the data comes from a backup: the server that was backed up must not run
// any more.
func (a *App) warnOfRestore(ctx context.Context) error {
	moment, err := a.db.Settings.Get(ctx, backup.RestoredSetting)
	if err != nil || moment == "" {
		return err
	}
	a.log.WarnContext(ctx, "this data was restored from a backup; make sure that the server that was backed up does "+
		"not run any more, because two servers with the same devices disconnect each other and lose messages",
		"moment", moment)
	return a.db.Settings.Set(ctx, backup.RestoredSetting, "")
}
