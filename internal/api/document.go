package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"

	"postern/internal/api/spec"
	"postern/internal/obs"
)

// document is the OpenAPI document as it is served.
type document struct {
	body []byte
	tag  string // the entity tag
}

// describe makes the document. It completes a copy of the part that the operations need at work, because
// they read theirs while it is completed.
func (a *API) describe(sandbox bool) (document, error) {
	described := *a
	doc, err := described.build(sandbox)
	if err := errors.Join(err, spec.Finish(doc, a.problems)); err != nil {
		return document{}, err
	}
	b, err := spec.Encode(doc)
	sum := sha256.Sum256(b)
	return document{b, `W/"` + hex.EncodeToString(sum[:8]) + `"`}, err
}

// OpenAPI returns the document that describes the API, as it is served.
func (a *API) OpenAPI() ([]byte, error) {
	d, err := a.document()
	return bytes.Clone(d.body), err
}

// Document returns the document of a server for the real network that callers
// reach at baseURL; "" stands for wherever the document is read.
func Document(baseURL string) ([]byte, error) {
	a, err := New(Options{BaseURL: baseURL})
	if err != nil {
		return nil, err
	}
	return a.OpenAPI()
}

func (a *API) serveDocument(w http.ResponseWriter, r *http.Request) {
	d, err := a.document()
	if err != nil {
		a.problems.Refuse(w, obs.RequestOf(r.Context()), err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", spec.JSON)
	h.Set("Cache-Control", "no-cache") // cached, and revalidated: a new release may change it
	h.Set("ETag", d.tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	_, _ = w.Write(d.body) // the caller may be gone
}
