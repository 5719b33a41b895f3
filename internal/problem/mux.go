package problem

import (
	"net/http"

	"postern/internal/obs"
	"postern/internal/postern"
)

// Routed serves mux. It answers with problem documents where mux would answer
// in plain text: a path that mux does not have, and a method that a path does
// not take.
func (p *Writer) Routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fallback, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		q := obs.RequestOf(r.Context())
		allow := allowed(fallback, r)
		if allow == "" {
			p.Refuse(w, q, NoRoute())
			return
		}
		w.Header().Set("Allow", allow)
		p.Refuse(w, q, postern.Errorf(postern.MethodNotAllowed, "this path takes %s", allow))
	})
}

// NoRoute is the refusal of a path that leads nowhere.
func NoRoute() error {
	return postern.Errorf(postern.NotFound, "there is no such route; the routes are in /v1/openapi.json")
}

// allowed asks the fallback handler of a mux which methods the path takes.
func allowed(fallback http.Handler, r *http.Request) string {
	var p probe
	fallback.ServeHTTP(&p, r)
	return p.Header().Get("Allow")
}

// probe is a writer that keeps the headers and drops the rest.
type probe struct{ header http.Header }

// Header returns what the mux set.
func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

// Write drops the text of the mux.
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the status of the mux.
func (*probe) WriteHeader(int) {}
