package chaos_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"postern/internal/api"
	"postern/internal/api/spec/spectest"
	"postern/internal/chaos"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

// receiver is a webhook endpoint that records each event on disk before it answers. It
// misbehaves at some first attempts. It accepts every second attempt, so that retries end
// within a run.
type receiver struct {
	url   string
	path  string
	seed  uint64
	check *standardwebhooks.Webhook
	notes *chaos.Journal
	doc   *spectest.Schemas
	down  atomic.Int64 // how many first attempts it cuts off from now on
	calm  atomic.Bool  // no more misbehavior
	moved atomic.Bool  // the server's clock may be wrong: posts whose time is out of tolerance are refused

	refused atomic.Int64 // attempts that it did not answer with 2xx

	mu   sync.Mutex
	seen map[string]struct{} // events answered with 2xx
	on   func(told)
}

func startReceiver(t *testing.T, dir string, seed uint64, on func(told)) *receiver {
	t.Helper()
	r := &receiver{seed: seed, path: filepath.Join(dir, "receiver.jsonl"), seen: map[string]struct{}{}, on: on}
	var err error
	if r.check, err = standardwebhooks.NewWebhook(secret); err != nil {
		t.Fatal(err)
	}
	doc, err := api.Document("")
	if err == nil {
		r.doc, err = spectest.Parse(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.notes, err = chaos.OpenJournal(r.path); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String() + "/hook"
	srv := &http.Server{Handler: r}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close(); r.notes.Close() })
	return r
}

// mood is what the receiver does with a post.
type mood int

const (
	fine    mood = iota
	fails        // 500
	cuts         // no answer at all
	forgets      // accepts it, and cuts the connection before the answer
	doubts       // 401: the time of the signature is not that of the receiver
)

// moodFor depends on the seed, on the type and text of the event, and on the attempt.
func (r *receiver) moodFor(fact, attempt string) mood {
	if attempt != "1" || r.calm.Load() {
		return fine
	}
	if r.down.Load() > 0 && r.down.Add(-1) >= 0 {
		return cuts
	}
	h := fnv.New64a()
	fmt.Fprint(h, r.seed, fact)
	switch h.Sum64() % 100 {
	case 0, 1:
		return fails
	case 2:
		return cuts
	case 3:
		return forgets
	}
	return fine
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the gateway was killed while it was sending
	}
	var e told
	p := chaos.Post{SHA256: chaos.Sum(body), Attempt: req.Header.Get("webhook-attempt"), Answer: http.StatusOK}
	late := r.outOfTime(body, req.Header)
	if err := r.check.Verify(body, req.Header); err != nil && !late {
		p.Wrong = "signature: " + err.Error()
	}
	if err := json.Unmarshal(body, &e); err != nil {
		p.Wrong = "form: " + err.Error()
	}
	p.EventID, p.Type, p.MessageID = e.EventID, e.Type, e.Message.ID
	if p.EventID != req.Header.Get("webhook-id") {
		p.Wrong = "webhook-id is not the eventId"
	}
	if err := r.doc.ValidEvent(body); err != nil && p.Wrong == "" {
		p.Wrong = "form: " + err.Error()
	}
	mood := r.moodFor(e.Type+e.Message.Body, p.Attempt)
	if late {
		mood = doubts
	}
	switch mood {
	case fails:
		p.Answer = http.StatusInternalServerError
	case cuts, forgets:
		p.Answer = 0
	case doubts:
		p.Answer = http.StatusUnauthorized
	case fine:
	}
	if mood != fine {
		r.refused.Add(1)
	}
	if err := r.notes.Write(p); err != nil || mood == cuts || mood == forgets {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(p.Answer)
	fmt.Fprintf(w, `{"challenge":%q}`, e.Challenge)
	if p.Answer == http.StatusOK && r.first(p.EventID) {
		r.on(e)
	}
}

// outOfTime reports whether a post is signed well, but at a time that a receiver does not accept, which a server whose
// clock is wrong cannot avoid.
func (r *receiver) outOfTime(body []byte, h http.Header) bool {
	return r.moved.Load() && r.check.Verify(body, h) != nil && r.check.VerifyIgnoringTimestamp(body, h) == nil
}

func (r *receiver) first(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, before := r.seen[event]
	r.seen[event] = struct{}{}
	return !before
}

// stumble cuts off the next first attempts.
func (r *receiver) stumble(attempts int64) { r.down.Store(attempts) }
