package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/seal"
)

// signer signs for one endpoint, as the Standard Webhooks specification says
// (standardwebhooks.com, signature scheme v1). It is used by many attempts at
// once and keeps the state of the HMAC, which costs more than a short body.
type signer struct {
	macs *sync.Pool // of hash.Hash
}

// secretPrefix comes before the base64 of a secret's bytes.
const secretPrefix = "whsec_"

func newSigner(box *seal.Box, e postern.Endpoint) (signer, error) {
	secret, err := box.Open(e.Secret, e.ID.SecretPlace())
	if err != nil {
		return signer{}, fmt.Errorf("open the signing secret: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), secretPrefix))
	if err != nil {
		return signer{}, errors.New("the signing secret cannot be read") // the cause would show a part of it
	}
	return signer{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}, nil
}

func (s signer) sign(id, at string, body []byte) string {
	mac := s.macs.Get().(hash.Hash) //nolint:errcheck,forcetypeassert // only these are put in
	defer s.macs.Put(mac)
	mac.Reset()
	_, _ = io.WriteString(mac, id+"."+at+".") // a hash never fails
	_, _ = mac.Write(body)
	var sum [sha256.Size]byte
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(sum[:0]))
}

// letter is one POST before it is signed.
type letter struct {
	id     postern.EventID
	number int // of the attempt
	body   []byte
}

// header signs a letter. The endpoint's own headers come first: none replaces
// one of ours.
func (s signer) header(e postern.Endpoint, l letter, agent string, now time.Time) http.Header {
	at := strconv.FormatInt(now.Unix(), 10)
	signature := []string{s.sign(string(l.id), at, l.body)}
	h := make(http.Header, len(e.Headers)+8)
	for name, value := range e.Headers {
		h.Set(name, value)
	}
	h["Content-Type"] = jsonType
	h["User-Agent"] = []string{agent}
	h["Webhook-Id"] = []string{string(l.id)}
	h["Webhook-Timestamp"] = []string{at}
	h["Webhook-Signature"], h["X-Service-Signature"] = signature, signature
	h["Webhook-Attempt"] = []string{strconv.Itoa(l.number)}
	return h
}

var jsonType = []string{"application/json"} //nolint:gochecknoglobals // made once, never changed
