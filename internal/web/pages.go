package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

	tag    string
	packed func() []byte // compressed; nil when the file is small
}

// packAbove is the size in bytes above which a file is sent compressed.
const packAbove = 4 << 10

func newPage(p reference.Page) *page {
	sum := sha256.Sum256(p.Body)
	s := &page{Page: p, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	if len(p.Body) > packAbove {
		s.packed = sync.OnceValue(s.pack)
	}
	return s
}

// pack compresses the file, which takes a while: once, for the first reader that
// accepts gzip. It returns nil on an error.
func (p *page) pack() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(p.Body)
	if err != nil || z.Close() != nil {
		return nil
	}
	return b.Bytes()
}

// ServeHTTP answers with the file, or with 304 when the reader's copy is current.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // cached, and revalidated: a new release may change it
	h.Set("Content-Security-Policy", p.Policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("ETag", p.tag)
	h.Set("Vary", "Accept-Encoding")
	if slices.Contains(r.Header["If-None-Match"], p.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.Body
	if p.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = p.packed()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", p.Type)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the reader may be gone
}
