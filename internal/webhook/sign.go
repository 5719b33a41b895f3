package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"postern/internal/postern"
	"postern/internal/seal"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// signer signs for one endpoint.
type signer struct {
	key *standardwebhooks.Webhook
}

func newSigner(box *seal.Box, e postern.Endpoint) (signer, error) {
	secret, err := box.Open(e.Secret, e.ID.SecretPlace())
	if err != nil {
		return signer{}, fmt.Errorf("open the signing secret: %w", err)
	}
	key, err := standardwebhooks.NewWebhook(string(secret))
	if err != nil {
		return signer{}, fmt.Errorf("read the signing secret: %w", err)
	}
	return signer{key}, nil
}

// letter is one POST before it is signed.
type letter struct {
	id     postern.EventID
	number int // of the attempt
	body   []byte
}

// header signs a letter. The endpoint's own headers come first: none replaces
// one of ours.
func (s signer) header(e postern.Endpoint, l letter, agent string, now time.Time) (http.Header, error) {
	signature, err := s.key.Sign(string(l.id), now, l.body)
	if err != nil {
		return nil, fmt.Errorf("sign the delivery: %w", err)
	}
	h := make(http.Header, len(e.Headers)+8)
	for name, value := range e.Headers {
		h.Set(name, value)
	}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", agent)
	h.Set("Webhook-Id", string(l.id))
	h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("Webhook-Signature", signature)
	h.Set("X-Service-Signature", signature)
	h.Set("Webhook-Attempt", strconv.Itoa(l.number))
	return h, nil
}
