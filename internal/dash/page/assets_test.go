package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAssetsAreKeptAndCompressed(t *testing.T) {
	t.Parallel()
	get := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		Assets().ServeHTTP(w, r)
		return w
	}
	for name, a := range assets() {
		plain, small := get(a.path, ""), get(a.path, "br, gzip;q=0.8")
		if plain.Code != http.StatusOK ||
			plain.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", name, plain.Code, plain.Header())
		}
		if small.Header().Get("Content-Encoding") != "gzip" {
			continue
		}
		z, err := gzip.NewReader(small.Body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(got, a.raw) {
			t.Errorf("%s does not unpack to itself: %v", name, err)
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.css", "/assets/../page.go", "/assets/app-000000000000.css"} {
		if got := get(path, "").Code; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got)
		}
	}
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br": false, "gzip;q=0": false, "gzip; q=0.0": false,
		"deflate, gzip;q=1.0": true, "xgzip": false,
	} {
		if got := takesGzip(accept); got != want {
			t.Errorf("takesGzip(%q) = %t, want %t", accept, got, want)
		}
	}
}
