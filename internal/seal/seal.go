// Package seal encrypts at rest what must never be read from a stolen disk or
// backup, and holds secrets that print as ***.
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

// version leads every sealed value, so that a later scheme can be told apart.
const version = 1

// Box seals with AES-256-GCM and a random nonce. It is safe for many
// goroutines.
type Box struct {
	aead   cipher.AEAD
	macKey []byte
}

// NewBox makes a Box from a key of 32 random bytes.
func NewBox(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a secret key has %d bytes, not %d", KeySize, len(key))
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
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	return &Box{aead, macKey}, nil
}

// Seal encrypts plain. The place says where the value is kept, such as
// "endpoint.secret whk_…"; a value moved elsewhere cannot be opened.
func (b *Box) Seal(plain []byte, place string) []byte {
	return b.aead.Seal([]byte{version}, nil, plain, []byte(place)) //nolint:gosec // the AEAD chooses its nonce itself
}

// Open decrypts what Seal made for the same place.
func (b *Box) Open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, errors.New("a sealed value has an unknown form")
	}
	plain, err := b.aead.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, errors.New("a sealed value cannot be opened: another secret key, or a changed value")
	}
	return plain, nil
}

// MAC authenticates a message for a purpose. It is 16 bytes long.
func (b *Box) MAC(purpose, message string) []byte {
	h := hmac.New(sha256.New, b.macKey)
	h.Write([]byte(purpose + "\x00" + message))
	return h.Sum(nil)[:16]
}

// LoadKey reads a key file: base64 of 32 bytes.
func LoadKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("the secret key file %s must hold base64 of %d bytes", path, KeySize)
	}
	return key, nil
}

// LoadOrMakeKey reads a key file, or makes one that only its owner can read.
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

// writeDurably makes a file that is whole or absent, also after a power cut: a
// key that is lost makes everything sealed with it unreadable.
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

// Secret is a text that must not be seen: every way of printing it gives ***.
type Secret string

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

// String gives ***.
func (Secret) String() string { return "***" }

// GoString gives ***, for %#v.
func (Secret) GoString() string { return "***" }

// MarshalText gives ***, for JSON and text.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue gives ***, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }
