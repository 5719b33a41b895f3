package page

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

func TestAssetsAreCachedAndMayBeCompressed(t *testing.T) {
	t.Parallel()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for name, a := range assets() {
		got := get(a.path)
		h := got.Header()
		if got.Code != http.StatusOK || h.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			h.Get("Vary") != "Accept-Encoding" || h.Get("ETag") == "" || h.Get("Content-Length") != strconv.Itoa(len(a.raw)) {
			t.Errorf("%s: %d %v", name, got.Code, h)
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.css", "/assets/../page.go", "/assets/app-000000000000.css"} {
		if got := get(path).Code; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got)
		}
	}
}
