package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"postern/internal/postern"
	"postern/internal/store"
)

// Reasons of a handshake that was answered, but not rightly.
const (
	wrongChallenge = "challenge" // the answer does not contain the challenge
	wrongSignature = "signature" // its signature is wrong, or missing although the endpoint requires it
)

// greet starts the handshakes that are due, and sets the timer for the others.
func (r *run) greet(ctx, work context.Context) {
	if !r.leases.Leads() {
		return // the first server makes them all
	}
	pending, err := r.db.Endpoints.PendingHandshakes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot read the pending handshakes", "error", err)
		}
		r.greetAt.Reset(rest)
		return
	}
	at, next := r.now(), never
	for _, e := range pending {
		if e.DueAt > at {
			next = min(next, e.DueAt)
		} else if _, busy := r.greeting[e.ID]; !busy && len(r.greeting) < maxHandshakes {
			r.startHandshake(ctx, work, e)
		} // otherwise greet runs again when a handshake ends
	}
	r.greetAt.Stop()
	if next != never {
		r.greetAt.Reset(r.until(next))
	}
}

func (r *run) startHandshake(ctx, work context.Context, e postern.Endpoint) {
	r.greeting[e.ID] = struct{}{}
	go func() {
		if err := r.handshake(work, e); err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "cannot make the webhook handshake", "endpoint", e.ID, "error", err)
			_ = postern.Sleep(ctx, rest)
		}
		r.greeted <- e.ID
	}()
}

// handshake makes one handshake and records its outcome. For an active endpoint it
// verifies the pending URL.
func (d *Dispatcher) handshake(ctx context.Context, e postern.Endpoint) error {
	if e.Status == postern.EndpointActive {
		e.URL = string(e.PendingURL)
	}
	p, err := d.challenge(ctx, e)
	if err != nil {
		return err
	}
	d.metrics.handshakes.WithLabelValues(outcome(p.Reason)).Inc()
	d.log.InfoContext(ctx, "webhook handshake", "workspace", e.WorkspaceID, "endpoint", e.ID,
		"attempt", p.Number, "status", p.HTTPStatus, "reason", p.Reason, "duration_ms", int64(p.Ended-p.At))
	if p.Reason == "" {
		err = d.db.Endpoints.Verified(ctx, e.ID, e.URL, p)
	} else {
		err = d.db.Endpoints.FinishHandshake(ctx, failedHandshake(e, p))
	}
	if err != nil {
		return fmt.Errorf("record the handshake: %w", err)
	}
	return nil
}

// failedHandshake returns the record of a failed handshake. Its DueAt is the time of
// the next one, or 0 after the last.
func failedHandshake(e postern.Endpoint, p store.HandshakePost) store.FinishHandshake {
	o := store.FinishHandshake{EndpointID: e.ID, URL: e.URL, Attempts: p.Number, Post: p}
	if gaps := handshakeGaps(); e.Attempts < len(gaps) {
		o.DueAt = planned(e, p.At).Add(gaps[e.Attempts])
	}
	return o
}

// planned is the time from which the next handshake counts: when this one was due, so that
// slow answers do not put off the others, or when it began if that was much later, as after
// a restart of the server.
func planned(e postern.Endpoint, began postern.Time) postern.Time {
	if began > e.DueAt.Add(2*handshakeTimeout) {
		return began
	}
	return e.DueAt
}

// verification is the body of a handshake's POST.
type verification struct {
	EventID   postern.EventID   `json:"eventId"`
	Type      postern.EventType `json:"type"`
	Timestamp postern.Time      `json:"timestamp"`
	DeviceID  postern.DeviceID  `json:"deviceId"`
	Challenge string            `json:"challenge"`
}

// challenge posts a new challenge and checks the answer. An error means that the handshake
// could not be made or was canceled, and says nothing about the endpoint.
func (d *Dispatcher) challenge(ctx context.Context, e postern.Endpoint) (p store.HandshakePost, err error) {
	s, err := newSigner(d.box, e)
	if err != nil {
		return p, err
	}
	var secret [challengeSize]byte
	rand.Read(secret[:])
	v := verification{
		EventID: postern.NewEventID(), Type: postern.WebhookVerification, Timestamp: d.now(),
		Challenge: base64.RawURLEncoding.EncodeToString(secret[:]),
	}
	body, err := json.Marshal(v)
	if err != nil {
		return p, fmt.Errorf("write the handshake: %w", err)
	}
	p = store.HandshakePost{EventID: v.EventID, Body: body, Number: e.Attempts + 1, At: v.Timestamp}
	bounded, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	a, err := d.send(bounded, &e, &s, letter{p.EventID, p.Number, body})
	if err != nil && ctx.Err() != nil {
		return p, ctx.Err()
	}
	p.Ended, p.HTTPStatus, p.Answer = d.now(), a.Status, answerText(a.Body)
	switch {
	case err != nil:
		p.Reason = string(reasonOf(err))
	case a.Truncated:
		p.Reason = wrongChallenge
	default:
		p.Reason = s.proof(a.Body, v.Challenge, e.Handshake == postern.HandshakeSigned, p.Ended)
	}
	return p, nil
}

// proof checks an answer: it must contain the challenge, as plain text or as the member
// "challenge" of a JSON object. The object may contain a signature of the challenge, and must
// do so if signed is true. proof returns "" or the reason why it does not accept an answer of that time.
func (s signer) proof(answer []byte, challenge string, signed bool, at postern.Time) (reason string) {
	said, signature := readAnswer(answer)
	switch {
	case subtle.ConstantTimeCompare(said, []byte(challenge)) != 1:
		return wrongChallenge
	case signature == nil && !signed:
		return ""
	case signature == nil || !s.signed(challenge, *signature, at.Std()):
		return wrongSignature
	}
	return ""
}

// readAnswer reads the challenge and the signature, if there is one, from an answer. It
// refuses an echo of the whole body, which does not prove that the host knows webhooks.
func readAnswer(answer []byte) (challenge []byte, signature *string) {
	text := bytes.TrimSpace(answer)
	if !bytes.HasPrefix(text, []byte("{")) {
		return text, nil
	}
	var a struct {
		Challenge string  `json:"challenge"`
		Signature *string `json:"signature"`
		EventID   *string `json:"eventId"`
	}
	if json.Unmarshal(text, &a) != nil || a.EventID != nil {
		return nil, nil
	}
	return []byte(a.Challenge), a.Signature
}
