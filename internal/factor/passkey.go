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

// Passkeys runs the WebAuthn ceremonies for one server.
type Passkeys struct{ party *webauthn.WebAuthn }

// NewPasskeys prepares the ceremonies for a server at a URL. It fails for a bare IP
// address, because browsers support passkeys only for host names.
func NewPasskeys(address string) (*Passkeys, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return nil, errors.New("passkeys require a host name; this server is reached by an IP address")
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: "Postern", RPOrigins: []string{u.Scheme + "://" + u.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey:      protocol.ResidentKeyRequirementDiscouraged,
			UserVerification: protocol.VerificationPreferred,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys for %s: %w", address, err)
	}
	return &Passkeys{party}, nil
}

// Person is the owner of passkeys.
type Person struct {
	ID       string
	Email    string
	Passkeys [][]byte // as FinishAdd and FinishUse returned them
}

// person is a Person in the form that the library needs.
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

// Ceremony is a ceremony that has begun. Options is for the browser; State must stay on
// the server until the browser answers.
type Ceremony struct {
	Options []byte
	State   []byte
}

func begun(options any, state *webauthn.SessionData, err error) (c Ceremony, _ error) {
	if err != nil {
		return c, fmt.Errorf("begin a passkey ceremony: %w", err)
	}
	var failed error
	if c.Options, failed = json.Marshal(options); failed != nil {
		return c, fmt.Errorf("encode the options of a passkey ceremony: %w", failed)
	}
	if c.State, failed = json.Marshal(state); failed != nil {
		return c, fmt.Errorf("encode the state of a passkey ceremony: %w", failed)
	}
	return c, nil
}

// BeginAdd begins to add a passkey, on a device that has none of the person's yet.
func (k *Passkeys) BeginAdd(in Person) (Ceremony, error) {
	p, err := load(in)
	if err != nil {
		return Ceremony{}, err
	}
	options, state, err := k.party.BeginRegistration(p,
		webauthn.WithExclusions(webauthn.Credentials(p.keys).CredentialDescriptors()))
	if err != nil {
		return begun(nil, nil, err)
	}
	return begun(options.Response, state, nil)
}

// BeginUse begins to sign in with one of the passkeys.
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

// ErrPasskey means that a browser's answer does not match its ceremony.
var ErrPasskey = errors.New("the passkey does not match")

// Passkey is a passkey in its stored form.
type Passkey struct {
	ID   string
	Kept []byte
}

func kept(k *webauthn.Credential, err error) (Passkey, error) {
	if err != nil {
		return Passkey{}, fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	if k.Authenticator.CloneWarning { // its counter went back: there may be a copy (WebAuthn, 6.1.1)
		return Passkey{}, fmt.Errorf("%w: its counter went back", ErrPasskey)
	}
	text, err := json.Marshal(k)
	if err != nil {
		return Passkey{}, fmt.Errorf("encode a passkey: %w", err)
	}
	return Passkey{base64.RawURLEncoding.EncodeToString(k.ID), text}, nil
}

func read(in Person, state []byte) (p person, s webauthn.SessionData, err error) {
	if err := json.Unmarshal(state, &s); err != nil {
		return p, s, fmt.Errorf("%w: no ceremony has begun", ErrPasskey)
	}
	p, err = load(in)
	return p, s, err
}

// FinishAdd verifies a browser's new passkey. It returns ErrPasskey if the answer does
// not match.
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

// FinishUse verifies that a browser has one of the passkeys. The returned passkey
// replaces the stored one, because it counts its uses. It returns ErrPasskey if the
// answer does not match.
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
