package vendorsim

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// certValidity is how long the certificates made at [Open] are valid. No process runs longer.
const certValidity = 10 * 365 * 24 * time.Hour

// Keys are the secrets of a simulated vendor: the root of its certificate chain, the static key of
// its connections, and the secret from which the identities of its phones are derived.
//
// whatsmeow trusts one root key per process (whatsmeow.WACertPubKey), so tests that open many
// Vendors in one process make one Keys and pass it to all of them in [Options].
type Keys struct {
	root, static *keys.KeyPair
}

// NewKeys makes new keys from the system's random source.
func NewKeys() *Keys {
	return &Keys{root: keys.NewKeyPair(), static: keys.NewKeyPair()}
}

// RootKey returns the public root key, the required value of whatsmeow.WACertPubKey.
func (k *Keys) RootKey() [32]byte { return *k.root.Pub }

// savedKeys is the journal's form of Keys.
type savedKeys struct {
	Root   [32]byte `json:"root"`
	Static [32]byte `json:"static"`
}

func (k *Keys) save() savedKeys { return savedKeys{Root: *k.root.Priv, Static: *k.static.Priv} }

func (s savedKeys) keys() *Keys {
	return &Keys{root: keys.NewKeyPairFromPrivateKey(s.Root), static: keys.NewKeyPairFromPrivateKey(s.Static)}
}

// derive returns the key pair of a label, the same one at every call. Phones therefore need no
// stored keys, and have the same identity after a restart.
func (k *Keys) derive(label string) (*keys.KeyPair, error) {
	priv, err := hkdf.Key(sha256.New, k.root.Priv[:], nil, label, 32)
	if err != nil {
		return nil, fmt.Errorf("derive key %q: %w", label, err)
	}
	priv[0] &= 248
	priv[31] = priv[31]&127 | 64
	return keys.NewKeyPairFromPrivateKey([32]byte(priv)), nil
}

// certificates returns the chain that whatsmeow checks in the handshake: an intermediate signed by
// the root, and a leaf for the static key signed by the intermediate.
func (k *Keys) certificates() ([]byte, error) {
	inter := keys.NewKeyPair()
	middle, err := sign(k.root, 1, 0, inter)
	if err != nil {
		return nil, err
	}
	leaf, err := sign(inter, 2, 1, k.static)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&waCert.CertChain{Intermediate: middle, Leaf: leaf})
}

func sign(by *keys.KeyPair, serial, issuer uint32, subject *keys.KeyPair) (*waCert.CertChain_NoiseCertificate, error) {
	now := time.Now()
	raw, err := proto.Marshal(&waCert.CertChain_NoiseCertificate_Details{
		Serial:       &serial,
		IssuerSerial: &issuer,
		Key:          subject.Pub[:],
		NotBefore:    new(unix(now.Add(-time.Hour))),
		NotAfter:     new(unix(now.Add(certValidity))),
	})
	if err != nil {
		return nil, fmt.Errorf("encode certificate %d: %w", serial, err)
	}
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*by.Priv), raw)
	return &waCert.CertChain_NoiseCertificate{Details: raw, Signature: sig[:]}, nil
}

func unix(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }
