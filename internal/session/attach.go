package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"time"

	"postern/internal/media/library"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// errUnprepared means that a message cannot be sent before its file was handed to the network.
var errUnprepared = errors.New("the file of the message is not on the network yet")

// attached is what is stored of a file that a device has handed to the network.
type attached struct {
	Ref       network.Ref `json:"ref"`
	MIMEType  string      `json:"mimeType"`
	Thumbnail []byte      `json:"thumbnail,omitempty"`
	Waveform  []byte      `json:"waveform,omitempty"`
	Animated  bool        `json:"animated,omitempty"`
	Size      int64       `json:"size,omitempty"`
	Width     int         `json:"width,omitempty"`
	Height    int         `json:"height,omitempty"`
	Duration  float64     `json:"duration,omitempty"` // seconds
}

// describe makes the content of a message say what its file is after the conversion.
func (a attached) describe(c postern.Content) postern.Content {
	file := *c.Media
	if a.Size > 0 { // otherwise it was stored by an earlier release
		file.Size, file.Width, file.Height, file.Duration = a.Size, a.Width, a.Height, a.Duration
	}
	c.Media = &file
	return c
}

// attachment returns what is known of the file of a message on the network. The error is errUnprepared
// if the file was not handed to the network since a time, and a [*network.Rejected] if it
// never will be.
func (e *Engine) attachment(ctx context.Context, m postern.Message, since postern.Time) (*attached, error) {
	file := m.Content.Media
	sealed, ok, err := e.db.Media.Upload(ctx, file.ID, m.DeviceID, uploadedAs(m), since)
	switch {
	case err != nil:
		return nil, err
	case ok: // also of a file that was removed since
	case file.Status == postern.MediaFailed:
		return nil, mediaFailed(file.Detail)
	case file.Status == postern.MediaExpired:
		return nil, mediaFailed("the file was removed before it was sent")
	case e.library == nil:
		return nil, mediaFailed("this server sends no files")
	default:
		return nil, errUnprepared
	}
	b, err := e.g.Sessions.OpenSource(file.ID, sealed)
	if err != nil {
		return nil, err
	}
	var a attached
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("read what the network knows of a file: %w", err)
	}
	return &a, nil
}

func mediaFailed(detail string) error {
	return &network.Rejected{Code: postern.MediaUnusable, Detail: detail}
}

// preparation is the work on a file before messages of a kind with it can be sent.
type preparation struct {
	running bool
	err     error // final, of the last try
	wait    time.Duration
	again   time.Time // when the next try may start
}

// prepared names a file and the kind of the messages that carry it.
type prepared struct {
	file postern.MediaID
	kind postern.Kind
}

// uploadedAs names the upload of a message's file: those for channels are not encrypted, and serve no other messages.
func uploadedAs(m postern.Message) postern.Kind {
	if postern.IsChannel(m.ChatID) {
		return m.Content.Kind + " in a channel"
	}
	return m.Content.Kind
}

// isReady reports whether nothing keeps a message from being tried now. If its file is not on
// the network or its link was not looked up, that is begun, and the sender is started again at
// its end.
func (l *liveSession) isReady(m store.QueuedMessage) (bool, error) {
	if ok, err := l.isPreviewReady(m); !ok || err != nil {
		return false, err
	}
	file := m.Content.Media
	if file == nil || file.Status != postern.MediaReady || l.e.library == nil {
		return file == nil || file.Status != postern.MediaPending, nil
	}
	key, since := prepared{file.ID, uploadedAs(m.Message)}, l.e.db.Now().Add(-uploadLife)
	l.mu.Lock()
	known, busy := l.handed[key] > since, l.preparing >= devicePreparations
	l.mu.Unlock()
	if known || busy {
		return known, nil
	}
	_, err := l.e.attachment(l.ctx, m.Message, since)
	if !errors.Is(err, errUnprepared) {
		return err == nil, err
	}
	return l.prepare(m), nil
}

// prepare begins to hand a file to the network, unless it is under way or has to wait. It
// reports whether that has failed for good.
func (l *liveSession) prepare(m store.QueuedMessage) (failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := prepared{m.Content.Media.ID, uploadedAs(m.Message)}
	p := l.files[key]
	if p == nil {
		p = &preparation{}
	}
	switch {
	case p.err != nil:
		return true
	case p.running, l.closed, time.Now().Before(p.again), l.preparing >= devicePreparations:
		return false
	}
	p.running = true
	l.files[key] = p
	l.preparing++
	l.work.Go(func() { l.handOver(m, p) })
	return false
}

// handOver makes a file fit for its message, hands it to the network and stores what the
// network knows of it.
func (l *liveSession) handOver(m store.QueuedMessage, p *preparation) {
	err := survive(l.e.log, func() error { return l.e.upload(l.ctx, l.session, m.Message) })
	if errors.Is(err, errPanicked) {
		err = mediaFailed("the file is damaged")
	}
	l.mu.Lock()
	p.running = false
	l.preparing--
	var wait time.Duration
	switch {
	case err == nil:
		key := prepared{m.Content.Media.ID, uploadedAs(m.Message)}
		delete(l.files, key)
		if len(l.handed) >= maxHanded {
			clear(l.handed)
		}
		l.handed[key] = l.e.db.Now()
	case isFinal(err):
		p.err = err
	default:
		p.wait = min(max(2*p.wait, uploadFirst), uploadMax)
		p.again, wait = time.Now().Add(p.wait), p.wait
	}
	l.mu.Unlock()
	if wait > 0 {
		l.later(wait, err)
	}
	l.kick() // another file may take the place of this one
}

func isFinal(err error) bool {
	_, final := errors.AsType[*network.Rejected](err)
	return final
}

// failure returns why the file of a message can never be sent, or nil.
func (l *liveSession) failure(m postern.Message) error {
	if m.Content.Media == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := prepared{m.Content.Media.ID, uploadedAs(m)}
	p := l.files[key]
	if p == nil || p.err == nil {
		return nil
	}
	delete(l.files, key)
	return p.err
}

// upload prepares a file and hands it to the network.
func (e *Engine) upload(ctx context.Context, s network.Session, m postern.Message) error {
	leave, err := e.uploads.Enter(ctx, m.WorkspaceID)
	if err != nil {
		return err
	}
	defer leave()
	file := *m.Content.Media
	thumbnail, err := e.db.Blobs.Thumbnail(ctx, m.WorkspaceID, file.SHA256)
	if err != nil {
		return err
	}
	p, err := e.library.Prepare(ctx, m.WorkspaceID, library.Taken{Media: file, Thumbnail: thumbnail}, m.Content.Kind)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mediaFailed("the file is no longer in the storage of the server")
	case postern.ReasonOf(err) == postern.ValidationFailed:
		return mediaFailed(detailOf(err))
	case err != nil:
		return err
	}
	defer p.Close()
	ref, err := s.Upload(ctx, network.File{
		Kind: m.Content.Kind, Body: p.Body, Size: p.Size, Scratch: e.library.ScratchDir(),
		Posted: postern.IsChannel(m.ChatID),
	})
	if err != nil {
		return err
	}
	b, err := json.Marshal(attached{
		Ref: ref, MIMEType: p.MIMEType, Thumbnail: p.Thumbnail, Waveform: p.Waveform, Animated: p.Animated,
		Size: p.Size, Width: p.Width, Height: p.Height, Duration: p.Duration.Seconds(),
	})
	if err != nil {
		return err
	}
	sealed := e.g.Sessions.SealSource(file.ID, b)
	return e.db.Media.SetUpload(ctx, file.ID, m.DeviceID, uploadedAs(m), sealed, e.db.Now())
}

// detailOf returns the text of an error about a file.
func detailOf(err error) string {
	if p, ok := errors.AsType[*postern.Error](err); ok {
		for _, f := range p.Fields {
			return f.Detail
		}
		return p.Detail
	}
	return err.Error()
}

// errPanicked means that a file has made the code that looks at it panic.
var errPanicked = errors.New("panic while a file was processed")

// survive calls do, and returns errPanicked if it panics: files come from strangers.
func survive(log *slog.Logger, do func() error) (err error) {
	defer func() {
		if recover() != nil {
			log.Error("panic while a file was processed", "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return do()
}
