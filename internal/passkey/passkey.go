// Package passkey checks a browser's answer to a network's request for the passkey of an account, as far as that is
// possible without the public key, which only the network has. What a check refuses here, the network would refuse too,
// but it would end the link attempt.
package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"postern/internal/postern"
)

// MaxPart is how many characters a part of a credential may have. Signatures of every algorithm are shorter.
const MaxPart = 8192

// The names of what is checked, in WebAuthn.
const (
	publicKey = "public-key"
	get       = "webauthn.get"
	required  = "required"
)

// The data of an authenticator: the hash of the domain, flags and a counter.
const (
	flagsAt  = sha256.Size
	minData  = flagsAt + 1 + 4
	present  = 1 << 0
	verified = 1 << 2
)

// Check checks the answer to a request. It returns the credential in its usual form: base64url without padding.
func Check(c postern.PasskeyCredential, o postern.PasskeyOptions) (postern.PasskeyCredential, error) {
	r := &c.Response
	parts := map[string][]byte{}
	for _, part := range []struct {
		pointer string
		text    *string
	}{
		{"/id", &c.ID}, {"/rawId", &c.RawID}, {"/response/clientDataJSON", &r.ClientData},
		{"/response/authenticatorData", &r.AuthenticatorData}, {"/response/signature", &r.Signature},
		{"/response/userHandle", (*string)(&r.UserHandle)},
	} {
		b, err := decode(*part.text)
		if err != nil || len(b) == 0 && part.text != (*string)(&r.UserHandle) {
			return c, invalid(part.pointer, "expected base64url, as from PublicKeyCredential.toJSON()")
		}
		*part.text, parts[part.pointer] = base64.RawURLEncoding.EncodeToString(b), b
	}
	if err := checkID(c, o); err != nil {
		return c, err
	}
	if err := checkClient(parts["/response/clientDataJSON"], o); err != nil {
		return c, err
	}
	return c, checkData(parts["/response/authenticatorData"], o)
}

func invalid(pointer, format string, args ...any) error {
	return postern.Invalid("/credential"+pointer, format, args...)
}

func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// checkID checks which passkey was used.
func checkID(c postern.PasskeyCredential, o postern.PasskeyOptions) error {
	switch {
	case c.Type != publicKey:
		return invalid("/type", "expected %s", publicKey)
	case c.ID != c.RawID:
		return invalid("/rawId", "this must be the same as id")
	case len(o.AllowCredentials) > 0 && !slices.ContainsFunc(o.AllowCredentials, func(a postern.PasskeyAllowed) bool {
		return a.ID == c.RawID
	}):
		return invalid("/id", "the network does not accept this passkey; use one of allowCredentials")
	}
	return nil
}

// checkClient checks what the browser says: which request it answers, and on which page.
func checkClient(raw []byte, o postern.PasskeyOptions) error {
	const pointer = "/response/clientDataJSON"
	var data struct{ Type, Challenge, Origin string }
	if json.Unmarshal(raw, &data) != nil {
		return invalid(pointer, "expected the JSON of a browser")
	}
	challenge, err := decode(data.Challenge)
	wanted, bad := decode(o.Challenge)
	switch {
	case data.Type != get:
		return invalid(pointer, "this answers another kind of request; its type must be %s", get)
	case err != nil || bad != nil || !bytes.Equal(challenge, wanted):
		return invalid(pointer, "this answers another request; take the challenge of the link attempt that is open now")
	case !isPageOf(data.Origin, o.Domain):
		return invalid(pointer, "this was made on a page of another domain; ask for the passkey on a page of %s", o.Domain)
	}
	return nil
}

// isPageOf reports whether a page belongs to a domain.
func isPageOf(origin, domain string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" || domain == "" {
		return false
	}
	return u.Hostname() == domain || strings.HasSuffix(u.Hostname(), "."+domain)
}

// checkData checks what the authenticator says.
func checkData(data []byte, o postern.PasskeyOptions) error {
	const pointer = "/response/authenticatorData"
	hash := sha256.Sum256([]byte(o.Domain))
	switch {
	case len(data) < minData:
		return invalid(pointer, "this is too short for the data of an authenticator")
	case !bytes.Equal(data[:flagsAt], hash[:]):
		return invalid(pointer, "the passkey belongs to another domain; use one of %s", o.Domain)
	case data[flagsAt]&present == 0:
		return invalid(pointer, "the authenticator did not see its owner")
	case o.UserVerification == required && data[flagsAt]&verified == 0:
		return invalid(pointer, "the authenticator did not verify its owner, which the network requires: use a PIN, a "+
			"fingerprint or a face")
	}
	return nil
}
