package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

func newWebhookSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails (Go 1.24)
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

// validWebhookSecret accepts what the Standard Webhooks specification allows.
func validWebhookSecret(s string) bool {
	text, ok := strings.CutPrefix(s, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(text)
	strict := base64.StdEncoding.EncodeToString(raw) == text // some decoders skip line breaks
	return ok && err == nil && strict && len(raw) >= 24 && len(raw) <= 64
}

// validSignatures accepts v1 alone or with v1a: every consumer can verify v1.
func validSignatures(list []string) bool {
	return slices.Equal(list, []string{postern.SignatureHMAC}) ||
		slices.Equal(list, []string{postern.SignatureHMAC, postern.SignatureEd25519})
}

// newSigningKey generates an ed25519 key if the signatures need one.
func newSigningKey(signatures []string) ed25519.PrivateKey {
	if !slices.Contains(signatures, postern.SignatureEd25519) {
		return nil
	}
	_, key, _ := ed25519.GenerateKey(rand.Reader) // never fails (Go 1.24)
	return key
}

// sealKeys gives an endpoint a secret and a signing key, which may be nil.
func (g Webhooks) sealKeys(e *postern.Endpoint, secret string, key ed25519.PrivateKey) {
	e.Secret, e.SecretLastFour = g.box.Seal([]byte(secret), e.ID.SecretPlace()), secret[len(secret)-4:]
	g.sealSigningKey(e, key)
}

func (g Webhooks) sealSigningKey(e *postern.Endpoint, key ed25519.PrivateKey) {
	e.SigningKey, e.PublicKey = nil, ""
	if key == nil {
		return
	}
	e.SigningKey = g.box.Seal(key.Seed(), e.ID.SigningKeyPlace())
	public := key.Public().(ed25519.PublicKey) //nolint:errcheck,forcetypeassert // of an ed25519 key
	e.PublicKey = postern.Maybe("whpk_" + base64.StdEncoding.EncodeToString(public))
}

// signWith changes the signatures of an endpoint. Without v1a its old keys stop signing
// too.
func (g Webhooks) signWith(e *postern.Endpoint, signatures []string) {
	e.Signatures = signatures
	switch wants := slices.Contains(signatures, postern.SignatureEd25519); {
	case wants && len(e.SigningKey) == 0:
		g.sealSigningKey(e, newSigningKey(signatures))
	case !wants:
		g.sealSigningKey(e, nil)
		for i := range e.OldSecrets {
			e.OldSecrets[i].SigningKey = nil
		}
	}
}

// NewSecret describes a rotation of an endpoint's secret.
type NewSecret struct {
	Secret  string         // "" generates one
	Overlap *time.Duration // how long the old secret signs too; nil means a day, at most 30 days
}

// RotateSecret gives an endpoint a new secret, and a new ed25519 key if it uses one. The
// old ones also sign until the overlap ends; those that are older still do not sign longer
// than that.
func (g Webhooks) RotateSecret(
	ctx context.Context, c access.Caller, id postern.EndpointID, in NewSecret, idem *Idempotency,
) (Created[EndpointWithSecret], error) {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return Created[EndpointWithSecret]{}, err
	}
	if err := in.check(); err != nil {
		return Created[EndpointWithSecret]{}, err
	}
	e, err := g.get(ctx, c, id)
	if err != nil {
		return Created[EndpointWithSecret]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (EndpointWithSecret, func(*store.Once) error, error) {
		now, until := g.time(), g.time().Add(*in.Overlap)
		shown := e
		g.sealKeys(&shown, in.Secret, newSigningKey(e.Signatures))
		return EndpointWithSecret{shown, in.Secret}, func(once *store.Once) error {
			_, err := g.db.Endpoints.Change(ctx, c.Workspace(), id, once, func(e *postern.Endpoint) error {
				if !sees(c, *e) {
					return notThisEndpoint()
				}
				if !slices.Equal(e.Signatures, shown.Signatures) {
					return postern.Errorf(postern.Unavailable,
						"the signatures of the webhook were just changed; try again")
				}
				retire(e, now, until)
				e.Secret, e.SecretLastFour = shown.Secret, shown.SecretLastFour
				e.SigningKey, e.PublicKey = shown.SigningKey, shown.PublicKey
				return nil
			}, didByAny(c, now, "webhook.secret-rotated", string(id), e.URL)...)
			return err
		}, nil
	})
}

// RevealSecret returns an endpoint's secret to a member who may rotate it and has entered
// the password again. An API key never gets it.
func (g Webhooks) RevealSecret(
	ctx context.Context, c access.Caller, id postern.EndpointID, password string,
) (EndpointWithSecret, error) {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return EndpointWithSecret{}, err
	}
	if c.Member.UserID == "" {
		return EndpointWithSecret{}, postern.Errorf(
			postern.MissingScope,
			"secrets are shown only to members in the dashboard; rotate the secret to get a new one",
		)
	}
	e, err := g.get(ctx, c, id)
	if err != nil {
		return EndpointWithSecret{}, err
	}
	if err := g.confirm(ctx, c, password); err != nil {
		return EndpointWithSecret{}, err
	}
	secret, err := g.box.Open(e.Secret, id.SecretPlace())
	if err != nil {
		return EndpointWithSecret{}, fmt.Errorf("open the secret of an endpoint: %w", err)
	}
	for _, act := range did(c, g.time(), "webhook.secret-revealed", string(id), e.URL) {
		if err := g.db.Audit.Record(ctx, act); err != nil {
			return EndpointWithSecret{}, err
		}
	}
	return EndpointWithSecret{e, string(secret)}, nil
}

// check fills in defaults and checks the rest.
func (in *NewSecret) check() error {
	day := defaultOverlap
	if in.Overlap == nil {
		in.Overlap = &day
	}
	if in.Secret == "" {
		in.Secret = newWebhookSecret()
	}
	switch {
	case !validWebhookSecret(in.Secret):
		return postern.Invalid("/secret", "write a secret as whsec_ and the base64 encoding of 24 to 64 bytes")
	case *in.Overlap < 0 || *in.Overlap > MaxOverlap:
		return postern.Invalid("/overlapSeconds", "from 0 to %d", int(MaxOverlap.Seconds()))
	}
	return nil
}

// retire moves an endpoint's keys to its old keys. None of these signs after until.
func retire(e *postern.Endpoint, now, until postern.Time) {
	old := append([]postern.OldSecret{{Secret: e.Secret, SigningKey: e.SigningKey, Until: until}}, e.OldSecrets...)
	for i := range old {
		old[i].Until = min(old[i].Until, until)
	}
	old = slices.DeleteFunc(old, func(o postern.OldSecret) bool { return o.Until <= now })
	e.OldSecrets = old[:min(len(old), maxOldSecrets)]
}
