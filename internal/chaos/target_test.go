package chaos_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"postern/internal/chaos"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// targets are the webhook endpoints of a flat-out run, one per path. They record every
// POST, with the life of the gateway that sent it.
type targets struct {
	url   string
	seed  uint64
	check *standardwebhooks.Webhook

	mu      sync.Mutex // guards what follows
	moved   *sync.Cond // signals any change
	ids     map[string]string
	posts   []chaos.Post
	lives   []int // where each life begins in posts
	marked  int   // how many posts there were at the mark
	sockets int   // open connections
}

// shaky is the path of the endpoint that refuses one in eight (refuses) first attempts.
const (
	shaky   = "/shaky"
	refuses = 8
)

func startTargets(t *testing.T, seed uint64) *targets {
	t.Helper()
	check, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &targets{
		url: "http://" + l.Addr().String(), seed: seed, check: check, ids: map[string]string{}, lives: []int{0},
	}
	r.moved = sync.NewCond(&r.mu)
	srv := &http.Server{Handler: r, ConnState: r.socket}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return r
}

// socket counts the connections.
func (r *targets) socket(_ net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch state {
	case http.StateNew:
		r.sockets++
	case http.StateClosed, http.StateHijacked:
		r.sockets--
	case http.StateActive, http.StateIdle:
	}
	r.moved.Broadcast()
}

func (r *targets) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/" { // from the harness itself
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the gateway was killed while it was sending
	}
	var e struct {
		EventID, Type, Challenge string
		Message                  struct{ Body string }
	}
	p := chaos.Post{SHA256: chaos.Sum(body), Attempt: req.Header.Get("webhook-attempt"), Answer: http.StatusOK}
	if err := json.Unmarshal(body, &e); err != nil {
		p.Wrong = "form: " + err.Error()
	}
	if err := r.check.Verify(body, req.Header); err != nil {
		p.Wrong = "signature: " + err.Error()
	}
	if p.EventID, p.Type = e.EventID, e.Type; p.EventID != req.Header.Get("webhook-id") {
		p.Wrong = "webhook-id is not the eventId"
	}
	if req.URL.Path == shaky && p.Attempt == "1" && r.refuse(e.Message.Body) {
		p.Answer = http.StatusInternalServerError
	}
	r.note(req.URL.Path, p)
	w.WriteHeader(p.Answer)
	fmt.Fprintf(w, `{"challenge":%q}`, e.Challenge)
}

// refuse depends on the seed and the text.
func (r *targets) refuse(text string) bool {
	h := fnv.New64a()
	fmt.Fprint(h, r.seed, text)
	return text != "" && h.Sum64()%refuses == 0
}

func (r *targets) note(path string, p chaos.Post) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Endpoint, p.Life = r.ids[path], len(r.lives)-1
	r.posts = append(r.posts, p)
	r.moved.Broadcast()
}

// mark sets the mark from which after counts. The beginning of a life is also a mark.
func (r *targets) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marked = len(r.posts)
}

// after returns a channel that is closed when n POSTs have arrived since the mark.
func (r *targets) after(n int) <-chan struct{} {
	come := make(chan struct{})
	go r.until(func() bool { return len(r.posts) >= r.marked+n }, come)
	return come
}

// until closes done when ok, called with the lock held, returns true.
func (r *targets) until(ok func() bool, done chan<- struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ok() {
		r.moved.Wait()
	}
	close(done)
}

// endLife waits until everything that the killed gateway sent has been read, and returns
// it. There must be no concurrent caller.
func (w *world) endLife(r *targets) []chaos.Post {
	w.t.Helper()
	w.knock(r.url) // once this connection is answered, all earlier ones are accepted
	quiet := make(chan struct{})
	go r.until(func() bool { return r.sockets == 0 }, quiet)
	select {
	case <-quiet:
	case <-time.After(patience(w.t)):
		w.t.Fatal("connections of a killed gateway did not end")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	life := r.posts[r.lives[len(r.lives)-1]:]
	r.lives, r.marked = append(r.lives, len(r.posts)), len(r.posts)
	return life
}

// knock makes a request on a new connection.
func (w *world) knock(url string) {
	w.t.Helper()
	alone := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience(w.t)}
	if err := (caller{&alone, nil}).call("GET", url, nil, nil); err != nil {
		w.t.Fatal(err)
	}
}

// all returns all POSTs, and how many of them were retries.
func (r *targets) all() (posts []chaos.Post, retries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.posts {
		if p.Attempt != "1" {
			retries++
		}
	}
	return slices.Clone(r.posts), retries
}

// named sets the id of the endpoint at a path.
func (r *targets) named(path, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[path] = id
}
