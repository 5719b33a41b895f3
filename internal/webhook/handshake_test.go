package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

// failure is what the client says of an attempt that failed for a reason.
func failure(reason string) error {
	if reason == "" {
		return nil
	}
	return &egress.Error{Reason: egress.Reason(reason), Err: errors.New("test")}
}

func answerJSON(w http.ResponseWriter, g got) {
	json.NewEncoder(w).Encode(map[string]any{"received": true, "challenge": g.event.Challenge})
}

func TestHandshakeAcceptsTheChallengeAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, got)
		reason string // "" for success
	}{
		{"JSON", answerJSON, ""},
		{"bare text", func(w http.ResponseWriter, g got) { io.WriteString(w, g.event.Challenge) }, ""},
		{"text with spaces around", func(w http.ResponseWriter, g got) { io.WriteString(w, "\r\n "+g.event.Challenge+" \n") }, ""},
		{"201", func(w http.ResponseWriter, g got) {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, g.event.Challenge)
		}, ""},
		{"nothing", func(http.ResponseWriter, got) {}, "challenge"},
		{"another challenge", func(w http.ResponseWriter, _ got) { io.WriteString(w, `{"challenge":"AAAA"}`) }, "challenge"},
		{"no string", func(w http.ResponseWriter, _ got) { io.WriteString(w, `{"challenge":true}`) }, "challenge"},
		{"broken JSON", func(w http.ResponseWriter, g got) { io.WriteString(w, `{"challenge":"`+g.event.Challenge) }, "challenge"},
		{"echo of everything", func(w http.ResponseWriter, g got) { io.WriteString(w, g.body) }, "challenge"},
		{"challenge in a page", func(w http.ResponseWriter, g got) { io.WriteString(w, "<html>"+g.event.Challenge) }, "challenge"},
		{"too long", func(w http.ResponseWriter, g got) { io.WriteString(w, g.event.Challenge+strings.Repeat(" ", 2000)) }, "challenge"},
		{"challenge with an error", func(w http.ResponseWriter, g got) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, g.event.Challenge)
		}, "status"},
		{"redirect", func(w http.ResponseWriter, _ got) {
			w.Header().Set("Location", "/ok")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, "redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t), newReceiver(t, tt.answer)
			e := w.endpoint(r.URL, nil)
			w.start(w.dispatcher(Options{}))
			g := r.next()
			if g.event.Type != "webhook.verification" || len(g.event.Challenge) < 43 ||
				g.header.Get("Webhook-Attempt") != "1" ||
				!strings.Contains(g.body,
					`"deviceId":""`) {
				t.Errorf("handshake = %v %s", g.header, g.body)
			}
			if tt.reason == "" {
				if got := w.awaitStatus(e, postern.EndpointActive); got.VerifiedAt == 0 || got.StatusReason != "" {
					t.Errorf("endpoint = %+v", got)
				}
				return
			}
			w.await("the try", func() bool {
				got,
					_ := w.db.Endpoints.ForDelivery(t.Context(),
					e.ID)
				return got.Attempts == 1
			})
			got, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID)
			if err != nil || got.Status != postern.EndpointPending || string(got.StatusReason) != tt.reason {
				t.Errorf("endpoint is %s (%q, %v), want pending (%q)", got.Status, got.StatusReason, err, tt.reason)
			}
			if gap := time.Duration(got.DueAt-e.DueAt) * time.Millisecond; gap < 3*time.Second || gap > 13*time.Second {
				t.Errorf("the next try is after %s, want 3 s", gap)
			}
		})
	}
}

// Without the secret nobody completes a signed handshake, and nobody who signs wrongly
// completes any.
func TestSignedHandshakeNeedsTheSecret(t *testing.T) {
	t.Parallel()
	const challenge, other = "3q2-7wAAAAAAAAAAAAAAAA", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	w := newWorld(t)
	e := postern.Endpoint{ID: postern.NewEndpointID()}
	e.Secret = w.box.Seal([]byte(testSecret), e.ID.SecretPlace())
	e.OldSecrets = []postern.OldSecret{
		{Secret: w.box.Seal([]byte(oldSecret), e.ID.SecretPlace()), Until: now().Add(time.Hour)},
		{Secret: w.box.Seal([]byte(other), e.ID.SecretPlace()), Until: now().Add(-time.Hour)},
	}
	s, err := newSigner(w.box, e)
	w.must(err)
	said := func(signature string) string {
		return `{"challenge":"` + challenge + `","signature":"` + signature + `"}`
	}
	for _, tt := range []struct{ name, answer, echo, signed string }{
		{"signed", said(signatureOf(testSecret, challenge)), "", ""},
		{"with the old secret", said(signatureOf(oldSecret, challenge)), "", ""},
		{"with an ended secret", said(signatureOf(other, challenge)), "signature", "signature"},
		{"of something else", said(signatureOf(testSecret, challenge+".")), "signature", "signature"},
		{"empty", said(""), "signature", "signature"},
		{"echo", `{"challenge":"` + challenge + `"}`, "", "signature"},
		{"null", `{"challenge":"` + challenge + `","signature":null}`, "", "signature"},
		{"bare", challenge, "", "signature"},
		{"number", `{"challenge":"` + challenge + `","signature":1}`, "challenge", "challenge"},
		{"signature alone", `{"signature":"` + signatureOf(testSecret, challenge) + `"}`, "challenge", "challenge"},
	} {
		if got := s.proof([]byte(tt.answer), challenge, false, postern.TimeOf(time.Now())); got != tt.echo {
			t.Errorf("%s: echo gets %q, want %q", tt.name, got, tt.echo)
		}
		if got := s.proof([]byte(tt.answer), challenge, true, postern.TimeOf(time.Now())); got != tt.signed {
			t.Errorf("%s: signed gets %q, want %q", tt.name, got, tt.signed)
		}
	}
}

const oldSecret = "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

// signatureOf signs a challenge as the documentation says.
func signatureOf(secret, challenge string) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(challenge))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestEchoDoesNotCompleteASignedHandshake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var knows atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, g got) {
		answer := map[string]string{"challenge": g.event.Challenge}
		if knows.Load() {
			answer["signature"] = signatureOf(testSecret, g.event.Challenge)
		}
		json.NewEncoder(w).Encode(answer)
	})
	e := w.endpoint(r.URL, func(e *postern.Endpoint) { e.Handshake = postern.HandshakeSigned })
	d := w.dispatcher(Options{})
	w.must(d.handshake(t.Context(), e))
	e, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID)
	if err != nil || e.Status != postern.EndpointPending || e.StatusReason != "signature" {
		t.Fatalf("after an echo the endpoint is %s (%q, %v)", e.Status, e.StatusReason, err)
	}
	knows.Store(true)
	w.must(d.handshake(t.Context(), e))
	w.awaitStatus(e, postern.EndpointActive)
}

func TestHandshakeIsTriedFiveTimes(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, respond(http.StatusBadGateway))
	e := w.endpoint(r.URL, nil)
	d := w.dispatcher(Options{})
	challenges := map[string]bool{}
	for n, gap := range []time.Duration{3 * time.Second, 7 * time.Second, 50 * time.Second, 9 * time.Minute, 0} {
		w.must(d.handshake(t.Context(), e))
		challenges[r.next().event.Challenge] = true
		before := e
		e, _ = w.db.Endpoints.ForDelivery(t.Context(), e.ID)
		want := postern.EndpointPending
		if gap == 0 {
			want = postern.EndpointFailed
		}
		if e.Status != want || e.Attempts != n+1 || e.StatusReason != "status" || gap > 0 &&
			e.DueAt < before.CreatedAt.Add(gap) {
			t.Errorf("after try %d: %+v", n+1, e)
		}
	}
	if len(challenges) != postern.HandshakeTries {
		t.Errorf("%d challenges in %d tries, want a fresh one for each", len(challenges), postern.HandshakeTries)
	}
	log := w.deliveries(e)
	if len(log) != postern.HandshakeTries {
		t.Fatalf("%d tries are in the delivery log, want %d", len(log), postern.HandshakeTries)
	}
	for i, l := range log {
		if l.Type != postern.WebhookVerification || l.Attempts != i+1 ||
			l.Status != postern.DeliveryExhausted || l.LastStatus != http.StatusBadGateway || l.LastReason != "status" {
			t.Errorf("the log says %+v of try %d", l, i+1)
		}
	}
}

func TestDeliveryLogHasWhatAHandshakePosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ got) { io.WriteString(w, "welcome\x00") })
	e := w.endpoint(r.URL, nil)
	w.must(w.dispatcher(Options{}).handshake(t.Context(), e))
	g := r.next()
	log := w.deliveries(e)
	if len(log) != 1 || string(log[0].EventID) != g.event.EventID || log[0].LastReason != wrongChallenge {
		t.Fatalf("the log is %+v", log)
	}
	if _, body, err := w.db.Deliveries.Get(t.Context(), e.WorkspaceID, log[0].ID); err != nil || string(body) != g.body {
		t.Errorf("the log says that %q was posted (%v), want %q", body, err, g.body)
	}
	list, err := w.db.Deliveries.Attempts(t.Context(), e.WorkspaceID, log[0].ID)
	if err != nil || len(list) != 1 || list[0].Answer != "welcome\uFFFD" || list[0].Number != 1 {
		t.Errorf("the attempts are %+v (%v)", list, err)
	}
}

func TestEndpointThatAnswersALaterTryIsActivated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fail := true
	r := newReceiver(t, func(w http.ResponseWriter, g got) {
		if fail {
			fail = false
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answerJSON(w, g)
	})
	e := w.endpoint(r.URL, nil)
	d := w.dispatcher(Options{})
	w.must(d.handshake(t.Context(), e))
	e, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID)
	w.must(err)
	w.must(d.handshake(t.Context(), e))
	if got := w.awaitStatus(e, postern.EndpointActive); got.StatusReason != "" {
		t.Errorf("endpoint = %+v", got)
	}
}

func TestPendingEndpointCatchesUpInOrderOnceItAnswers(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, answerJSON)
	w.receive("before its time")
	e := w.endpoint(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.receive(numbered(40)...)
	w.start(w.dispatcher(Options{}))
	if g := r.next(); g.event.Type != "webhook.verification" {
		t.Fatalf("first POST is %s", g.event.Type)
	}
	w.awaitStatus(e, postern.EndpointActive)
	w.receive("after")
	for i, want := range append(numbered(40), "after") {
		if g := r.next(); g.text() != want {
			t.Fatalf("POST %d is %q, want %q", i, g.text(), want)
		}
	}
}

func TestEndpointDeletedDuringItsHandshakeStaysDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var e postern.Endpoint
	r := newReceiver(t, func(rw http.ResponseWriter, g got) {
		if err := w.db.Endpoints.Delete(t.Context(), e.WorkspaceID, e.ID); err != nil {
			t.Error(err)
		}
		answerJSON(rw, g)
	})
	e = w.endpoint(r.URL, nil)
	w.must(w.dispatcher(Options{}).handshake(t.Context(), e))
	if _, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID); postern.ReasonOf(err) != postern.NotFound {
		t.Errorf("the endpoint is back: %v", err)
	}
}
