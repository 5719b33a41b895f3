package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// blank is a file of n bytes that is never in memory.
func blank(n int64) io.Reader { return io.LimitReader(endless{}, n) }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// put uploads what r gives. A length of -1 is not announced.
func (t *tenant) put(r io.Reader, length int64) *answerT {
	t.t.Helper()
	req := httptest.NewRequestWithContext(t.t.Context(), "POST", "/v1/media", r)
	req.ContentLength = length
	req.Header.Set("Authorization", "Bearer "+t.key)
	req.Header.Set("Content-Type", "application/octet-stream")
	return t.send(req)
}

func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	for name, a := range map[string]*answerT{
		"announced":     mine.put(unread{t}, postern.MaxMedia+1),
		"not announced": mine.put(blank(postern.MaxMedia+1), -1),
	} {
		a.what += " " + name
		a.want(http.StatusRequestEntityTooLarge, postern.PayloadTooLarge)
		if a.Header().Get("Connection") != "close" {
			t.Errorf("%s: headers %v", a.what, a.Header())
		}
	}
	body, kind := form(t, "file", "a", "")
	start, end, _ := strings.Cut(body, "\r\n\r\n")
	file := io.MultiReader(strings.NewReader(start+"\r\n\r\n"), blank(postern.MaxMedia+1), strings.NewReader(end))
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/media", file)
	req.ContentLength = -1
	req.Header.Set("Authorization", "Bearer "+mine.key)
	req.Header.Set("Content-Type", kind)
	mine.send(req).want(http.StatusRequestEntityTooLarge, postern.PayloadTooLarge)
	mine.put(blank(0), 0).want(http.StatusBadRequest, postern.MalformedRequest)
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("a body is read whose length is too large")
	return 0, io.EOF
}

// TestMemoryOfUploads counts what eight uploads at a time allocate. It is not parallel to
// other tests, whose memory would count.
func TestMemoryOfUploads(t *testing.T) { //nolint:paralleltest // see above
	mine := newServer(t).tenant("starter")
	const size = 8 << 20
	mine.put(blank(1<<10), -1).want(http.StatusCreated, "")
	allocated := allocations(func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { mine.put(blank(size), -1).want(http.StatusCreated, "") })
		}
		wg.Wait()
	})
	if t.Logf("8 uploads of 8 MiB: %d KiB", allocated>>10); allocated > 8<<20 {
		t.Errorf("8 uploads of 8 MiB allocate %d bytes", allocated)
	}
	id := mine.put(blank(size), -1).member("id")
	allocated = allocations(func() {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/media/"+id+"/content", nil)
		r.Header.Set("Authorization", "Bearer "+mine.key)
		r.RemoteAddr = "127.0.0.1:1234"
		w := &counting{header: http.Header{}}
		if mine.handler.ServeHTTP(w, r); w.n != size {
			t.Errorf("%d bytes came back", w.n)
		}
	})
	if t.Logf("a download of 8 MiB: %d KiB", allocated>>10); allocated > 1<<20 {
		t.Errorf("a download of 8 MiB allocates %d bytes", allocated)
	}
}

// allocations returns how many bytes something allocates.
func allocations(what func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	what()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// counting is a response that is counted and not kept.
type counting struct {
	header http.Header
	n      int
}

func (c *counting) Header() http.Header { return c.header }

func (c *counting) WriteHeader(int) {}

func (c *counting) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}

// uploading begins an upload of a number of bytes over a connection.
func uploading(mine *tenant, srv *httptest.Server, length int) net.Conn {
	mine.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(mine.t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		mine.t.Fatal(err)
	}
	mine.t.Cleanup(func() { conn.Close() })
	write(mine.t, conn, fmt.Sprintf(
		"POST /v1/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
		mine.key, length))
	return conn
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// answerOf reads the answer on a connection.
func answerOf(t testing.TB, conn net.Conn) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestStalledUploadEndsAndSlowOneSucceeds(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	const patience = 3 * time.Second
	mine.api.SetUploads(1, patience)
	srv := httptest.NewServer(mine.handler)
	t.Cleanup(srv.Close)
	stalled := uploading(mine, srv, 100)
	write(t, stalled, "Hello")
	if status, body := answerOf(t, stalled); status != http.StatusBadRequest || !strings.Contains(body, "stopped arriving") {
		t.Errorf("a stalled upload is answered %d %s", status, body)
	}
	slow := uploading(mine, srv, 20)
	tick := time.NewTicker(patience / 10)
	defer tick.Stop()
	for range 20 {
		<-tick.C
		write(t, slow, "a")
	}
	if status, body := answerOf(t, slow); status != http.StatusCreated {
		t.Errorf("a slow upload is answered %d %s", status, body)
	}
	left := uploading(mine, srv, 100)
	write(t, left, "Hello")
	left.Close()
	for { // its place is free again when the server has noticed
		if a := mine.put(blank(10), -1); a.Code == http.StatusCreated {
			break
		} else if a.Code != http.StatusTooManyRequests {
			t.Fatalf("after an upload that was left: %d %s", a.Code, a.Body)
		}
		<-tick.C
	}
}

func TestUploadsAtATimeAreCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("starter"), s.tenant("starter")
	s.api.SetUploads(10, time.Minute)
	var wg sync.WaitGroup
	hold := func(x *tenant) (finish func()) {
		r, w := io.Pipe()
		wg.Go(func() { x.put(r, -1).want(http.StatusCreated, "") })
		write(t, w, "Hello") // returns when the server reads: the upload is counted
		return func() { w.Close() }
	}
	refused := func(x *tenant) {
		a := x.put(unread{t}, -1)
		a.want(http.StatusTooManyRequests, postern.RateLimited)
		if a.Header().Get("Retry-After") == "" {
			t.Errorf("headers %v", a.Header())
		}
	}
	var held []func()
	for range 8 {
		held = append(held, hold(mine))
	}
	refused(mine)
	held = append(held, hold(other), hold(other))
	refused(other) // there are ten in all
	for _, finish := range held {
		finish()
	}
	wg.Wait()
	mine.put(blank(10), -1).want(http.StatusCreated, "")
}

// TestUploadIsKeptOnce repeats an upload with one idempotency key, in both forms.
func TestUploadIsKeptOnce(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	post := func(filename, content string) *answerT {
		return mine.do("POST", "/v1/media?filename="+filename, content, "Idempotency-Key", "one")
	}
	first := post("a.txt", "Hello")
	first.want(http.StatusCreated, "")
	body, kind := form(t, "file", "a.txt", "Hello")
	for _, a := range []*answerT{
		post("a.txt", "Hello"), mine.do("POST", "/v1/media", body, "Content-Type", kind, "Idempotency-Key", "one"),
	} {
		a.want(http.StatusCreated, "")
		if a.Body.String() != first.Body.String() || a.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("repeated: %s %v", a.Body, a.Header())
		}
	}
	post("a.txt", "Hallo").want(http.StatusUnprocessableEntity, postern.IdempotencyReused)
	post("b.txt", "Hello").want(http.StatusUnprocessableEntity, postern.IdempotencyReused)
}

func TestBrokenFormsAreRefused(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	const file = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	for _, tt := range []struct {
		name, body, params string
		status             int
	}{
		{"good", "--b\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 201},
		{"with a preamble", "Hi\r\n--b\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 201},
		{"no boundary", "--b\r\n" + file + "Hello\r\n--b--\r\n", "", 415},
		{"empty boundary", "--b\r\n" + file + "Hello\r\n--b--\r\n", `boundary=""`, 415},
		{"another boundary", "--b\r\n" + file + "Hello\r\n--b--\r\n", "boundary=c", 400},
		{"boundary of 100 characters", "Hello", "boundary=" + strings.Repeat("b", 100), 400},
		{"no body", "", "boundary=b", 400},
		{"no part", "--b--\r\n", "boundary=b", 400},
		{"no end", "--b\r\n" + file + "Hello", "boundary=b", 400},
		{"half a boundary", "--b\r\n" + file + "Hello\r\n--", "boundary=b", 400},
		{"half a header", "--b\r\nContent-Dis", "boundary=b", 400},
		{"no headers", "--b\r\n\r\nHello\r\n--b--\r\n", "boundary=b", 422},
		{"no colon", "--b\r\nContent-Disposition\r\n\r\nHello\r\n--b--\r\n", "boundary=b", 400},
		{"large headers", "--b\r\nX: " + strings.Repeat("x", 200_000) + "\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 400},
		{"many headers", "--b\r\n" + strings.Repeat("X: x\r\n", 30_000) + file + "Hello\r\n--b--\r\n", "boundary=b", 400},
		{"long preamble", strings.Repeat("x\r\n", 50_000) + "--b\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 400},
		{"another part", "--b\r\n" + strings.Replace(file, `"file"`, `"data"`, 1) + "Hello\r\n--b--\r\n", "boundary=b", 422},
		{"two files", "--b\r\n" + file + "Hello\r\n--b\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 422},
		{"a field behind it", "--b\r\n" + file + "Hello\r\n--b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--b--", "boundary=b", 422},
		{"an empty file", "--b\r\n" + file + "\r\n--b--\r\n", "boundary=b", 400},
		{"base64", "--b\r\nContent-Transfer-Encoding: base64\r\n" + file + "Hello\r\n--b--\r\n", "boundary=b", 201},
		{"no disposition", "--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n--b--\r\n", "boundary=b", 422},
		{"odd disposition", "--b\r\nContent-Disposition: \"\x00;;\r\n\r\nHello\r\n--b--\r\n", "boundary=b", 400},
	} {
		a := mine.do("POST", "/v1/media", tt.body, "Content-Type", "multipart/form-data; "+tt.params)
		if a.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.name, a.Code, a.Body, tt.status)
		}
		if a.Code >= 400 && a.Header().Get("Connection") != "close" {
			t.Errorf("%s: headers %v", tt.name, a.Header())
		}
	}
	mine.do("POST", "/v1/media", "Hello", "Content-Encoding", "gzip").want(http.StatusUnsupportedMediaType, postern.UnsupportedMediaType)
}
