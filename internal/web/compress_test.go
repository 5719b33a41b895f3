package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"postern/internal/obs"
	"postern/internal/web"

	"github.com/andybalholm/brotli"
)

// decoded returns the body of a response without its content coding.
func decoded(t testing.TB, coding string, body []byte) string {
	t.Helper()
	from := io.Reader(bytes.NewReader(body))
	switch coding {
	case "br":
		from = brotli.NewReader(from)
	case "gzip":
		z, err := gzip.NewReader(from)
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

// answers is a handler that answers with a text in one piece. Headers follow as name, value.
func answers(text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Header().Set("Vary", "Accept-Encoding")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Write([]byte(text))
	}
}

func long() string { return strings.Repeat("a page that says the same again. ", 1000) }

func TestClientChoosesTheCoding(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"": "", "identity": "", "deflate, zstd": "", "gzip": "gzip", "br": "br", "gzip, deflate, br, zstd": "br",
		"GZIP": "gzip", "gzip,br": "br", "br;q=0.5, gzip": "gzip", "gzip;q=0.5, br;q=0.5": "br", "br;q=0, gzip;q=0": "",
		"br;q=0.000, gzip;q=0.001": "gzip", "br ; q=0, gzip ; Q=0.5": "gzip", "*": "br", "*;q=0": "",
		"*, br;q=0": "gzip", "gzip;q=0.5, *;q=0.1": "gzip", "gzip, *;q=0": "gzip",
		"identity;q=0": "", "identity;q=0, *": "br",
		"identity, gzip;q=0.5": "", "identity;q=0.5, gzip": "gzip", "gzip, identity": "gzip",
		"br;q=x": "", "br;q=2": "", "br;q=-1": "", "br;q=NaN": "", "br;q=": "", "br;level=3": "", "xgzip": "", ",,": "",
	} {
		if got := web.Coding(accept); got != want {
			t.Errorf("Accept-Encoding %q chooses %q, want %q", accept, got, want)
		}
	}
	if got := web.Coding("br;q=0", "gzip"); got != "gzip" {
		t.Errorf("two headers choose %q", got)
	}
}

// FuzzRefusedCodingIsNeverChosen gives the codings a weight of zero in any list.
func FuzzRefusedCodingIsNeverChosen(f *testing.F) {
	f.Add("identity, deflate;q=0.5")
	f.Add("*;q=1;q=0,\x00,;;==")
	f.Fuzz(func(t *testing.T, list string) {
		if got := web.Coding(list, "gzip;q=0, br;q=0"); got != "" {
			t.Errorf("%q chooses %q", list, got)
		}
	})
}

func FuzzCompressedTextIsTheSame(f *testing.F) {
	f.Add([]byte(long()), 3)
	f.Add([]byte(noise(100)), 2000)
	f.Add([]byte{}, 1)
	compress := web.NewCompressor() // used again and again, as by the front door
	f.Fuzz(func(t *testing.T, text []byte, times int) {
		text = bytes.Repeat(text, min(max(times, 1), 2000))
		for _, coding := range []string{"br", "gzip"} {
			if small := compress(coding, text); decoded(t, coding, small) != string(text) {
				t.Errorf("%s of %d bytes is something else", coding, len(text))
			}
		}
	})
}

// TestTextIsCompressedForThoseWhoAcceptIt compares the bytes and the headers, of GET and HEAD.
func TestTextIsCompressedForThoseWhoAcceptIt(t *testing.T) {
	t.Parallel()
	text := long()
	srv := httptest.NewServer(doorOf(t, answers(text, "ETag", `W/"1"`)))
	defer srv.Close()
	ask := func(method, accept string) (http.Header, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/v1/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", accept) // with none, net/http would ask for gzip
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.StatusCode, err)
		}
		return res.Header, body
	}
	for accept, coding := range map[string]string{"identity": "", "br": "br", "gzip": "gzip"} {
		h, body := ask(http.MethodGet, accept)
		head, nothing := ask(http.MethodHead, accept)
		got, small := h.Get("Content-Encoding"), coding == "" || len(body) <= 500
		if got != coding || decoded(t, got, body) != text || !small {
			t.Errorf("%q: %d bytes in the coding %q", coding, len(body), got)
		}
		if h.Get("Content-Length") != strconv.Itoa(len(body)) || h.Get("Vary") != "Accept-Encoding" ||
			h.Get("ETag") != `W/"1"` {
			t.Errorf("%q: %d bytes with the headers %v", coding, len(body), h)
		}
		for _, name := range []string{"Content-Encoding", "Content-Length", "Content-Type", "Vary", "ETag"} {
			if head.Get(name) != h.Get(name) || len(nothing) > 0 {
				t.Errorf("%q: HEAD has %s: %s, and GET %s", coding, name, head.Get(name), h.Get(name))
			}
		}
	}
}

// TestOnlyWhatIsMarkedIsCompressed: every other response is sent as the handler wrote it.
func TestOnlyWhatIsMarkedIsCompressed(t *testing.T) {
	t.Parallel()
	text := long()
	for name, serve := range map[string]http.HandlerFunc{
		"not marked":         answers(text, "Vary", "Cookie"),
		"compressed already": answers(text, "Content-Encoding", "gzip"),
		"small":              answers(text[:web.CompressFrom-1]),
		"random":             answers(noise(4 * web.CompressFrom)),
		"not whole": func(w http.ResponseWriter, r *http.Request) {
			answers(text, "Content-Length", strconv.Itoa(len(text)+1))(w, r)
			if _, err := w.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		},
		"an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			answers(text)(w, r)
		},
		"in pieces": func(w http.ResponseWriter, r *http.Request) {
			for range 2 {
				answers(text, "Content-Length", "")(w, r)
			}
		},
		"a stream": func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			answers(text)(w, r)
		},
	} {
		plain := httptest.NewRecorder()
		serve(plain, local(t, http.MethodGet, "/v1/x"))
		a := doorOf(t, serve).get("/v1/x", "Accept-Encoding", "gzip, br")
		if !bytes.Equal(a.Body.Bytes(), plain.Body.Bytes()) || a.Header().Get("Content-Encoding") == "br" {
			t.Errorf("%s: the response is compressed: %v", name, a.Header())
		}
	}
}

func noise(n int) string {
	b := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(b); err != nil {
		panic(err)
	}
	return string(b)
}

// TestPagesAreTheSameInEveryCoding reads every page of the documentation in all of them.
func TestPagesAreTheSameInEveryCoding(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	compressed := 0
	for _, path := range d.pages() {
		plain := d.get(path)
		tag := plain.Header().Get("ETag")
		for _, coding := range []string{"br", "gzip"} {
			a := d.get(path, "Accept-Encoding", coding)
			got := a.Header().Get("Content-Encoding")
			if a.Header().Get("ETag") != tag || a.Header().Get("Vary") != "Accept-Encoding" ||
				got != coding && plain.Body.Len() >= web.CompressFrom {
				t.Errorf("%s as %s: %v", path, coding, a.Header())
			}
			if got == "gzip" {
				compressed++ // as Brotli, pages are kept themselves
			}
			if decoded(t, got, a.Body.Bytes()) != plain.Body.String() {
				t.Errorf("%s as %s is something else", path, coding)
			}
			again := d.get(path, "Accept-Encoding", coding, "If-None-Match", tag)
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("ETag") != tag ||
				again.Header().Get("Vary") != "Accept-Encoding" || again.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s a second time: %d %v", path, again.Code, again.Header())
			}
		}
	}
	if compressed < 20 || web.Archived(d.Door) != compressed { // each was asked for once, and is kept
		t.Errorf("%d pages are compressed, %d are kept", compressed, web.Archived(d.Door))
	}
}

// TestCurrentCopyIsNotSentAgain compares entity tags as RFC 9110, 13.1.2 says.
func TestCurrentCopyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	d := doorOf(t, answers(long(), "ETag", `W/"a"`))
	for tag, want := range map[string]int{
		`W/"a"`: 304, `"a"`: 304, `"b", W/"a"`: 304, `*`: 304, `"b"`: 200, `a`: 200, ``: 200, `W/"b", "c"`: 200,
	} {
		if a := d.get("/v1/x", "If-None-Match", tag); a.Code != want || want == 304 && a.Body.Len() > 0 {
			t.Errorf("If-None-Match %q is answered %d with %d bytes", tag, a.Code, a.Body.Len())
		}
	}
	post := local(t, http.MethodPost, "/v1/x")
	post.Header.Set("If-None-Match", "*")
	if a := d.send(post); a.Code != http.StatusOK {
		t.Errorf("a POST is answered %d", a.Code)
	}
}

// TestBothFormsOfAResponseAreCounted while its client does not read.
func TestBothFormsOfAResponseAreCounted(t *testing.T) {
	t.Parallel()
	text := long()
	d := doorOf(t, func(w http.ResponseWriter, r *http.Request) {
		obs.RequestOf(r.Context()).Workspace = "ws"
		answers(text)(w, r)
	})
	var waits, done sync.WaitGroup
	waits.Add(1)
	c := &stuck{ResponseRecorder: httptest.NewRecorder(), waits: &waits, goOn: make(chan struct{})}
	req := local(t, http.MethodGet, "/v1/x")
	req.Header.Set("Accept-Encoding", "br")
	done.Go(func() { d.ServeHTTP(c, req) })
	waits.Wait()
	counted := web.InFlight(d.Door, "ws")
	close(c.goOn)
	done.Wait()
	if want := len(text) + c.Body.Len(); c.Header().Get("Content-Encoding") != "br" || counted != want {
		t.Errorf("%d bytes are counted, want %d", counted, want)
	}
	if left := web.InFlight(d.Door, "ws"); left != 0 {
		t.Errorf("%d bytes are counted at the end", left)
	}
}
