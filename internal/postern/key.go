package postern

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
)

// Scope is one permission of an API key.
type Scope string

// The scopes that exist.
const (
	DevicesRead   Scope = "devices:read"
	DevicesWrite  Scope = "devices:write"
	MessagesRead  Scope = "messages:read"
	MessagesWrite Scope = "messages:write"
	ContactsRead  Scope = "contacts:read"
	ContactsWrite Scope = "contacts:write"
	WebhooksRead  Scope = "webhooks:read"
	WebhooksWrite Scope = "webhooks:write"
	EventsRead    Scope = "events:read"
	UsageRead     Scope = "usage:read"
	SandboxWrite  Scope = "sandbox:write"
)

// Scopes lists every scope that exists today.
func Scopes() []Scope {
	return []Scope{
		DevicesRead, DevicesWrite, MessagesRead, MessagesWrite, ContactsRead, ContactsWrite,
		WebhooksRead, WebhooksWrite, EventsRead, UsageRead, SandboxWrite,
	}
}

// Key is an API key as it is stored, without its secret.
type Key struct {
	ID          KeyID       `json:"id"`
	WorkspaceID WorkspaceID `json:"workspaceId"`
	Name        string      `json:"name"`
	Environment string      `json:"environment"`
	LastFour    string      `json:"lastFour"`
	Scopes      []Scope     `json:"scopes"`
	Devices     []DeviceID  `json:"devices"` // nil: every device of the workspace
	CreatedAt   Time        `json:"createdAt"`
	LastUsedAt  Time        `json:"lastUsedAt"`
	ExpiresAt   Time        `json:"expiresAt"`
	RevokedAt   Time        `json:"revokedAt"`
	CreatedBy   UserID      `json:"createdBy"` // the member; "" for the operator, or if it is unknown
	Hash        [32]byte    `json:"-"`
	// ChosenExpiresAt is the ExpiresAt that the key had before a rotation shortened it.
	ChosenExpiresAt Time `json:"-"`
}

// Allows reports whether the key may access the device.
func (k Key) Allows(id DeviceID) bool { return k.Devices == nil || slices.Contains(k.Devices, id) }

// Has reports whether the key has the scope.
func (k Key) Has(s Scope) bool { return slices.Contains(k.Scopes, s) }

// An API key is "pst_", 32 random base62 characters, and the CRC32 (IEEE) of everything
// before it as 6 base62 characters. The checksum lets scanners and this server recognize
// a mistyped key without a look-up.
const (
	keyPrefix      = "pst_"
	keyRandom      = 32
	keyChecksum    = 6
	base62Alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewKeySecret generates the secret of an API key, with 190 random bits.
func NewKeySecret() string {
	var b strings.Builder
	b.WriteString(keyPrefix)
	n := big.NewInt(int64(len(base62Alphabet)))
	for range keyRandom {
		i, err := rand.Int(rand.Reader, n)
		if err != nil {
			panic(err) // crypto/rand does not fail (Go 1.24)
		}
		b.WriteByte(base62Alphabet[i.Int64()])
	}
	return b.String() + keyCRC(b.String())
}

func keyCRC(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var out [keyChecksum]byte
	for i := keyChecksum - 1; i >= 0; i-- {
		out[i] = base62Alphabet[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// WellFormedKey reports whether s has the form and the checksum of an API key.
func WellFormedKey(s string) bool {
	if len(s) != len(keyPrefix)+keyRandom+keyChecksum || !strings.HasPrefix(s, keyPrefix) {
		return false
	}
	body := s[:len(s)-keyChecksum]
	return keyCRC(body) == s[len(body):]
}

// HashKey returns the form in which an API key is stored: its SHA-256. A slow hash is not
// needed, because the secret has full entropy.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
