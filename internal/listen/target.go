package listen

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"postern/internal/egress"
	"postern/internal/seal"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secretPrefix = "whsec_"

// target is the receiver on the developer's machine.
type target struct {
	url, agent string
	secret     seal.Secret
	signer     *standardwebhooks.Webhook
	http       *egress.Client
}

func newTarget(o Options) (*target, error) {
	if o.Secret == "" {
		o.Secret = newSecret()
	}
	signer, err := standardwebhooks.NewWebhook(o.Secret.Reveal())
	if err != nil {
		return nil, fmt.Errorf("prepare the signature: %w", err)
	}
	return &target{
		o.ForwardTo, "Postern/" + o.Version, o.Secret, signer, egress.NewClient(egress.Options{AllowPrivate: true}),
	}, nil
}

func newSecret() seal.Secret {
	var b [32]byte
	rand.Read(b[:]) // never fails (Go 1.24)
	return seal.Secret(secretPrefix + base64.StdEncoding.EncodeToString(b[:]))
}

// outcome is the result of a POST.
type outcome struct {
	status int // 0: there was no response
	took   time.Duration
	err    error // nil: the receiver accepted the event
}

func (o outcome) taken() bool { return o.err == nil }

// post posts an event as a webhook endpoint would receive it at the first attempt.
func (t *target) post(ctx context.Context, m message) outcome {
	began := time.Now()
	header, err := t.header(m, began)
	if err != nil {
		return outcome{err: err}
	}
	answer, err := t.http.Post(ctx, "", t.url, header, m.data)
	return outcome{answer.Status, time.Since(began), err}
}

// header returns the headers that internal/webhook sends; a test compares the two.
func (t *target) header(m message, now time.Time) (http.Header, error) {
	signature, err := t.signer.Sign(m.id, now, m.data)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", t.agent)
	h.Set("Webhook-Id", m.id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("Webhook-Signature", signature)
	h.Set("X-Service-Signature", signature)
	h.Set("Webhook-Attempt", "1")
	return h, nil
}
