package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"

	"postern/internal/problem"
	"postern/internal/reference"
)

// mountPages registers the documentation and the pages about problems.
func mountPages(mux *http.ServeMux) error {
	list, err := readPages()
	for path, p := range list {
		mux.Handle("GET "+path, p)
	}
	return err
}

// readPages makes the pages once: they are the same for every server.
var readPages = sync.OnceValues(func() (map[string]*page, error) { //nolint:gochecknoglobals // made once, never changed
	var problems []reference.Problem
	for reason, k := range problem.All() {
		e := problem.Explain(reason)
		problems = append(problems, reference.Problem{
			Reason: string(reason), Title: k.Title, Code: k.Code, Status: k.Status,
			Means: e.Means, When: e.When, Do: e.Do, Shown: e.Shown,
		})
	}
	for reason, s := range problem.States() {
		problems = append(problems, reference.Problem{
			Reason: reason, Title: s.Title, Means: s.Means, Do: s.Do, Session: s.Session, Endpoint: s.Endpoint,
		})
	}
	files, err := reference.Pages(problems)
	list := map[string]*page{}
	for path, p := range files {
		list[path] = newPage(p)
	}
	return list, err
})

// page serves a file that does not change while the server runs.
type page struct {
	reference.Page

	tag func() string // its entity tag
}

// newPage reads the page when it is first requested, not before: some are large.
func newPage(p reference.Page) *page {
	return &page{Page: p, tag: sync.OnceValue(func() string {
		sum := sha256.Sum256(p.Body)
		return `W/"` + hex.EncodeToString(sum[:8]) + `"`
	})}
}

// ServeHTTP answers with the file. It contains nothing that is secret, so it may be compressed.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // cached, and revalidated: a new release may change it
	h.Set("Content-Security-Policy", p.Policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("ETag", p.tag())
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", p.Type)
	h.Set("Content-Length", strconv.Itoa(len(p.Body)))
	_, _ = w.Write(p.Body) // the reader may be gone
}
