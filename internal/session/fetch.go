package session

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path"
	"sync"
	"time"

	"postern/internal/egress"
	"postern/internal/media"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/store"
)

// fetcher fetches the files at the URLs of accepted messages, whether or not their devices
// are connected.
type fetcher struct {
	e *Engine

	mu      sync.Mutex
	running map[postern.MediaID]bool
	ended   int // how many fetches have ended
	work    sync.WaitGroup
	again   chan struct{} // a fetch has ended; one place
}

// fetchURLs fetches files until ctx is done. Of each workspace, those that are due first are
// taken.
func (e *Engine) fetchURLs(ctx context.Context) error {
	wanted := e.db.Listen(store.MediaWanted, "")
	defer wanted.Close()
	f := &fetcher{e: e, running: map[postern.MediaID]bool{}, again: make(chan struct{}, 1)}
	defer f.work.Wait()
	var next time.Time // when to look again, whatever else is wanted until then
	for look := true; ; {
		if look {
			wait := f.begin(ctx)
			next = time.Now().Add(wait)
		}
		look = true
		select {
		case <-ctx.Done():
			return nil
		case <-f.again:
		case <-time.After(time.Until(next)):
		case <-wanted.C():
			look = false
			for _, id := range wanted.Take() {
				if id == "" || id == store.Anything {
					look = true
				}
				if id != "" {
					eachDevice(ctx, e, id, e.mediaWanted)
				}
			}
		}
	}
}

// begin begins to fetch the files that are due, and returns when to look again.
func (f *fetcher) begin(ctx context.Context) time.Duration {
	if f.e.library == nil || f.e.fetch == nil || !f.e.leases.Leads() {
		return fetchMax
	}
	f.mu.Lock()
	ended := f.ended
	f.mu.Unlock()
	list, err := f.e.db.Media.Fetching(ctx, workspaceFetches, 2*allFetches)
	if err != nil {
		return storeRetryWait
	}
	now, wait := f.e.db.Now(), fetchMax
	for _, row := range list {
		if row.NextAt > now {
			wait = min(wait, time.Duration(row.NextAt-now)*time.Millisecond)
			continue
		}
		f.start(ctx, row, ended)
	}
	return wait
}

// start begins to fetch a file, unless that is under way or enough others are. ended is the number of
// fetches that had ended when the list of files was read. If more have ended since, the list is out of
// date, and start does nothing: each fetch that ends has the list read again.
func (f *fetcher) start(ctx context.Context, row store.MediaRow, ended int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != ended || f.running[row.ID] || len(f.running) >= allFetches {
		return
	}
	f.running[row.ID] = true
	f.work.Go(func() {
		if err := f.e.fetchOne(ctx, row); err != nil && ctx.Err() == nil {
			f.e.log.WarnContext(ctx, "a file was not fetched", "media", row.ID, "error", err)
			_ = postern.Sleep(ctx, storeRetryWait) // nothing was recorded, so it is still due
		}
		f.mu.Lock()
		delete(f.running, row.ID)
		f.ended++
		f.mu.Unlock()
		select {
		case f.again <- struct{}{}:
		default:
		}
	})
}

// fetchOne makes one attempt to fetch a file, and records its outcome.
func (e *Engine) fetchOne(ctx context.Context, row store.MediaRow) error {
	wanted, err := e.db.Media.Wanted(ctx, row.ID)
	if err != nil {
		return err
	}
	if !wanted { // its message was canceled, or has expired
		return e.db.Media.Expire(ctx, row)
	}
	source, err := e.g.Sessions.OpenSource(row.ID, row.Source)
	if err != nil {
		return e.giveUp(ctx, row, false, "the server cannot read where the file is; was its secret key replaced?")
	}
	err = survive(e.log, func() error { return e.take(ctx, row, string(source)) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case isUnrecorded(err):
		return settled(err)
	case postern.ReasonOf(err) == postern.ResourceLimit:
		return e.giveUp(ctx, row, false, noRoom(err))
	case isUnstored(err): // the URL is not to blame; the message waits until it expires
		e.log.WarnContext(ctx, "a file was fetched, but not stored; it will be fetched again", "media", row.ID,
			"error", err)
		row.Attempts = 0
		return e.db.Media.Postpone(ctx, row, e.db.Now().Add(storageWait))
	case isPermanent(err) || row.Attempts >= maxURLTries:
		return e.giveUp(ctx, row, false, "the file could not be fetched from its URL: "+reasonOf(err))
	}
	wait := min(fetchFirst<<row.Attempts, fetchMax)
	row.Attempts++
	return e.db.Media.Postpone(ctx, row, e.db.Now().Add(wait))
}

// take fetches a file, and records that it is ready.
func (e *Engine) take(ctx context.Context, row store.MediaRow, from string) error {
	room, err := e.db.Blobs.Storage(ctx, row.WorkspaceID)
	if err != nil {
		return unstored{err}
	}
	body, err := e.fetch(ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	source := &source{Reader: body}
	return source.blame(e.library.Take(ctx, row.WorkspaceID, source, room, func(taken library.Taken) error {
		file := taken.Media
		file.Filename = row.Filename
		if u, err := url.Parse(from); err == nil && file.Filename == "" {
			file.Filename = media.SafeName(path.Base(u.Path), file.MIMEType)
		}
		row.Thumbnail = taken.Thumbnail
		return e.keep(ctx, row, file)
	}))
}

// source reads a file from its URL, and remembers whether that has failed.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.failed = s.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// unstored means that a file could be read, but not be stored.
type unstored struct{ error }

// blame tells errors of this server, which pass, from those of the source and of the file.
func (s *source) blame(err error) error {
	if s.failed {
		return err
	}
	return ofStorage(err)
}

// ofStorage makes an error of the storage one that passes.
func ofStorage(err error) error {
	_, known := errors.AsType[*postern.Error](err)
	if err == nil || isUnrecorded(err) || known && postern.ReasonOf(err) != postern.Unavailable {
		return err
	}
	return unstored{err}
}

func isUnstored(err error) bool {
	_, is := errors.AsType[unstored](err)
	return is
}

// isPermanent reports whether another attempt would end in the same way.
func isPermanent(err error) bool {
	if status, ok := errors.AsType[egress.StatusError](err); ok {
		return status < 500 && status != 408 && status != 429
	}
	if p, ok := errors.AsType[*postern.Error](err); ok {
		return p.Reason != postern.Unavailable
	}
	if _, ok := errors.AsType[egress.RedirectError](err); ok {
		return true
	}
	return errors.Is(err, errPanicked) || egress.IsBlocked(err)
}

// reasonOf returns the text of an error that a user may see: nothing of the addresses behind
// a URL.
func reasonOf(err error) string {
	if status, ok := errors.AsType[egress.StatusError](err); ok {
		return status.Error()
	}
	if p, ok := errors.AsType[*postern.Error](err); ok {
		return p.Error()
	}
	if redirect, ok := errors.AsType[egress.RedirectError](err); ok {
		return redirect.Error()
	}
	if egress.IsBlocked(err) {
		return "the address is not public"
	}
	return "the server could not be reached, or ended the response early"
}
