package listen

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "pst_0123456789abcdefghijklmnopqrstuvwxyzAB"

// api takes the place of a server, which a synctest bubble cannot reach.
type api struct {
	t      *testing.T
	began  time.Time
	answer func(n int, r *http.Request) *reply // nil: connection refused

	mu   sync.Mutex
	asks []ask
}

// ask is a request and the time it arrived.
type ask struct {
	path, after string
	at          time.Duration
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if got := r.Header.Get("Authorization"); got != "Bearer "+testKey {
		a.t.Errorf("Authorization: %q", got)
	}
	a.mu.Lock()
	a.asks = append(a.asks, ask{r.URL.Path, r.Header.Get("Last-Event-ID"), time.Since(a.began)})
	n := len(a.asks)
	a.mu.Unlock()
	if p := a.answer(n, r); p != nil {
		return p.response(r), nil
	}
	return nil, io.ErrUnexpectedEOF
}

func (a *api) asked() []ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]ask(nil), a.asks...)
}

// reply is a response: a body, or a stream that write produces. The stream stays
// open until the client disconnects, unless write closes it.
type reply struct {
	status     int
	kind, body string
	retryAfter string
	write      func(w *io.PipeWriter)
}

func (p reply) response(r *http.Request) *http.Response {
	res := &http.Response{
		StatusCode: p.status, Header: http.Header{"Content-Type": {p.kind}},
		Body: io.NopCloser(strings.NewReader(p.body)),
	}
	if p.retryAfter != "" {
		res.Header.Set("Retry-After", p.retryAfter)
	}
	if p.write != nil {
		pr, pw := io.Pipe()
		context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
		go p.write(pw)
		res.Body = pr
	}
	return res
}

func streaming(write func(*io.PipeWriter)) *reply {
	return &reply{status: 200, kind: streamType, write: write}
}

func hold(text string) func(*io.PipeWriter) {
	return func(w *io.PipeWriter) { io.WriteString(w, text) }
}

func cut(text string) func(*io.PipeWriter) {
	return func(w *io.PipeWriter) {
		io.WriteString(w, text)
		w.Close()
	}
}

func eventBlock(id string) string {
	return "id: " + id + "\nevent: message.received\ndata: {\"eventId\":\"" + id + "\"}\n\n"
}

// output collects what a listener prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// run is a listener that runs in the background.
type run struct {
	api      *api
	out, err output
	stop     context.CancelFunc
	ended    chan error
}

// start runs a listener against the replies of answer. The caller stops it.
func start(t *testing.T, o Options, answer func(n int, r *http.Request) *reply) *run {
	t.Helper()
	r := &run{ended: make(chan error, 1), api: &api{t: t, began: time.Now(), answer: answer}}
	o.URL, o.Key, o.JSON, o.Out, o.Err = "http://postern.test", testKey, true, &r.out, &r.err
	l, err := newListener(o)
	if err != nil {
		t.Fatal(err)
	}
	l.api.transport = r.api
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() {
		defer l.close()
		r.ended <- l.run(ctx)
	}()
	return r
}

// finish stops a listener, which must end without an error.
func (r *run) finish(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("a stopped listener returned %v", err)
	}
}

// shown returns the ids of the printed events.
func (r *run) shown() string {
	var ids []string
	for line := range strings.Lines(r.out.String()) {
		_, rest, _ := strings.Cut(line, `"eventId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}
