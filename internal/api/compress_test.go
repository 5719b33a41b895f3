package api_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"postern/internal/api/spec/spectest"
)

// secretNames are the fields of responses whose holder may do something with them alone.
func secretNames() []string {
	return []string{"secret", "qr", "pairingCode", "challenge", "answer", "key", "token", "password"}
}

// TestResponsesWithASecretAreNeverCompressed compares the marks with the document, and asks
// for every operation.
func TestResponsesWithASecretAreNeverCompressed(t *testing.T) {
	t.Parallel()
	mine := newServerWithoutTime(t).tenant("enterprise")
	marked := 0
	for id, r := range routes() {
		target, body := r.build(mine)
		a := mine.do(r.method, target, body, "Accept-Encoding", "identity")
		if !slices.Contains(a.Header()["Vary"], "Accept-Encoding") {
			continue
		}
		marked++
		if r.method != http.MethodGet || a.Code != http.StatusOK {
			t.Errorf("%s %s may be compressed", r.method, id)
		}
		op, _, _ := described().find(r.method, strings.Split(target, "?")[0])
		for _, name := range fieldsOf(spectest.Pointer(op.place, "responses", "200")) {
			if slices.Contains(secretNames(), name) {
				t.Errorf("%s may be compressed, and its response has the field %q", id, name)
			}
		}
	}
	if marked < 5 {
		t.Errorf("%d operations may be compressed", marked)
	}
}

// fieldsOf returns the names of all fields that the document has at a place and below.
func fieldsOf(place string) (names []string) {
	seen := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if ref, is := v["$ref"].(string); is && !seen[ref] {
				seen[ref] = true
				walk(described().tree(strings.TrimPrefix(ref, "#")))
			}
			properties, _ := v["properties"].(map[string]any)
			for name := range properties {
				names = append(names, name)
			}
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(described().tree(place)["content"])
	return names
}

// TestListsAndTheDocumentAreCompressed reads them in every coding.
func TestListsAndTheDocumentAreCompressed(t *testing.T) {
	t.Parallel()
	mine := newServerWithoutTime(t).tenant("enterprise")
	for range 10 {
		connected(mine)
	}
	for _, target := range []string{"/v1/devices", "/v1/events", "/v1/openapi.json"} {
		plain := mine.do("GET", target, "").Body.String()
		for _, coding := range []string{"br", "gzip"} {
			a := mine.raw(target, coding)
			small := a.Body.Len()
			text := decoded(t, coding, a.Body)
			if a.Header().Get("Content-Encoding") != coding || text != plain || small >= len(plain)/2 ||
				a.Header().Get("Content-Length") != strconv.Itoa(small) {
				t.Errorf("%s: %d bytes of %d with the headers %v", target, small, len(plain), a.Header())
			}
		}
	}
}

// raw asks for a coding. [described] reads only bodies that are not compressed.
func (t *tenant) raw(target, coding string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(t.t.Context(), http.MethodGet, target, nil)
	req.RemoteAddr = "127.0.0.1:1234"
	req.Header = http.Header{"Authorization": {"Bearer " + t.key}, "Accept-Encoding": {coding}}
	a := httptest.NewRecorder()
	t.handler.ServeHTTP(a, req)
	return a
}

func decoded(t *testing.T, coding string, body io.Reader) string {
	t.Helper()
	from := io.Reader(brotli.NewReader(body))
	if coding == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentIsSentOnce: a caller that names its entity tag gets 304.
func TestDocumentIsSentOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tag := s.do("GET", "/v1/openapi.json", "").Header().Get("ETag")
	a := s.do("GET", "/v1/openapi.json", "", "If-None-Match", tag)
	if tag == "" || a.Code != http.StatusNotModified || a.Body.Len() > 0 || a.Header().Get("ETag") != tag {
		t.Errorf("with the tag %q: %d and %d bytes", tag, a.Code, a.Body.Len())
	}
}
