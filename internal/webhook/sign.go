package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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

// signer signs the deliveries to one endpoint by the Standard Webhooks specification
// (standardwebhooks.com, signature schemes v1 and v1a). It is safe for concurrent
// use.
type signer struct {
	keys []signingKey      // newest first
	own  map[string]string // the endpoint's own headers
}

// signingKey is a secret of an endpoint, with its ed25519 key if there is one. It
// pools the state of the HMAC, because setting it up costs more than a short body.
type signingKey struct {
	macs    *sync.Pool         // of hash.Hash
	private ed25519.PrivateKey // nil without v1a
	until   postern.Time       // it no longer signs from this time on
}

// secretPrefix is the start of a secret. The secret's bytes follow in base64.
const secretPrefix = "whsec_"

// newSigner opens the current secret of an endpoint and those that were rotated, and its
// own headers.
func newSigner(box *seal.Box, e postern.Endpoint) (s signer, err error) {
	if s.own, err = openHeaders(box, e); err != nil {
		return signer{}, err
	}
	all := append([]postern.OldSecret{{Secret: e.Secret, SigningKey: e.SigningKey, Until: never}}, e.OldSecrets...)
	s.keys = make([]signingKey, len(all))
	for i, o := range all {
		if s.keys[i], err = openKey(box, e.ID, o); err != nil {
			return signer{}, err
		}
	}
	return s, nil
}

func openHeaders(box *seal.Box, e postern.Endpoint) (headers map[string]string, err error) {
	if len(e.HeaderValues) == 0 {
		return nil, nil
	}
	text, err := box.Open(e.HeaderValues, e.ID.HeadersPlace())
	if err != nil {
		return nil, fmt.Errorf("open the headers: %w", err)
	}
	if json.Unmarshal(text, &headers) != nil {
		return nil, errors.New("the headers cannot be read") // the cause would show a part of them
	}
	return headers, nil
}

func openKey(box *seal.Box, id postern.EndpointID, o postern.OldSecret) (k signingKey, err error) {
	secret, err := box.Open(o.Secret, id.SecretPlace())
	if err != nil {
		return k, fmt.Errorf("open the signing secret: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), secretPrefix))
	if err != nil {
		return k, errors.New("the signing secret cannot be read") // the cause would show a part of the secret
	}
	k = signingKey{macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}, until: o.Until}
	if len(o.SigningKey) == 0 {
		return k, nil
	}
	seed, err := box.Open(o.SigningKey, id.SigningKeyPlace())
	if err != nil {
		return k, fmt.Errorf("open the signing key: %w", err)
	}
	if len(seed) != ed25519.SeedSize {
		return k, errors.New("the signing key cannot be read")
	}
	k.private = ed25519.NewKeyFromSeed(seed)
	return k, nil
}

// sign returns the signatures of all keys that are still valid, the newest first and
// separated by spaces.
func (s signer) sign(id string, now time.Time, body []byte) string {
	head := id + "." + strconv.FormatInt(now.Unix(), 10) + "."
	list := make([]string, 0, 2)
	for _, k := range s.keys {
		if postern.TimeOf(now) >= k.until {
			continue
		}
		list = append(list, k.hmac(head, body))
		if k.private != nil {
			list = append(list, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(k.private,
				append([]byte(head), body...))))
		}
	}
	return strings.Join(list, " ")
}

// signed reports whether a signature of the text, as in the response to a handshake, was made
// with one of the secrets that are still valid.
func (s signer) signed(text, signature string, now time.Time) bool {
	for _, k := range s.keys {
		if postern.TimeOf(now) < k.until && hmac.Equal([]byte(k.hmac("", []byte(text))), []byte(signature)) {
			return true
		}
	}
	return false
}

func (k signingKey) hmac(head string, body []byte) string {
	mac := k.macs.Get().(hash.Hash) //nolint:errcheck,forcetypeassert // the pool holds only this type
	defer k.macs.Put(mac)
	mac.Reset()
	_, _ = io.WriteString(mac, head) // a hash never fails
	_, _ = mac.Write(body)
	var sum [sha256.Size]byte
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(sum[:0]))
}

// letter is the content of a POST before it is signed.
type letter struct {
	id     postern.EventID
	number int // number of the attempt, from 1
	body   []byte
}

// header returns the header of a signed letter. The endpoint's own headers are set
// first, so that they cannot replace those of Postern.
func (s signer) header(l letter, agent string, now time.Time) http.Header {
	v := []string{
		s.sign(string(l.id), now, l.body), agent, string(l.id), strconv.FormatInt(now.Unix(), 10),
		strconv.Itoa(l.number),
	}
	h := make(http.Header, len(s.own)+headerRoom)
	for name, value := range s.own {
		h.Set(name, value)
	}
	h["Content-Type"] = jsonType
	h["Webhook-Signature"], h["X-Service-Signature"] = v[0:1:1], v[0:1:1]
	h["User-Agent"] = v[1:2:2]
	h["Webhook-Id"] = v[2:3:3]
	h["Webhook-Timestamp"] = v[3:4:4]
	h["Webhook-Attempt"] = v[4:5:5]
	return h
}

const headerRoom = 10 // enough for the fields that header sets and those that the client adds

var jsonType = []string{"application/json"} //nolint:gochecknoglobals // shared by all headers, never changed
