package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"sync"

	"postern/internal/obs"
	"postern/internal/problem"
	"postern/internal/reference"

	"github.com/andybalholm/brotli"
)

// mountPages registers the documentation, its search, and the pages about problems.
func (d *Door) mountPages(mux *http.ServeMux, document func() ([]byte, error)) {
	for path, p := range readPages() {
		mux.Handle("GET "+path, p)
	}
	if document != nil {
		d.mountReference(mux, document)
	}
	search := reference.NewSearch(explained(), document)
	mux.HandleFunc("GET /docs/search", func(w http.ResponseWriter, r *http.Request) {
		p, err := search.Page(r.URL.Query().Get("q"))
		if err != nil {
			d.problems.Refuse(w, obs.RequestOf(r.Context()), err)
			return
		}
		serve(w, p, p.Body())
	})
}

// mountReference registers the reference of the API. The document is read when a page is first requested.
func (d *Door) mountReference(mux *http.ServeMux, document func() ([]byte, error)) {
	pages := sync.OnceValues(func() (map[string]*page, error) {
		list, err := reference.API(document)
		return made(list), err
	})
	serve := func(w http.ResponseWriter, r *http.Request) {
		list, err := pages()
		p := list[r.URL.Path]
		if err == nil && p == nil {
			err = problem.NoRoute()
		}
		if err != nil {
			d.problems.Refuse(w, obs.RequestOf(r.Context()), err)
			return
		}
		p.ServeHTTP(w, r)
	}
	mux.HandleFunc("GET /docs", serve)
	mux.HandleFunc("GET /docs/api/{page}", serve)
}

// readPages lists the pages once: they are the same for every server.
var readPages = sync.OnceValue(func() map[string]*page { //nolint:gochecknoglobals // made once, never changed
	return made(reference.Pages(explained()))
})

func made(pages map[string]reference.Page) map[string]*page {
	list := map[string]*page{}
	for path, p := range pages {
		list[path] = newPage(p)
	}
	return list
}

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

	kept func() kept
}

// kept is what stays in memory of a page: its entity tag, and its body, which is compressed if that is smaller.
type kept struct {
	tag, coding string
	body        []byte
}

// making is held while a page is made, one at a time: that takes memory.
var making sync.Mutex //nolint:gochecknoglobals // of the process

// newPage makes the page when it is first requested, not before: some are large, and most are never read.
func newPage(p reference.Page) *page {
	return &page{Page: p, kept: sync.OnceValue(func() kept {
		making.Lock()
		defer making.Unlock()
		body := p.Body()
		sum := sha256.Sum256(body)
		tag := `W/"` + hex.EncodeToString(sum[:8]) + `"`
		small := compressFile(brotliCoding, body)
		if len(body) < compressFrom || small == nil || len(small) >= len(body) {
			return kept{tag, "", body}
		}
		return kept{tag, brotliCoding, small}
	})}
}

// ServeHTTP answers with the file. Almost every browser takes it as it is kept.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k, h := p.kept(), w.Header()
	h.Set("ETag", k.tag)
	if k.coding == "" || coding(r.Header["Accept-Encoding"]) != k.coding {
		serve(w, p.Page, k.plain())
		return
	}
	h.Set("Content-Encoding", k.coding)
	serve(w, p.Page, k.body)
}

// plain is the body without its coding.
func (k kept) plain() []byte {
	if k.coding == "" {
		return k.body
	}
	body, err := io.ReadAll(brotli.NewReader(bytes.NewReader(k.body)))
	if err != nil {
		panic(err) // we have compressed it
	}
	return body
}

// serve answers with a page. It contains nothing that is secret, so it may be compressed.
func serve(w http.ResponseWriter, p reference.Page, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // cached, and revalidated: a new release may change it
	h.Set("Content-Security-Policy", p.Policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", p.Type)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the reader may be gone
}
