package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"postern/internal/api/spec"
	"postern/internal/media"
	"postern/internal/media/blob"
	"postern/internal/obs"
	"postern/internal/postern"
)

// open returns the file in the body of a request, and its name. The body is read while
// the file is.
func (u *uploads) open(w http.ResponseWriter, r *http.Request, name string) (io.Reader, string, error) {
	if err := plainCoding(r.Header); err != nil {
		return nil, "", err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength > longest(kind) {
		return nil, "", postern.Errorf(postern.PayloadTooLarge, "a file may have at most %d bytes", postern.MaxMedia)
	}
	body := &arriving{r.Body, http.NewResponseController(w), u.patience, time.Now().Add(uploadTime)}
	if kind != spec.Form {
		name, err = safeName("/query/filename", name)
		return &notEmpty{r: body}, name, err
	}
	if err != nil || params["boundary"] == "" {
		return nil, "", postern.Errorf(postern.UnsupportedMediaType, "the Content-Type of the form has no boundary")
	}
	return openForm(body, params["boundary"], name)
}

// longest returns how many bytes a body of a type may have.
func longest(kind string) int64 {
	if kind == spec.Form {
		return postern.MaxMedia + 2*maxEnvelope
	}
	return postern.MaxMedia
}

// openForm returns the file of a form, which has one part.
func openForm(body io.Reader, boundary, name string) (io.Reader, string, error) {
	bounded := &io.LimitedReader{R: body, N: maxEnvelope} // a reader of forms keeps large headers in memory
	form := multipart.NewReader(bounded, boundary)
	part, err := form.NextRawPart()
	if err != nil {
		return nil, "", badForm(err)
	}
	if part.FormName() != "file" {
		return nil, "", errForm()
	}
	bounded.N = longest(spec.Form)
	if given := part.FileName(); given != "" {
		name = given
	}
	name, err = safeName("/file", name)
	return &onlyPart{form, notEmpty{r: part}, bounded}, name, err
}

// safeName returns the name of a file in a form that can be used on any system; "" is no name.
// A name that cannot be accepted is at pointer.
func safeName(pointer, name string) (string, error) {
	switch {
	case name == "":
		return "", nil
	case len(name) > postern.MaxFilename || !plainText(name):
		return "", postern.Invalid(pointer, "the name of a file is text in UTF-8 of at most %d bytes", postern.MaxFilename)
	}
	return media.SafeName(name, ""), nil
}

func errForm() error {
	return postern.Invalid("/file", "the form must have one part, whose name is file")
}

// badForm keeps our own errors and replaces those of the reader of forms, which may quote.
func badForm(err error) error {
	if own, ok := errors.AsType[*postern.Error](err); ok {
		return own
	}
	return postern.Errorf(postern.MalformedRequest, "the form is not multipart/form-data with its boundary")
}

// onlyPart reads the file of a form, which ends after it.
type onlyPart struct {
	form *multipart.Reader
	part notEmpty
	rest io.Reader // of the body, after the form
}

func (o *onlyPart) Read(p []byte) (int, error) {
	n, err := o.part.Read(p)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, badForm(err)
	}
	if err := o.end(); err != nil {
		return 0, err
	}
	return n, io.EOF
}

// end reads the body to its end.
func (o *onlyPart) end() error {
	_, err := o.form.NextRawPart()
	if err == nil {
		return errForm()
	}
	if errors.Is(err, io.EOF) {
		_, err = io.Copy(io.Discard, o.rest)
	}
	if err != nil {
		return badForm(err)
	}
	return nil
}

// notEmpty refuses a file without a byte.
type notEmpty struct {
	r    io.Reader
	some bool
}

func (e *notEmpty) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.some = e.some || n > 0
	if errors.Is(err, io.EOF) && !e.some {
		return 0, postern.Errorf(postern.MalformedRequest, "the file is empty; send its bytes")
	}
	return n, err
}

// arriving reads a body of which the next part must arrive within a time, and all of it
// before last.
type arriving struct {
	body      io.Reader
	deadlines *http.ResponseController
	patience  time.Duration
	last      time.Time
}

func (a *arriving) Read(p []byte) (int, error) {
	deadline := time.Now().Add(a.patience)
	if a.last.Before(deadline) {
		deadline = a.last
	}
	_ = a.deadlines.SetReadDeadline(deadline) // not every transport has deadlines
	n, err := a.body.Read(p)
	if err == nil {
		return n, nil
	}
	_ = a.deadlines.SetReadDeadline(time.Time{}) // one left behind would end a handler that takes longer
	switch {
	case errors.Is(err, io.EOF):
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, postern.Errorf(postern.MalformedRequest,
			"the body stopped arriving, or took longer than %d minutes", int(uploadTime.Minutes()))
	}
	return n, postern.Errorf(postern.MalformedRequest, "the body did not arrive completely")
}

// serve answers with a file, or with the part of it that the request asks for. A browser
// saves it, and never runs what is in it.
func (h files) serve(w http.ResponseWriter, r *http.Request, m postern.Media, body *blob.Reader) {
	set := w.Header().Set
	set("Content-Type", m.MIMEType)
	set("Content-Disposition", disposition(m))
	set("Content-Security-Policy", "default-src 'none'; sandbox")
	set("ETag", `"`+m.SHA256+`"`)
	r.Header.Del("If-Match") // the content of an id never changes
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // each part would open the file again; all of it is an answer, too
	}
	held, source := &heldBack{ResponseWriter: w}, &failing{Reader: body}
	http.ServeContent(held, r, "", time.Time{}, source)
	h.finish(held, r, source.err)
}

// finish ends an answer of which nothing has been sent, with a refusal if there is a reason.
func (h files) finish(w *heldBack, r *http.Request, failed error) {
	q := obs.RequestOf(r.Context())
	switch {
	case w.sent:
	case failed != nil:
		h.refuse(w, q, unreadable(failed))
	case w.status == http.StatusRequestedRangeNotSatisfiable:
		h.refuse(w, q, postern.Errorf(postern.RangeNotSatisfiable, "the file has no bytes in that range"))
	default:
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// unreadable explains why the storage does not give a file.
func unreadable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return postern.Errorf(postern.NotFound, "the file was removed")
	case errors.Is(err, context.Canceled): // the client may be gone
		return err
	}
	unreachable := postern.Errorf(postern.Unavailable, "the storage cannot be reached; try again shortly")
	return fmt.Errorf("%w: %w", unreachable, err)
}

// refuse answers with a refusal instead of a file.
func (h files) refuse(w *heldBack, q *obs.Request, err error) {
	for _, name := range []string{"Content-Disposition", "Content-Length", "Accept-Ranges", "ETag"} {
		w.Header().Del(name)
	}
	w.Header().Set("Cache-Control", "no-store") // which http.ServeContent removes
	h.problems.Refuse(w.ResponseWriter, q, err)
}

// heldBack holds the status of an answer back until its first byte, and drops the text of a
// refusal.
type heldBack struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader notes the status.
func (w *heldBack) WriteHeader(status int) { w.status = status }

// Write sends the status and the headers before the first byte.
func (w *heldBack) Write(b []byte) (int, error) {
	if w.status == http.StatusRequestedRangeNotSatisfiable {
		return len(b), nil
	}
	if !w.sent {
		w.sent = true
		w.ResponseWriter.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(b)
}

// failing remembers why a file could not be read.
type failing struct {
	*blob.Reader
	err error
}

// Read reads on.
func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// disposition lets a browser save a file under its name (RFC 6266). The first form of the
// name is for clients that know ASCII only.
func disposition(m postern.Media) string {
	name := media.SafeName(m.Filename, m.MIMEType)
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || strings.ContainsRune(`"\%;`, c) {
			return '_'
		}
		return c
	}, name)
	text := `attachment; filename="` + plain + `"`
	if plain == name {
		return text
	}
	return text + "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}
