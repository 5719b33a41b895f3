package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"postern/internal/health"
	"postern/internal/postern"
	"postern/internal/store"
)

// checks are what this server needs to do its work.
func (a *App) checks() []health.Check {
	return []health.Check{
		{Name: "database", Run: a.db.System.Probe},
		health.Disk(a.cfg.Dir),
		health.Files(),
		{Name: "secret-key", Run: func(context.Context) error { return a.keys.checkFile() }},
		{Name: "media-storage", Run: a.checkStorage},
	}
}

// checkStorage reports media storage in which no file can be stored now, or where the other servers of the
// database do not find it.
func (a *App) checkStorage(ctx context.Context) error {
	known := ""
	if a.leases.Shared() {
		var err error
		if known, err = a.storageMark(ctx); err != nil {
			return nil //nolint:nilerr // the check of the database reports it
		}
	}
	if a.library == nil {
		return noStorage(known != "")
	}
	if err := a.library.Check(ctx); err != nil {
		return storageFailure(err)
	}
	if a.leases.Shared() {
		if err := a.checkMark(ctx, known); err != nil {
			return err
		}
	}
	if postern.ReasonOf(a.library.Room()) == postern.Unavailable {
		return &health.Failure{Reason: "media-storage-full", Warning: true, Detail: "The disk is nearly full, so " +
			"messages with files can neither be sent nor received. Free some space or enlarge the disk."}
	}
	return nil
}

// markLimit is how long the database may take to say which storage the servers share: less than a check may
// take, so that a database that hangs does not look like storage that does.
const markLimit = 2 * time.Second

// storageMark reads the mark of the storage that the servers share. It returns in time even if the database
// does not.
func (a *App) storageMark(ctx context.Context) (mark string, err error) {
	ctx, cancel := context.WithTimeout(ctx, markLimit)
	defer cancel()
	type answer struct {
		mark string
		err  error
	}
	come := make(chan answer, 1)
	a.later.Go(func() {
		mark, err := a.db.Settings.Get(ctx, store.StorageSetting)
		come <- answer{mark, err}
	})
	select {
	case got := <-come:
		return got.mark, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func noStorage(othersHave bool) error {
	return &health.Failure{
		Reason: "no-media-storage", Warning: !othersHave,
		Detail: "POSTERN_MEDIA_URL is not set, so messages with files can neither be sent nor received. " +
			"Set it to storage that all servers of this database can reach.",
	}
}

func storageFailure(err error) error {
	if health.IsNoFiles(err) {
		return nil // the check of the files reports it
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &health.Failure{
		Reason: "media-storage-unreachable",
		Detail: fmt.Sprintf("No file can be stored: %v. Check POSTERN_MEDIA_URL and the storage.", err),
	}
}

// checkMark compares the mark of this server's storage with that of the first server that had one.
func (a *App) checkMark(ctx context.Context, known string) error {
	fresh := ""
	if known == "" {
		fresh = rand.Text()
	}
	mark, err := a.library.Mark(ctx, fresh)
	if err == nil && known == "" {
		known, err = a.db.Settings.SetOnce(ctx, store.StorageSetting, mark)
	}
	if err != nil {
		return storageFailure(err)
	}
	if mark != known {
		return &health.Failure{
			Reason: "other-media-storage",
			Detail: "The media storage is not that of the other servers. Set POSTERN_MEDIA_URL to theirs.",
		}
	}
	return nil
}
