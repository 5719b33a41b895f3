package passkey_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"postern/internal/passkey"
	"postern/internal/postern"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// asked is a request, and answered a right answer to it.
func asked() postern.PasskeyOptions {
	return postern.PasskeyOptions{Challenge: "Y2hhbGxlbmdl", Domain: "whatsapp.com", UserVerification: "required"}
}

func client(kind, challenge, origin string) string {
	return b64(fmt.Appendf(nil, `{"type":%q,"challenge":%q,"origin":%q,"crossOrigin":false}`, kind, challenge, origin))
}

func data(domain string, flags byte) string {
	hash := sha256.Sum256([]byte(domain))
	return b64(append(hash[:], flags, 0, 0, 0, 0))
}

func answered() postern.PasskeyCredential {
	return postern.PasskeyCredential{ID: "aWQ", RawID: "aWQ", Type: "public-key", Response: postern.PasskeyResponse{
		ClientData:        client("webauthn.get", "Y2hhbGxlbmdl", "https://web.whatsapp.com"),
		AuthenticatorData: data("whatsapp.com", 5), Signature: "c2ln", UserHandle: "dXNlcg==",
	}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		change  func(*postern.PasskeyCredential, *postern.PasskeyOptions)
		pointer string // of what is wrong; "" for nothing
	}{
		{"right", func(*postern.PasskeyCredential, *postern.PasskeyOptions) {}, ""},
		{"the domain itself", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.ClientData = client("webauthn.get", "Y2hhbGxlbmdl", "https://whatsapp.com")
		}, ""},
		{"no base64url", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.Response.Signature = "a+b" }, "/response/signature"},
		{"empty", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.ID = "" }, "/id"},
		{"no user", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.Response.UserHandle = "" }, ""},
		{"password", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.Type = "password" }, "/type"},
		{"two ids", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.RawID = "eA" }, "/rawId"},
		{"allowed", func(_ *postern.PasskeyCredential, o *postern.PasskeyOptions) {
			o.AllowCredentials = []postern.PasskeyAllowed{{ID: "aWQ"}}
		}, ""},
		{"not allowed", func(_ *postern.PasskeyCredential, o *postern.PasskeyOptions) {
			o.AllowCredentials = []postern.PasskeyAllowed{{ID: "eA"}}
		}, "/id"},
		{"no JSON", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.ClientData = b64([]byte("x"))
		}, "/response/clientDataJSON"},
		{"created", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.ClientData = client("webauthn.create", "Y2hhbGxlbmdl", "https://web.whatsapp.com")
		}, "/response/clientDataJSON"},
		{"another challenge", func(_ *postern.PasskeyCredential, o *postern.PasskeyOptions) { o.Challenge = "eA" }, "/response/clientDataJSON"},
		{"another page", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.ClientData = client("webauthn.get", "Y2hhbGxlbmdl", "https://notwhatsapp.com")
		}, "/response/clientDataJSON"},
		{"not encrypted", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.ClientData = client("webauthn.get", "Y2hhbGxlbmdl", "http://web.whatsapp.com")
		}, "/response/clientDataJSON"},
		{"too short", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) { c.Response.AuthenticatorData = "AQ" }, "/response/authenticatorData"},
		{"another domain", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.AuthenticatorData = data("example.com", 5)
		}, "/response/authenticatorData"},
		{"nobody there", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.AuthenticatorData = data("whatsapp.com", 4)
		}, "/response/authenticatorData"},
		{"not verified", func(c *postern.PasskeyCredential, _ *postern.PasskeyOptions) {
			c.Response.AuthenticatorData = data("whatsapp.com", 1)
		}, "/response/authenticatorData"},
		{"need not be verified", func(c *postern.PasskeyCredential, o *postern.PasskeyOptions) {
			c.Response.AuthenticatorData, o.UserVerification = data("whatsapp.com", 1), "preferred"
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, o := answered(), asked()
			tt.change(&c, &o)
			got, err := passkey.Check(c, o)
			if (err == nil) != (tt.pointer == "") {
				t.Fatalf("Check = %v, want something wrong at %q", err, tt.pointer)
			}
			if e, ok := err.(*postern.Error); ok && e.Fields[0].Pointer != "/credential"+tt.pointer { //nolint:errorlint // it is not wrapped
				t.Errorf("wrong at %s, want %s", e.Fields[0].Pointer, tt.pointer)
			}
			if err == nil && strings.Contains(string(got.Response.UserHandle), "=") {
				t.Errorf("the user is %q", got.Response.UserHandle)
			}
		})
	}
}

// Nothing that a caller sends makes a panic, and no error repeats it.
func FuzzCheck(f *testing.F) {
	c := answered()
	f.Add(c.ID, c.Response.ClientData, c.Response.AuthenticatorData, "https://web.whatsapp.com")
	f.Fuzz(func(t *testing.T, id, clientData, authData, origin string) {
		c := answered()
		c.ID, c.RawID, c.Response.ClientData, c.Response.AuthenticatorData = id, id, clientData, authData
		_, _ = passkey.Check(c, asked())
		c = answered()
		c.Response.ClientData = client("webauthn.get", "Y2hhbGxlbmdl", origin)
		if _, err := passkey.Check(c, asked()); err != nil && len(origin) > 20 && strings.Contains(err.Error(), origin) {
			t.Errorf("the error repeats %q", origin)
		}
	})
}
