// Package seal encrypts data at rest that must not be readable on a stolen disk or
// backup, and defines a type for secrets that prints as ***.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// KeySize is the length of a secret key in bytes.
const KeySize = 32

// version is the first byte of every sealed value, so that later schemes can be
// distinguished.
const version = 1

// Box encrypts with AES-256-GCM and a random nonce. It is safe for concurrent use.
type Box struct {
	aead   cipher.AEAD
	macKey []byte
}

// NewBox creates a Box from a key of 32 random bytes.
func NewBox(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a secret key must have %d bytes, not %d", KeySize, len(key))
	}
	sealKey, err := hkdf.Key(sha256.New, key, nil, "postern seal", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the sealing key: %w", err)
	}
	macKey, err := hkdf.Key(sha256.New, key, nil, "postern mac", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the signing key: %w", err)
	}
	block, err := aes.NewCipher(sealKey)
	if err != nil {
		return nil, fmt.Errorf("create the cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("create the cipher: %w", err)
	}
	return &Box{aead, macKey}, nil
}

// Seal encrypts plain. The place says where the value is stored, such as
// "endpoint.secret whk_…"; a value moved to another place cannot be opened.
func (b *Box) Seal(plain []byte, place string) []byte {
	return b.aead.Seal([]byte{version}, nil, plain, []byte(place)) //nolint:gosec // the AEAD chooses its nonce itself
}

// Open decrypts a value that Seal encrypted for the same place.
func (b *Box) Open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, errors.New("an encrypted value has an unknown format")
	}
	plain, err := b.aead.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, errors.New(
			"an encrypted value cannot be opened: the secret key is another one, or the value was changed")
	}
	return plain, nil
}

// MAC returns a message authentication code of 16 bytes for a purpose.
func (b *Box) MAC(purpose, message string) []byte {
	h := hmac.New(sha256.New, b.macKey)
	h.Write([]byte(purpose + "\x00" + message))
	return h.Sum(nil)[:16]
}

// LoadKey reads a key file, which contains the base64 of 32 bytes.
func LoadKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("the secret key file %s must contain the base64 of %d bytes", path, KeySize)
	}
	return key, nil
}

// LoadOrMakeKey reads a key file. If it does not exist, it creates one that only its
// owner can read.
func LoadOrMakeKey(path string) ([]byte, error) {
	key, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, KeySize)
	rand.Read(key) // never fails (Go 1.24)
	if err := writeDurably(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n")); err != nil {
		return nil, fmt.Errorf("write the secret key: %w", err)
	}
	return key, nil
}

// writeDurably creates a file that is complete or absent, even after a power failure.
// Losing a key would make everything encrypted with it unreadable.
func writeDurably(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Secret is a text that must not be shown. Every way of printing it prints ***.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns ***.
func (Secret) String() string { return "***" }

// GoString returns ***, for %#v.
func (Secret) GoString() string { return "***" }

// MarshalText returns ***, for JSON and text.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue returns ***, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }
