package vendorsim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// PasskeyDomain is the domain to which the passkeys of the network belong.
	PasskeyDomain = "whatsapp.com"
	// PasskeyOrigin is the page on which browsers are asked for them.
	PasskeyOrigin = "https://web.whatsapp.com"
)

// ErrNoPasskey is returned for a number that has no passkey, and for a request that no authenticator
// would answer.
var ErrNoPasskey = errors.New("no passkey answers this request")

// Passkey is the passkey of a number, together with the authenticator that keeps it: it answers
// requests as a browser does on the network's own page.
type Passkey struct {
	ID         []byte // of the credential
	UserHandle []byte
	key        *ecdsa.PrivateKey
}

// PasskeyMistake is what is wrong with an answer; "" is nothing.
type PasskeyMistake string

// The mistakes of an answer.
const (
	MistakeSignature  PasskeyMistake = "signature"  // it does not fit the passkey
	MistakeOrigin     PasskeyMistake = "origin"     // another page asked for it
	MistakeChallenge  PasskeyMistake = "challenge"  // it answers another request
	MistakeDomain     PasskeyMistake = "domain"     // the passkey belongs to another domain
	MistakeUnverified PasskeyMistake = "unverified" // the authenticator did not verify its owner
)

// newPasskey makes a passkey with a key of its own.
func newPasskey() (*Passkey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &Passkey{ID: make([]byte, 16), UserHandle: make([]byte, 16), key: key}
	_, _ = rand.Read(p.ID) // never fails
	_, _ = rand.Read(p.UserHandle)
	return p, nil
}

// PrivateKey returns the key in the form of PKCS #8, for the virtual authenticator of a browser.
func (p *Passkey) PrivateKey() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(p.key) }

// passkeyRequest is what the vendor asks an authenticator for.
type passkeyRequest struct {
	Challenge        string         `json:"challenge"`
	Timeout          int            `json:"timeout"` // milliseconds
	Domain           string         `json:"rpId"`
	AllowCredentials []any          `json:"allowCredentials"`
	UserVerification string         `json:"userVerification"`
	Extensions       map[string]any `json:"extensions"`
}

// clientData is what a browser adds to a request.
type clientData struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	Origin    string `json:"origin"`
	Cross     bool   `json:"crossOrigin"`
}

// assertion is the answer of an authenticator. Its parts are in base64 for URLs, without padding.
type assertion struct {
	ID         string            `json:"id"`
	RawID      string            `json:"rawId"`
	Type       string            `json:"type"`
	Attachment string            `json:"authenticatorAttachment,omitempty"`
	Extensions map[string]any    `json:"clientExtensionResults,omitempty"`
	Response   assertionResponse `json:"response"`
}

type assertionResponse struct {
	ClientData        string  `json:"clientDataJSON"`
	AuthenticatorData string  `json:"authenticatorData"`
	Signature         string  `json:"signature"`
	UserHandle        *string `json:"userHandle"`
}

const webauthnGet = "webauthn.get"

// The flags of an authenticator.
const (
	flagPresent    = 1 << 0
	flagVerified   = 1 << 2
	flagBackupable = 1 << 3
	flagBackedUp   = 1 << 4
)

var base64URL = base64.RawURLEncoding

// Answer answers a request, which is the JSON of WebAuthn's PublicKeyCredentialRequestOptions, on
// the network's page. It returns the JSON of the credential.
func (p *Passkey) Answer(request []byte, mistake PasskeyMistake) ([]byte, error) {
	var r passkeyRequest
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPasskey, err)
	}
	if r.Domain != PasskeyDomain {
		return nil, fmt.Errorf("%w: it is for another domain", ErrNoPasskey)
	}
	data := clientData{Type: webauthnGet, Challenge: r.Challenge, Origin: PasskeyOrigin}
	flags := byte(flagPresent | flagVerified | flagBackupable | flagBackedUp)
	switch mistake {
	case MistakeOrigin:
		data.Origin = "https://example.com"
	case MistakeChallenge:
		data.Challenge = base64URL.EncodeToString(make([]byte, 32))
	case MistakeDomain:
		r.Domain = "example.com"
	case MistakeUnverified:
		flags &^= flagVerified
	case MistakeSignature, "":
	default:
		return nil, fmt.Errorf("%w: there is no mistake %q", ErrNoPasskey, mistake)
	}
	return p.sign(data, r.Domain, flags, mistake == MistakeSignature)
}

// sign makes the answer of an authenticator.
func (p *Passkey) sign(data clientData, domain string, flags byte, wrong bool) ([]byte, error) {
	client, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(domain))
	auth := append(hash[:], flags, 0, 0, 0, 0) // no counter, like passkeys that are synchronized
	digest := signedDigest(auth, client)
	if wrong {
		digest[0] ^= 0xFF
	}
	sig, err := ecdsa.SignASN1(rand.Reader, p.key, digest[:])
	if err != nil {
		return nil, err
	}
	user := base64URL.EncodeToString(p.UserHandle)
	id := base64URL.EncodeToString(p.ID)
	return json.Marshal(assertion{
		ID: id, RawID: id, Type: "public-key", Attachment: "platform", Extensions: map[string]any{},
		Response: assertionResponse{
			ClientData: base64URL.EncodeToString(client), AuthenticatorData: base64URL.EncodeToString(auth),
			Signature: base64URL.EncodeToString(sig), UserHandle: &user,
		},
	})
}

// signedDigest is the hash of what an authenticator signs.
func signedDigest(auth, client []byte) [32]byte {
	hash := sha256.Sum256(client)
	return sha256.Sum256(append(auth[:len(auth):len(auth)], hash[:]...))
}

// check verifies the answer to a request with a challenge, and says what is wrong.
func (p *Passkey) check(challenge string, id, raw []byte) error {
	var a assertion
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("malformed: %w", err)
	}
	parts := [3][]byte{}
	for i, text := range []string{a.Response.ClientData, a.Response.AuthenticatorData, a.Response.Signature} {
		b, err := base64URL.DecodeString(text)
		if err != nil {
			return fmt.Errorf("malformed: %w", err)
		}
		parts[i] = b
	}
	client, auth, sig := parts[0], parts[1], parts[2]
	if string(id) != string(p.ID) || a.RawID != base64URL.EncodeToString(p.ID) || a.ID != a.RawID {
		return errors.New("another passkey")
	}
	if err := checkClient(client, challenge); err != nil {
		return err
	}
	if err := checkAuthenticator(auth); err != nil {
		return err
	}
	if digest := signedDigest(auth, client); !ecdsa.VerifyASN1(&p.key.PublicKey, digest[:], sig) {
		return errors.New("wrong signature")
	}
	return nil
}

// checkClient checks what the browser says.
func checkClient(raw []byte, challenge string) error {
	var data clientData
	if err := json.Unmarshal(raw, &data); err != nil {
		return fmt.Errorf("malformed: %w", err)
	}
	switch {
	case data.Type != webauthnGet:
		return errors.New("not an answer to a request")
	case data.Challenge != challenge:
		return errors.New("wrong challenge")
	case data.Origin != PasskeyOrigin:
		return errors.New("wrong origin")
	}
	return nil
}

// checkAuthenticator checks what the authenticator says.
func checkAuthenticator(auth []byte) error {
	hash := sha256.Sum256([]byte(PasskeyDomain))
	switch {
	case len(auth) < 37:
		return errors.New("malformed")
	case string(auth[:32]) != string(hash[:]):
		return errors.New("wrong domain")
	case auth[32]&flagPresent == 0 || auth[32]&flagVerified == 0:
		return errors.New("the owner was not verified")
	}
	return nil
}
