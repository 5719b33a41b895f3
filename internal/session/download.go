package session

import (
	"cmp"
	"context"
	"errors"
	"time"

	"postern/internal/media/library"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// downloads fetch the files of messages that a device has received, a few at a time. What is
// not fetched yet waits in the database.
type downloads struct {
	running map[postern.MediaID]bool
	ended   int         // how many have ended
	timer   *time.Timer // looks again when the next file is due
}

// fetchFiles begins to fetch the files that are due.
func (l *liveSession) fetchFiles() {
	if l.e.library == nil {
		return
	}
	l.mu.Lock()
	free, ended := !l.closed && len(l.loads.running) < deviceDownloads, l.loads.ended
	l.mu.Unlock()
	if !free {
		return
	}
	list, err := l.e.db.Media.Waiting(l.ctx, l.id, 2*deviceDownloads)
	if err != nil {
		l.lookForFiles(storeRetryWait)
		return
	}
	now := l.e.db.Now()
	for _, f := range list {
		if f.NextAt > now {
			l.lookForFiles(time.Duration(f.NextAt-now) * time.Millisecond)
			return
		}
		l.begin(f, ended)
	}
}

// lookForFiles calls fetchFiles after a while. There is one such timer per connection.
func (l *liveSession) lookForFiles(wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loads.timer != nil {
		l.loads.timer.Stop()
	}
	if !l.closed {
		l.loads.timer = time.AfterFunc(wait, l.fetchFiles)
	}
}

// begin begins to fetch a file, unless that is under way or enough others are. ended is the number of
// fetches that had ended when the list of files was read. If more have ended since, the list is out of
// date, and begin does nothing: each fetch that ends reads the list again.
func (l *liveSession) begin(f store.MediaRow, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.loads.ended != ended || l.loads.running[f.ID] || len(l.loads.running) >= deviceDownloads {
		return
	}
	l.loads.running[f.ID] = true
	l.work.Go(func() { l.load(f) })
}

// load fetches a file and then looks for the next one.
func (l *liveSession) load(f store.MediaRow) {
	leave, err := l.e.downloads.Enter(l.ctx, f.WorkspaceID)
	if err == nil {
		err = l.e.download(l.ctx, l.session, f)
		leave()
	}
	l.mu.Lock()
	delete(l.loads.running, f.ID)
	l.loads.ended++
	l.mu.Unlock()
	if err != nil && l.ctx.Err() == nil {
		l.e.log.WarnContext(l.ctx, "a file was not fetched", "device", l.id, "media", f.ID, "error", err)
		l.lookForFiles(storeRetryWait)
		return
	}
	l.fetchFiles()
}

// download makes one attempt to fetch a file, and records its outcome. An error means that
// nothing was recorded.
func (e *Engine) download(ctx context.Context, s network.Session, row store.MediaRow) error {
	source, err := e.g.Sessions.OpenSource(row.ID, row.Source)
	if err != nil {
		return e.giveUp(ctx, row, false, "the server cannot read where the file is; was its secret key replaced?")
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	err = survive(e.log, func() error { return e.receiveFile(ctx, s, row, source) })
	switch {
	case err == nil:
		return nil
	case isUnrecorded(err):
		return settled(err)
	case postern.ReasonOf(err) == postern.ResourceLimit:
		return e.giveUp(ctx, row, true, noRoom(err))
	case isUnstored(err): // the network is not to blame
		e.log.WarnContext(ctx, "a received file is not stored; it will be downloaded again", "media", row.ID, "error", err)
		return e.db.Media.Postpone(ctx, row, e.db.Now().Add(storageWait))
	case errors.Is(err, errPanicked):
		return e.giveUp(ctx, row, false, "the file cannot be processed")
	case errors.Is(err, network.ErrMediaTooLarge):
		return e.giveUp(ctx, row, false, "the file is larger than 100 MiB")
	case errors.Is(err, network.ErrNotConnected):
		return err
	case errors.Is(err, network.ErrMediaUseless):
		return e.giveUp(ctx, row, false, "the message does not say where its file is")
	case errors.Is(err, network.ErrMediaGone):
		return e.askPhone(ctx, s, row, source)
	}
	return e.postpone(ctx, row, err)
}

// receiveFile downloads a file, and records that it is ready. A file for which there is no room, by
// what its sender declares, is not downloaded.
func (e *Engine) receiveFile(ctx context.Context, s network.Session, row store.MediaRow, source []byte) error {
	room, err := e.db.Blobs.Storage(ctx, row.WorkspaceID)
	if err = cmp.Or(err, room.Check(min(row.Size, postern.MaxMedia))); err != nil {
		return ofStorage(err)
	}
	f, err := e.library.Scratch()
	if err != nil {
		return ofStorage(err)
	}
	defer library.Discard(f)
	if err := s.Download(ctx, source, f); err != nil {
		return err
	}
	keep := func(file postern.Media) error { return e.keep(ctx, row, file) }
	return ofStorage(e.library.Keep(ctx, row.WorkspaceID, f, keep))
}

// noRoom returns why a file is not stored, for users.
func noRoom(err error) string { return "there is no room for the file: " + reasonOf(err) }

// unrecorded means that a file was fetched, and that this could not be recorded.
type unrecorded struct{ error }

func (u unrecorded) Unwrap() error { return u.error }

func isUnrecorded(err error) bool {
	_, is := errors.AsType[unrecorded](err)
	return is
}

// keep records that a file is ready. If the workspace has no room for it, it returns a ResourceLimit
// error. A file that was removed meanwhile is not stored.
func (e *Engine) keep(ctx context.Context, row store.MediaRow, file postern.Media) error {
	file.ID, file.Filename = row.ID, cmp.Or(file.Filename, row.Filename)
	if file.Duration == 0 {
		file.Duration = row.Duration
	}
	if file.Width == 0 || file.Height == 0 {
		file.Width, file.Height = row.Width, row.Height
	}
	row.Media = file
	err := e.db.Media.Settle(ctx, row, e.db.Now())
	if err == nil || postern.ReasonOf(err) == postern.ResourceLimit {
		return err
	}
	return unrecorded{err}
}

// giveUp records that a file could not be fetched.
func (e *Engine) giveUp(ctx context.Context, row store.MediaRow, recoverable bool, detail string) error {
	row.Status, row.Recoverable, row.Detail = postern.MediaFailed, recoverable, detail
	return settled(e.db.Media.Settle(ctx, row, e.db.Now()))
}

// settled leaves out the error that a file was removed meanwhile, which ends its fetching too.
func settled(err error) error {
	if errors.Is(err, store.ErrSettled) {
		return nil
	}
	return err
}

// askPhone asks the account's phone to upload a file again, which the network no longer has.
// After a few times without success it gives up.
func (e *Engine) askPhone(ctx context.Context, s network.Session, row store.MediaRow, source []byte) error {
	if row.Asked >= phoneRequests {
		return e.giveUp(ctx, row, true, "the network no longer has the file, and the phone has not uploaded it again")
	}
	m, err := e.db.Messages.Get(ctx, row.WorkspaceID, row.MessageID)
	if postern.ReasonOf(err) == postern.NotFound {
		return e.giveUp(ctx, row, false, "the message of the file was removed")
	}
	row.Asked++
	if err == nil { // before the phone is asked, whose answer changes it again
		err = e.db.Media.Postpone(ctx, row, e.db.Now().Add(phoneWait))
	}
	if err != nil {
		return err
	}
	err = s.RequestMedia(ctx, network.MediaRequest{
		NetworkID: m.NetworkID, ChatID: m.ChatID, FromMe: m.Direction == postern.Outbound, Author: quoteOf(m).Author,
		Ref: source,
	})
	switch {
	case errors.Is(err, network.ErrMediaUseless), isFinal(err):
		return e.giveUp(ctx, row, false, "the network no longer has the file, and the phone cannot be asked for it")
	case err != nil:
		row.Asked--
		return errors.Join(err, e.db.Media.Postpone(ctx, row, e.db.Now().Add(fetchFirst)))
	}
	return nil
}

// postpone records a failed attempt that may succeed later.
func (e *Engine) postpone(ctx context.Context, row store.MediaRow, why error) error {
	if row.Attempts >= maxFetches {
		return e.giveUp(ctx, row, true, "the file could not be downloaded from the network")
	}
	e.log.InfoContext(ctx, "a file is fetched later", "media", row.ID, "attempt", row.Attempts+1, "error", why)
	wait := min(fetchFirst<<row.Attempts, fetchMax)
	row.Attempts++
	return e.db.Media.Postpone(ctx, row, e.db.Now().Add(wait))
}

// offered records the phone's answer to a request for a file.
func (h *host) offered(ctx context.Context, u network.Offered) error {
	row, ok, err := h.e.db.Media.OfMessage(ctx, h.d.ID, u.NetworkID)
	if err != nil || !ok {
		return err
	}
	if u.Ref == nil {
		return h.e.giveUp(ctx, row, false, "neither the network nor the phone has the file")
	}
	source := h.e.g.Sessions.SealSource(row.ID, u.Ref)
	if err := h.e.db.Media.Offer(ctx, row.ID, source, h.e.db.Now()); err != nil {
		return err
	}
	h.e.mediaWanted(h.d.ID)
	return nil
}

// mediaWanted lets a device look for files to fetch.
func (e *Engine) mediaWanted(id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		l.fetchFiles()
	}
}
