package session

import (
	"context"

	"postern/internal/linkpreview"
	"postern/internal/postern"
	"postern/internal/store"
)

// isPreviewReady reports whether the preview of a message was looked up, or needs no look-up. If
// not, that is begun, and the sender is started again at its end.
func (l *liveSession) isPreviewReady(m store.QueuedMessage) (bool, error) {
	if m.Content.LinkPreview == nil {
		return true, nil
	}
	_, known, err := l.e.db.Messages.Preview(l.ctx, m.ID)
	if known || err != nil {
		return known, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.previews[m.ID] && len(l.previews) < devicePreviews && !l.closed {
		l.previews[m.ID] = true
		l.work.Go(func() { l.preview(m.Message) })
	}
	return false, nil
}

// preview looks up the preview of a message and stores it. A message whose preview cannot be
// looked up is sent without one.
func (l *liveSession) preview(m postern.Message) {
	p, picture, err := l.e.lookUp(l.ctx, m)
	if err == nil {
		err = l.e.db.Messages.SetPreview(l.ctx, m.ID, p, picture)
	}
	l.mu.Lock()
	delete(l.previews, m.ID)
	l.mu.Unlock()
	if err != nil {
		l.later(storeRetryWait, err)
		return
	}
	l.kick()
}

// lookUp returns what the page behind a message's link says about itself, and its picture as a
// small JPEG; nil for what there is not. The error is that of ctx.
func (e *Engine) lookUp(ctx context.Context, m postern.Message) (p *postern.LinkPreview, picture []byte, err error) {
	leave, err := e.previews.Enter(ctx, m.WorkspaceID)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	failed := survive(e.log, func() error {
		page, err := e.readPage(limited, m.Content.LinkPreview.URL)
		if err != nil {
			return err
		}
		p = &postern.LinkPreview{URL: m.Content.LinkPreview.URL, Title: page.Title, Description: page.Description}
		picture, err = e.readPicture(limited, page.Image)
		return err
	})
	if failed != nil {
		e.log.DebugContext(ctx, "a preview is incomplete", "message", m.ID, "why", reasonOf(failed))
	}
	return p, picture, ctx.Err()
}

func (e *Engine) readPage(ctx context.Context, link string) (linkpreview.Page, error) {
	if e.fetch == nil {
		return linkpreview.Page{}, linkpreview.ErrNoPage
	}
	address := linkpreview.Address(link)
	body, err := e.fetch(ctx, address)
	if err != nil {
		return linkpreview.Page{}, err
	}
	defer body.Close()
	return linkpreview.Read(body, address)
}

func (e *Engine) readPicture(ctx context.Context, address string) ([]byte, error) {
	if address == "" || e.library == nil {
		return nil, nil
	}
	body, err := e.fetch(ctx, address)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return e.library.Thumbnail(ctx, body, maxPreviewPicture)
}
