package app

import (
	"context"
	"errors"
	"os"

	"postern/internal/backup"
	"postern/internal/config"
	"postern/internal/media/blob"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/seal"
	"postern/internal/store/transfer"
)

// Backup makes a backup in a directory that does not exist yet. Servers may run meanwhile. The files of
// messages are those at media; "" is in the data directory.
func Backup(
	ctx context.Context, cfg config.Data, media seal.Secret, release, dir string,
) (m backup.Manifest, err error) {
	err = withMedia(cfg, media, func(open backup.Opener) error {
		m, err = backup.Make(ctx, backup.Source{Database: placeOf(cfg), Media: open, Release: release}, dir)
		return err
	})
	return m, err
}

// Restore fills an empty data directory or PostgreSQL database from a backup.
func Restore(ctx context.Context, cfg config.Data, media seal.Secret, dir string) (m backup.Manifest, err error) {
	err = withMedia(cfg, media, func(open backup.Opener) error {
		m, err = backup.Restore(ctx, dir, backup.Target{Database: placeOf(cfg), Media: open, Outdated: keys.Ratchets()})
		return err
	})
	return m, err
}

func placeOf(cfg config.Data) transfer.Place {
	return transfer.Place{Dir: cfg.Dir, URL: cfg.DatabaseURL.Reveal()}
}

// withMedia calls do with what opens the storage for files; nil if none is named.
func withMedia(cfg config.Data, address seal.Secret, do func(backup.Opener) error) error {
	if address == "" && cfg.DatabaseURL != "" {
		return do(nil)
	}
	scratch, err := os.MkdirTemp("", "postern-files") // for uploads to a bucket
	if err != nil {
		return err
	}
	return errors.Join(do(func() (blob.Store, error) { return openBlobs(cfg, address, scratch) }),
		os.RemoveAll(scratch))
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
