package factor

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// Passkeys runs the ceremonies of WebAuthn for one server.
type Passkeys struct{ party *webauthn.WebAuthn }

// NewPasskeys makes the ceremonies of a server at an address. Browsers have
// passkeys only for names, not for bare IP addresses.
func NewPasskeys(address string) (*Passkeys, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return nil, errors.New("passkeys need a server that is reached by a name, and not by an IP address")
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: "Postern", RPOrigins: []string{u.Scheme + "://" + u.Host},
		AttestationPreference:  protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementDiscouraged, UserVerification: protocol.VerificationPreferred},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys for %s: %w", address, err)
	}
	return &Passkeys{party}, nil
}

// Person is whose passkeys they are.
type Person struct {
	ID       string
	Email    string
	Passkeys [][]byte // as FinishAdd and FinishUse gave them
}

// person is one as the library asks for it.
type person struct {
	Person
	keys []webauthn.Credential
}

func (p person) WebAuthnID() []byte                         { return []byte(p.ID) }
func (p person) WebAuthnName() string                       { return p.Email }
func (p person) WebAuthnDisplayName() string                { return p.Email }
func (p person) WebAuthnCredentials() []webauthn.Credential { return p.keys }

func load(in Person) (person, error) {
	p := person{Person: in}
	for _, text := range in.Passkeys {
		var k webauthn.Credential
		if err := json.Unmarshal(text, &k); err != nil {
			return p, fmt.Errorf("read a passkey: %w", err)
		}
		p.keys = append(p.keys, k)
	}
	return p, nil
}

// Ceremony is one that has begun: what the browser is asked, and what the server
// must know when the answer comes. Only the first may leave it.
type Ceremony struct {
	Options []byte
	State   []byte
}

func begun(options any, state *webauthn.SessionData, err error) (c Ceremony, _ error) {
	if err != nil {
		return c, fmt.Errorf("begin with a passkey: %w", err)
	}
	var failed error
	if c.Options, failed = json.Marshal(options); failed != nil {
		return c, fmt.Errorf("write the question for a passkey: %w", failed)
	}
	if c.State, failed = json.Marshal(state); failed != nil {
		return c, fmt.Errorf("keep the question for a passkey: %w", failed)
	}
	return c, nil
}

// BeginAdd asks a browser for a new passkey, on a device that has none yet.
func (k *Passkeys) BeginAdd(in Person) (Ceremony, error) {
	p, err := load(in)
	if err != nil {
		return Ceremony{}, err
	}
	options, state, err := k.party.BeginRegistration(p, webauthn.WithExclusions(webauthn.Credentials(p.keys).CredentialDescriptors()))
	if err != nil {
		return begun(nil, nil, err)
	}
	return begun(options.Response, state, nil)
}

// BeginUse asks a browser for one of the passkeys.
func (k *Passkeys) BeginUse(in Person) (Ceremony, error) {
	p, err := load(in)
	if err != nil {
		return Ceremony{}, err
	}
	options, state, err := k.party.BeginLogin(p)
	if err != nil {
		return begun(nil, nil, err)
	}
	return begun(options.Response, state, nil)
}

// ErrPasskey is the refusal of an answer that does not fit its question.
var ErrPasskey = errors.New("the passkey does not fit")

// Passkey is one as it is kept.
type Passkey struct {
	ID   string
	Kept []byte
}

func kept(k *webauthn.Credential, err error) (Passkey, error) {
	if err != nil {
		return Passkey{}, fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	if k.Authenticator.CloneWarning { // its counter went back: somebody has a copy (WebAuthn, 6.1.1)
		return Passkey{}, fmt.Errorf("%w: its counter went back", ErrPasskey)
	}
	text, err := json.Marshal(k)
	if err != nil {
		return Passkey{}, fmt.Errorf("write a passkey: %w", err)
	}
	return Passkey{base64.RawURLEncoding.EncodeToString(k.ID), text}, nil
}

func read(in Person, state []byte) (p person, s webauthn.SessionData, err error) {
	if err := json.Unmarshal(state, &s); err != nil {
		return p, s, fmt.Errorf("%w: no question was asked", ErrPasskey)
	}
	p, err = load(in)
	return p, s, err
}

// FinishAdd takes a browser's new passkey.
func (k *Passkeys) FinishAdd(in Person, state, answer []byte) (Passkey, error) {
	p, s, err := read(in, state)
	if err != nil {
		return Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return kept(nil, err)
	}
	return kept(k.party.CreateCredential(p, s, parsed))
}

// FinishUse takes a browser's proof that it has one of the passkeys, which is kept
// anew: it counts how often it was used.
func (k *Passkeys) FinishUse(in Person, state, answer []byte) (Passkey, error) {
	p, s, err := read(in, state)
	if err != nil {
		return Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return kept(nil, err)
	}
	return kept(k.party.ValidateLogin(p, s, parsed))
}
