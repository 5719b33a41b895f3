package seal

import (
	"crypto/rand"
	"encoding/base64"
)

// NewToken makes a random token of 256 bits that fits into a URL.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (Go 1.24)
	return base64.RawURLEncoding.EncodeToString(b)
}
