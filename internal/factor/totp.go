// Package factor implements second factors: codes of an authenticator app, passkeys and
// recovery codes. It stores nothing.
package factor

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238 and every authenticator app
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Codes change every period and have six digits, as authenticator apps expect (RFC 6238,
// 5.2).
const (
	period     = 30 * time.Second
	digits     = 6
	secretSize = 20 // bytes (RFC 4226, 4)
	drift      = 1  // periods by which a clock may be wrong (RFC 6238, 6)
)

// NewSecret generates the secret that an app and the server share.
func NewSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// SecretText formats a secret for typing.
func SecretText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// SecretURI formats a secret as the URI that an app reads from a QR code.
func SecretURI(issuer, account string, secret []byte) string {
	q := url.Values{"secret": {SecretText(secret)}, "issuer": {issuer}}
	u := url.URL{
		Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + account,
		RawQuery: strings.ReplaceAll(q.Encode(), "+", "%20"),
	}
	return u.String()
}

// MatchCode finds the time step of a code. It is at most one period away from now, and
// after the last used step; ok is false if there is none.
func MatchCode(secret []byte, code string, now time.Time, used int64) (step int64, ok bool) {
	at := now.Unix() / int64(period/time.Second)
	for s := max(at-drift, used+1); s <= at+drift; s++ {
		if subtle.ConstantTimeCompare([]byte(codeAt(secret, s)), []byte(code)) == 1 {
			return s, true
		}
	}
	return 0, false
}

// IsCode tells whether a normalized code has the form of an app's codes.
func IsCode(code string) bool {
	return len(code) == digits && strings.Trim(code, "0123456789") == ""
}

// codeAt computes the code of a time step (RFC 4226, 5.3).
func codeAt(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash never fails
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, n%1_000_000)
}

// NewRecoveryCodes generates n recovery codes of 50 bits each.
func NewRecoveryCodes(n int) []string {
	list := make([]string, n)
	for i := range list {
		text := strings.ToLower(rand.Text())
		list[i] = text[:5] + "-" + text[5:10]
	}
	return list
}

// TypedCode normalizes a typed code: no spaces or dashes, in lower case.
func TypedCode(text string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(text))
}
