package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDMfKQ9r8GKYo="

func verifies(t *testing.T, secret string, h http.Header, body string) bool {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key.Verify([]byte(body), h) == nil
}

// rotate gives the endpoint another secret, beside which the one before signs
// until a time.
func (w *world) rotate(e postern.Endpoint, secret string, until postern.Time) {
	w.t.Helper()
	w.change(e, func(e *postern.Endpoint) {
		e.OldSecrets = append([]postern.OldSecret{{Secret: e.Secret, SigningKey: e.SigningKey, Until: until}},
			e.OldSecrets...)
		e.Secret = w.box.Seal([]byte(secret), e.ID.SecretPlace())
	})
}

// The receiver verifies every POST with the first secret, which signs beside
// the second one.
func TestRotationHoldsFromTheNextAttemptOnABusyEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answered := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, got) { <-answered })
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.start(w.dispatcher(Options{}))
	w.receive(numbered(batch + 10)...) // more than a lane reads at once
	for n := range batch + 10 {
		g := r.next() // it is in flight, and all others wait behind it
		if rotated := n > 5; verifies(t, otherSecret, g.header, g.body) != rotated ||
			strings.Count(g.header.Get("Webhook-Signature"), "v1,") != map[bool]int{
				false: 1,
				true:  2,
			}[rotated] {
			t.Errorf("POST %d has %s", n, g.header.Get("Webhook-Signature"))
		}
		if n == 5 {
			w.rotate(e, otherSecret, now().Add(time.Hour))
		}
		answered <- struct{}{}
	}
	w.awaitSucceeded(e, batch+10)
}

func TestNewestSecretSignsFirstAndOldOnesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.active("https://example.com", nil)
	const third = "whsec_enp6enp6enp6enp6enp6enp6enp6enp6enp6enp6eno="
	end := now().Add(time.Hour)
	w.rotate(e, otherSecret, end.Add(time.Minute))
	w.rotate(e, third, end)
	s, err := newSigner(w.box, w.get(e))
	w.must(err)
	body := []byte(`{"a":1}`)
	for _, tt := range []struct {
		at    time.Time
		alive []string // newest first
	}{
		{end.Std().Add(-time.Millisecond), []string{third, otherSecret, testSecret}},
		{end.Std(), []string{third, testSecret}},
		{end.Std().Add(time.Minute), []string{third}},
	} {
		list := strings.Split(s.sign("evt_1", tt.at, body), " ")
		if len(list) != len(tt.alive) {
			t.Fatalf("at %s there are %d signatures, want %d", tt.at, len(list), len(tt.alive))
		}
		for i, secret := range tt.alive {
			key, err := standardwebhooks.NewWebhook(secret)
			w.must(err)
			if want, err := key.Sign("evt_1", tt.at, body); err != nil || list[i] != want {
				t.Errorf("signature %d is %s (%v), want %s", i, list[i], err, want)
			}
		}
	}
}

func TestOldSecretIsRefusedAfterTheOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	posts := make(chan got, 10)
	srv := newPlainReceiver(t, posts)
	e := w.active(srv, nil)
	w.start(w.dispatcher(Options{}))
	for _, tt := range []struct {
		until     postern.Time
		old, next bool
	}{{now().Add(time.Hour), true, true}, {now(), false, true}} {
		w.change(e, func(e *postern.Endpoint) {
			e.OldSecrets = []postern.OldSecret{{
				Secret: w.box.Seal([]byte(testSecret), e.ID.SecretPlace()),
				Until:  tt.until,
			}}
			e.Secret = w.box.Seal([]byte(otherSecret), e.ID.SecretPlace())
		})
		w.receive("hi")
		g := <-posts
		if verifies(t, testSecret, g.header, g.body) != tt.old ||
			verifies(t, otherSecret, g.header,
				g.body) != tt.next {
			t.Errorf("with an overlap until %s: %s", tt.until, g.header.Get("Webhook-Signature"))
		}
		if g.header.Get("X-Service-Signature") != g.header.Get("Webhook-Signature") {
			t.Errorf("the two headers differ: %v", g.header)
		}
	}
}

func TestEd25519SignatureVerifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, nil) // verifies v1
	public, private, err := ed25519.GenerateKey(nil)
	w.must(err)
	e := w.active(r.URL, func(e *postern.Endpoint) {
		e.SigningKey = w.box.Seal(private.Seed(), e.ID.SigningKeyPlace())
	})
	w.start(w.dispatcher(Options{}))
	w.receive("signed twice")
	g := r.next()
	list := strings.Split(g.header.Get("Webhook-Signature"), " ")
	if len(list) != 2 || !strings.HasPrefix(list[0], "v1,") || !strings.HasPrefix(list[1], "v1a,") {
		t.Fatalf("signatures = %v", list)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(list[1], "v1a,"))
	w.must(err)
	signed := g.header.Get("Webhook-Id") + "." + g.header.Get("Webhook-Timestamp") + "." + g.body
	if !ed25519.Verify(public, []byte(signed), signature) || ed25519.Verify(public, []byte(signed+" "), signature) {
		t.Errorf("%s does not verify", list[1])
	}
	w.awaitSucceeded(e, 1)
}

// What a forger may try is refused by the reference verifier, so that our
// deliveries, which it accepts, cannot be turned into others.
func TestChangedDeliveryDoesNotVerify(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, nil)
	w.active(r.URL, nil)
	w.start(w.dispatcher(Options{}))
	w.receive("authentic")
	g := r.next()
	at, err := strconv.ParseInt(g.header.Get("Webhook-Timestamp"), 10, 64)
	w.must(err)
	for name, forge := range map[string]func(h http.Header, body string) string{
		"nothing":           func(_ http.Header, body string) string { return body },
		"a bit of the body": func(_ http.Header, body string) string { return strings.Replace(body, "authentic", "authentid", 1) },
		"written again":     func(_ http.Header, body string) string { return strings.ReplaceAll(body, ":", ": ") },
		"another id": func(h http.Header, body string) string {
			h.Set("Webhook-Id", string(postern.NewEventID()))
			return body
		},
		"an older time": func(h http.Header, body string) string {
			h.Set("Webhook-Timestamp", strconv.FormatInt(at-301, 10))
			return body
		},
		"a later time": func(h http.Header, body string) string {
			h.Set("Webhook-Timestamp", strconv.FormatInt(at+301, 10))
			return body
		},
		"another scheme": func(h http.Header, body string) string {
			h.Set("Webhook-Signature", strings.Replace(h.Get("Webhook-Signature"), "v1,", "v1a,", 1))
			return body
		},
		"a thousand wrong": func(h http.Header, body string) string {
			h.Set("Webhook-Signature", strings.Repeat("v1,AAAA ", 1000))
			return body
		},
		"no signature at all": func(h http.Header, body string) string { h.Del("Webhook-Signature"); return body },
	} {
		h := g.header.Clone()
		if got := verifies(t, testSecret, h, forge(h, g.body)); got != (name == "nothing") {
			t.Errorf("with %s changed it verifies: %v", name, got)
		}
	}
	if verifies(t, otherSecret, g.header, g.body) {
		t.Error("it verifies with another secret")
	}
}
