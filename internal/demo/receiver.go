package demo

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"postern/internal/postern"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is a small webhook receiver, as a customer would write it: it answers the
// handshake, verifies the signature, and prints each event.
type receiver struct {
	url    string
	secret string
	key    []byte // of the secret
	check  *standardwebhooks.Webhook
	out    io.Writer

	mu      sync.Mutex
	seen    map[string]bool // eventIds: deliveries are at least once
	got     map[postern.EventType]int
	bad     error // why webhooks could not be verified
	changed chan struct{}
}

const (
	maxDelivery  = 1 << 20
	receiverPath = "/webhooks"
)

func startReceiver(ctx context.Context, out io.Writer) (*receiver, error) {
	var raw [32]byte
	rand.Read(raw[:]) // never fails (Go 1.24)
	r := &receiver{
		secret: "whsec_" + base64.StdEncoding.EncodeToString(raw[:]), key: raw[:], out: out,
		seen: map[string]bool{}, got: map[postern.EventType]int{}, changed: make(chan struct{}),
	}
	var err error
	if r.check, err = standardwebhooks.NewWebhook(r.secret); err != nil {
		return nil, fmt.Errorf("prepare the verification of webhooks: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r.url = "http://" + l.Addr().String() + receiverPath
	srv := &http.Server{Handler: r, ReadHeaderTimeout: time.Second}
	go srv.Serve(l) //nolint:errcheck // it lives as long as the demo
	return r, nil
}

// event contains the fields of a webhook that the demo reads.
type event struct {
	EventID   string            `json:"eventId"`
	Type      postern.EventType `json:"type"`
	Challenge string            `json:"challenge"`
	Message   json.RawMessage   `json:"message"`
	Device    json.RawMessage   `json:"device"`
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || req.URL.Path != receiverPath {
		http.Error(w, "webhooks are posted to "+receiverPath, http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxDelivery))
	if err == nil {
		err = r.check.Verify(body, req.Header)
	}
	var e event
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		r.fail(err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.take(e)
	answer := map[string]any{"received": true}
	if e.Type == postern.WebhookVerification {
		answer["challenge"], answer["signature"] = e.Challenge, r.sign(e.Challenge)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,gosec // the sender tries again
}

// sign proves that the receiver knows the secret: only then does a signed handshake succeed.
func (r *receiver) sign(challenge string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(challenge))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (r *receiver) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[e.EventID] {
		r.seen[e.EventID] = true
		r.got[e.Type]++
		fmt.Fprintf(r.out, "   webhook  %-20s  signature verified  %s\n", e.Type, summary(e))
	}
	r.wake()
}

// summary is the part of an event that is printed.
func summary(e event) string {
	var m struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Body   string `json:"body"`
		Status string `json:"status"`
	}
	subject := e.Message
	if subject == nil {
		subject = e.Device
	}
	if err := json.Unmarshal(subject, &m); err != nil {
		return ""
	}
	switch {
	case e.Type == postern.MessageReceived || e.Type == postern.MessageEcho:
		return fmt.Sprintf("from %s: %q", m.From, m.Body)
	case e.Message != nil:
		return fmt.Sprintf("to %s: %s", m.To, m.Status)
	}
	return m.Status
}

func (r *receiver) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = errors.Join(r.bad, fmt.Errorf("a webhook could not be verified: %w", err))
	r.wake()
}

// wake wakes everyone who waits. The caller holds r.mu.
func (r *receiver) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// forget resets the counts.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.got)
}

// await waits until an event of each kind has arrived.
func (r *receiver) await(ctx context.Context, kinds ...postern.EventType) error {
	for {
		missing, changed, err := r.missing(kinds)
		if err != nil || missing == "" {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for the webhook %s: %w", missing, ctx.Err())
		}
	}
}

func (r *receiver) missing(kinds []postern.EventType) (postern.EventType, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range kinds {
		if r.got[k] == 0 {
			return k, r.changed, r.bad
		}
	}
	return "", r.changed, r.bad
}

// follow prints what arrives until ctx is done, and also what is wrong.
func (r *receiver) follow(ctx context.Context) {
	for {
		select {
		case <-r.complain():
		case <-ctx.Done():
			return
		}
	}
}

// complain prints what was wrong since the last call. The channel is closed at the next change.
func (r *receiver) complain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad != nil {
		fmt.Fprintf(r.out, "   %v\n", r.bad)
		r.bad = nil
	}
	return r.changed
}
