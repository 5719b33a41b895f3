package testkit

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"postern/internal/api"
	"postern/internal/api/spec/spectest"
	"postern/internal/gateway"
	"postern/internal/postern"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Delivery is a POST with a valid signature that a receiver got.
type Delivery struct {
	Header http.Header
	Body   []byte
	Event  map[string]any
}

// Sequence returns the event's sequence number, or 0 if it has none.
func (d Delivery) Sequence() int {
	n, _ := d.Event["sequence"].(float64)
	return int(n)
}

// Type returns the type of the event.
func (d Delivery) Type() postern.EventType {
	s, _ := d.Event["type"].(string)
	return postern.EventType(s)
}

// Receiver is a webhook receiver that verifies every signature with the official library. At
// the end of the test it compares every delivery with the schema of its type in the OpenAPI
// document, so that this does not slow down what the test measures. It can be taken down.
type Receiver struct {
	kit      *Kit
	Endpoint gateway.EndpointWithSecret
	server   *httptest.Server

	mu         sync.Mutex
	check      *standardwebhooks.Webhook
	down       int // the status it answers with while it is down; 0 if it is up
	refused    int // deliveries refused while down
	deliveries []Delivery
	counts     map[postern.EventType]int
	changed    chan struct{}
}

// Receive starts a receiver, registers it and waits until it is active.
func (c *Client) Receive(events ...string) *Receiver {
	c.kit.t.Helper()
	r := &Receiver{kit: c.kit, counts: map[postern.EventType]int{}, changed: make(chan struct{})}
	r.server = httptest.NewServer(r)
	c.kit.t.Cleanup(r.close)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" //nolint:gosec // of the test
	var err error
	if r.check, err = standardwebhooks.NewWebhook(secret); err != nil {
		c.kit.t.Fatal(err)
	}
	body := map[string]any{"url": r.server.URL + "/hook", "secret": secret}
	if len(events) > 0 {
		body["events"] = events
	}
	c.Call("POST", "/v1/webhooks", body, 201, &r.Endpoint)
	Eventually(c.kit.t, "an active endpoint", func() (bool, any) {
		var e postern.Endpoint
		c.Call("GET", "/v1/webhooks/"+string(r.Endpoint.ID), nil, 200, &e)
		return e.Status == postern.EndpointActive, e.StatusReason
	})
	return r
}

// document holds the schemas of the API.
//
//nolint:gochecknoglobals // parsed once
var document = sync.OnceValues(func() (*spectest.Schemas, error) {
	doc, err := api.Document("")
	if err != nil {
		return nil, err
	}
	return spectest.Parse(doc)
})

// close stops the receiver and checks what it got.
func (r *Receiver) close() {
	r.server.Close()
	doc, err := document()
	if err != nil {
		r.kit.t.Error(err)
		return
	}
	for _, d := range r.All() {
		if err := doc.ValidEvent(d.Body); err != nil {
			r.kit.t.Errorf("a delivery does not have the form of its type: %v in %s", err, d.Body)
		}
	}
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender disconnected
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wake()
	if r.down != 0 {
		r.refused++
		w.WriteHeader(r.down)
		return
	}
	d := Delivery{Header: req.Header, Body: body}
	if err := r.check.Verify(body, req.Header); err != nil {
		r.kit.t.Errorf("a delivery does not verify: %v", err)
	}
	if err := json.Unmarshal(body, &d.Event); err != nil {
		r.kit.t.Errorf("a delivery is not JSON: %v", err)
	}
	r.deliveries = append(r.deliveries, d)
	r.counts[d.Type()]++
	answer := map[string]any{"received": true}
	if d.Type() == postern.WebhookVerification {
		answer["challenge"] = d.Event["challenge"]
	}
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,gosec // the sender tries again
}

func (r *Receiver) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Down makes the receiver answer every POST with a status; 0 brings it back up.
func (r *Receiver) Down(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = status
}

// AwaitRefused waits until the receiver has refused n deliveries while down.
func (r *Receiver) AwaitRefused(n int) {
	r.kit.t.Helper()
	r.await("refused deliveries", func() bool { return r.refused >= n })
}

// Await waits until as many deliveries of each kind have arrived as the kind is named. It
// returns all deliveries of these kinds in order of their sequence, because the order of
// arrival is not defined.
func (r *Receiver) Await(kinds ...postern.EventType) (list []Delivery) {
	r.kit.t.Helper()
	r.await("the webhooks "+join(kinds), func() bool {
		list = r.ofKinds(kinds)
		missing := slices.Clone(kinds)
		for _, d := range list {
			if i := slices.Index(missing, d.Type()); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			}
		}
		return len(missing) == 0
	})
	return list
}

// ofKinds returns the deliveries of these kinds so far in order of their sequence. The caller
// holds the lock.
func (r *Receiver) ofKinds(kinds []postern.EventType) []Delivery {
	list := slices.DeleteFunc(slices.Clone(r.deliveries),
		func(d Delivery) bool { return !slices.Contains(kinds, d.Type()) })
	slices.SortStableFunc(list, func(a, b Delivery) int { return a.Sequence() - b.Sequence() })
	return list
}

func join(kinds []postern.EventType) (s string) {
	for _, k := range kinds {
		s += " " + string(k)
	}
	return s
}

// await waits until ok returns true. It calls ok with the lock held.
func (r *Receiver) await(what string, ok func() bool) {
	r.kit.t.Helper()
	deadline := time.After(Wait)
	for {
		r.mu.Lock()
		done, changed := ok(), r.changed
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			var got []postern.EventType
			for _, d := range r.All() {
				got = append(got, d.Type())
			}
			r.kit.t.Fatalf("waited in vain for %s; got%s", what, join(got))
		}
	}
}

// All returns all deliveries so far.
func (r *Receiver) All() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries)
}

// AwaitCount waits until n deliveries of a kind have arrived. It returns all deliveries of this
// kind in order of their sequence. Deliveries of another kind may still be missing, even of events
// that came first.
func (r *Receiver) AwaitCount(kind postern.EventType, n int) (list []Delivery) {
	r.kit.t.Helper()
	r.await(fmt.Sprint(n, " webhooks ", kind), func() bool {
		if r.counts[kind] < n {
			return false
		}
		list = r.ofKinds([]postern.EventType{kind})
		return true
	})
	return list
}
