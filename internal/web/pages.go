package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"

	"postern/internal/obs"
	"postern/internal/problem"
	"postern/internal/reference"
)

// mountPages registers the documentation, its search, and the pages about problems.
func (d *Door) mountPages(mux *http.ServeMux, document func() ([]byte, error)) {
	for path, p := range readPages() {
		mux.Handle("GET "+path, p)
	}
	search := reference.NewSearch(explained(), document)
	mux.HandleFunc("GET /docs/search", func(w http.ResponseWriter, r *http.Request) {
		p, err := search.Page(r.URL.Query().Get("q"))
		if err != nil {
			d.problems.Refuse(w, obs.RequestOf(r.Context()), err)
			return
		}
		serve(w, p)
	})
}

// readPages lists the pages once: they are the same for every server.
var readPages = sync.OnceValue(func() map[string]*page { //nolint:gochecknoglobals // made once, never changed
	list := map[string]*page{}
	for path, p := range reference.Pages(explained()) {
		list[path] = newPage(p)
	}
	return list
})

// explained are the reasons of problems and of states, each of which has a page.
func explained() (list []reference.Problem) {
	for reason, k := range problem.All() {
		e := problem.Explain(reason)
		list = append(list, reference.Problem{
			Reason: string(reason), Title: k.Title, Code: k.Code, Status: k.Status,
			Means: e.Means, When: e.When, Do: e.Do, Shown: e.Shown,
		})
	}
	for reason, s := range problem.States() {
		list = append(list, reference.Problem{
			Reason: reason, Title: s.Title, Means: s.Means, Do: s.Do, Session: s.Session, Endpoint: s.Endpoint,
		})
	}
	return list
}

// page serves a file that does not change while the server runs.
type page struct {
	reference.Page

	tag func() string // its entity tag
}

// newPage makes the page when it is first requested, not before: some are large, and most are never read.
func newPage(p reference.Page) *page {
	return &page{Page: p, tag: sync.OnceValue(func() string {
		sum := sha256.Sum256(p.Body())
		return `W/"` + hex.EncodeToString(sum[:8]) + `"`
	})}
}

// ServeHTTP answers with the file.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("ETag", p.tag())
	serve(w, p.Page)
}

// serve answers with a page. It contains nothing that is secret, so it may be compressed.
func serve(w http.ResponseWriter, p reference.Page) {
	h, body := w.Header(), p.Body()
	h.Set("Cache-Control", "no-cache") // cached, and revalidated: a new release may change it
	h.Set("Content-Security-Policy", p.Policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", p.Type)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the reader may be gone
}
