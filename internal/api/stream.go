package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// streamLink follows a link attempt until it ends or the caller goes away. An
// attempt lasts some minutes, and so does a stream at most.
func (a *API) streamLink(ctx context.Context, q *request, in *deviceInput) (*huma.StreamResponse, error) {
	first, err := a.gateway.Links.Get(ctx, q.caller, in.ID)
	if err != nil {
		return nil, err
	}
	return a.streaming(q, func(s *stream) { a.followLink(ctx, q, first, s) })
}

// followLink sends what the attempt shows whenever it changed.
func (a *API) followLink(ctx context.Context, q *request, last postern.Link, s *stream) {
	changes, err := a.gateway.Links.Watch(q.caller, last.DeviceID)
	if err != nil {
		return // the key may do less than a moment ago
	}
	defer changes.Close()
	key, err := a.watchKey(q, "streamLink")
	if err != nil {
		return
	}
	defer key.changed.Close()
	last.QR, last.PairingCode, last.Status = "", "", postern.LinkPending // not sent yet
	for key.good(ctx) {
		l, err := a.linkNow(ctx, q, last)
		if err != nil || !s.showLink(l, last) || !l.Status.Open() {
			return
		}
		last = l
		if !key.wait(ctx, s, changes) {
			return
		}
	}
}

// linkNow reads the attempt again. A device that was deleted ended it.
func (a *API) linkNow(ctx context.Context, q *request, last postern.Link) (postern.Link, error) {
	l, err := a.gateway.Links.Get(ctx, q.caller, last.DeviceID)
	if errors.Is(err, &postern.Error{Reason: postern.NotFound}) {
		last.Status, last.Reason, last.QR, last.PairingCode, last.QRExpiresAt = postern.LinkFailed, "deleted", "", "", 0
		return last, nil
	}
	return l, err
}

// stream writes server-sent events.
type stream struct {
	w        http.ResponseWriter
	ctl      *http.ResponseController
	patience time.Duration
	started  bool // the headers are sent, and a body may follow
}

// streaming answers with a stream that body writes, one of those that the
// workspace may have open.
func (a *API) streaming(q *request, body func(*stream)) (*huma.StreamResponse, error) {
	done, err := a.streams.start(q.caller.Workspace())
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer done()
		r, w := humago.Unwrap(hc)
		s := &stream{w: w, ctl: http.NewResponseController(w), patience: a.patience}
		s.w.Header().Set("Content-Type", streamType)
		s.w.WriteHeader(http.StatusOK)
		s.started = r.Method != http.MethodHead && s.ctl.Flush() == nil
		if s.started {
			body(s)
		}
	}}, nil
}

// showLink sends a code that was not sent before, or the end.
func (s *stream) showLink(l, last postern.Link) bool {
	switch {
	case !l.Status.Open():
		return s.event("ended", l)
	case l.QR != "" && l.QR != last.QR, l.PairingCode != "" && l.PairingCode != last.PairingCode:
		return s.event("code", l)
	case l.Status != last.Status:
		return s.event("passkey", l)
	}
	return true
}

func (s *stream) event(name string, v any) bool {
	b, err := postern.EncodeJSON(v)
	return err == nil && s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, b))
}

// write tells whether the reader took it.
func (s *stream) write(text string) bool {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.patience)) // not every transport has deadlines
	_, err := s.w.Write([]byte(text))
	return err == nil && s.ctl.Flush() == nil
}
