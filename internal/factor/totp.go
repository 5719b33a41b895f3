// Package factor holds what a person proves beside a password: codes of an
// authenticator app and passkeys. It keeps nothing.
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

// Codes change every period and have six digits, which is what authenticator apps
// assume (RFC 6238, 5.2).
const (
	period     = 30 * time.Second
	digits     = 6
	secretSize = 20 // bytes (RFC 4226, 4)
	drift      = 1  // periods that a clock may be wrong (RFC 6238, 6)
)

// NewSecret makes what an app and the server share.
func NewSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// SecretText is a secret as people type it.
func SecretText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// SecretURI is a secret as an app reads it from a QR code.
func SecretURI(issuer, account string, secret []byte) string {
	q := url.Values{"secret": {SecretText(secret)}, "issuer": {issuer}}
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + account, RawQuery: strings.ReplaceAll(q.Encode(), "+", "%20")}
	return u.String()
}

// MatchCode finds the step of time whose code was typed; ok is false when there is
// none near now, or none after the one that was used last.
func MatchCode(secret []byte, code string, now time.Time, used int64) (step int64, ok bool) {
	at := now.Unix() / int64(period/time.Second)
	for s := max(at-drift, used+1); s <= at+drift; s++ {
		if subtle.ConstantTimeCompare([]byte(codeAt(secret, s)), []byte(code)) == 1 {
			return s, true
		}
	}
	return 0, false
}

// codeAt is the code of a step of time (RFC 4226, 5.3).
func codeAt(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes all
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, n%1_000_000)
}

// NewRecoveryCodes makes codes that each open the account once, of 50 bits.
func NewRecoveryCodes(n int) []string {
	list := make([]string, n)
	for i := range list {
		text := strings.ToLower(rand.Text())
		list[i] = text[:5] + "-" + text[5:10]
	}
	return list
}

// TypedCode is a code as it was meant: without spaces and dashes, in lower case.
func TypedCode(text string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(text))
}
