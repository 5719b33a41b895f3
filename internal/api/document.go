package api

import (
	"bytes"
	"net/http"
	"strconv"

	"postern/internal/api/spec"
	"postern/internal/obs"
)

// OpenAPI returns the document that describes the API, as it is served.
func (a *API) OpenAPI() ([]byte, error) {
	b, err := a.document()
	return bytes.Clone(b), err
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
	b, err := a.document()
	if err != nil {
		a.problems.Refuse(w, obs.RequestOf(r.Context()), err)
		return
	}
	w.Header().Set("Content-Type", spec.JSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the caller may be gone
}
