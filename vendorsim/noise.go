package vendorsim

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

var errHandshake = errors.New("bad handshake")

// sealer is an AES-GCM key with the counter that makes its nonces.
type sealer struct {
	aead    cipher.AEAD
	counter uint32
}

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead}, nil
}

// nonce is 12 bytes with the counter big-endian in the last four.
func (s *sealer) nonce() []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint32(b[8:], s.counter)
	s.counter++
	return b
}

func (s *sealer) seal(dst, plain, extra []byte) []byte {
	return s.aead.Seal(dst, s.nonce(), plain, extra)
}

func (s *sealer) open(sealed, extra []byte) ([]byte, error) {
	return s.aead.Open(nil, s.nonce(), sealed, extra)
}

// noise is the symmetric state of the responder in a Noise XX handshake.
type noise struct {
	hash, salt []byte
	key        *sealer
}

func newNoise(prologue []byte) (*noise, error) {
	start := []byte(socket.NoiseStartPattern)
	key, err := newSealer(start)
	if err != nil {
		return nil, err
	}
	s := &noise{hash: start, salt: start, key: key}
	s.authenticate(prologue)
	return s, nil
}

func (s *noise) authenticate(data []byte) {
	h := sha256.New()
	h.Write(s.hash)
	h.Write(data)
	s.hash = h.Sum(nil)
}

func (s *noise) encrypt(plain []byte) []byte {
	sealed := s.key.seal(nil, plain, s.hash)
	s.authenticate(sealed)
	return sealed
}

func (s *noise) decrypt(sealed []byte) ([]byte, error) {
	plain, err := s.key.open(sealed, s.hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	s.authenticate(sealed)
	return plain, nil
}

// mix mixes a Diffie-Hellman secret into the key.
func (s *noise) mix(priv, pub []byte) error {
	mine, err := ecdh.X25519().NewPrivateKey(priv)
	if err != nil {
		return err
	}
	theirs, err := ecdh.X25519().NewPublicKey(pub)
	if err != nil {
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	secret, err := mine.ECDH(theirs)
	if err != nil {
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	first, second, err := s.expand(secret)
	if err != nil {
		return err
	}
	s.salt = first
	s.key, err = newSealer(second)
	return err
}

func (s *noise) expand(secret []byte) (first, second []byte, err error) {
	out, err := hkdf.Key(sha256.New, secret, s.salt, "", 64)
	if err != nil {
		return nil, nil, err
	}
	return out[:32], out[32:], nil
}

// hello answers the client's first message with the vendor's keys and certificates.
func (s *noise) hello(k *Keys, certs, clientEphemeral []byte, ephemeral *keys.KeyPair) ([]byte, error) {
	s.authenticate(clientEphemeral)
	s.authenticate(ephemeral.Pub[:])
	if err := s.mix(ephemeral.Priv[:], clientEphemeral); err != nil {
		return nil, err
	}
	static := s.encrypt(k.static.Pub[:])
	if err := s.mix(k.static.Priv[:], clientEphemeral); err != nil {
		return nil, err
	}
	return proto.Marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: ephemeral.Pub[:],
		Static:    static,
		Payload:   s.encrypt(certs),
	}})
}

// greeting is the description of itself that a client sends in the handshake.
type greeting struct {
	static  [32]byte // its Noise key
	payload *waWa6.ClientPayload
}

// finish reads the client's last handshake message.
func (s *noise) finish(raw []byte, ephemeral *keys.KeyPair) (greeting, error) {
	var msg waWa6.HandshakeMessage
	if err := proto.Unmarshal(raw, &msg); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", errHandshake, err)
	}
	static, err := s.decrypt(msg.GetClientFinish().GetStatic())
	if err != nil {
		return greeting{}, err
	}
	if len(static) != 32 {
		return greeting{}, fmt.Errorf("%w: static key of %d bytes", errHandshake, len(static))
	}
	if err := s.mix(ephemeral.Priv[:], static); err != nil {
		return greeting{}, err
	}
	plain, err := s.decrypt(msg.GetClientFinish().GetPayload())
	if err != nil {
		return greeting{}, err
	}
	g := greeting{static: [32]byte(static), payload: new(waWa6.ClientPayload)}
	if err := proto.Unmarshal(plain, g.payload); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", errHandshake, err)
	}
	return g, nil
}

// transport splits the final state into the key for frames of the client and the key for frames of
// the vendor.
func (s *noise) transport() (in, out *sealer, err error) {
	first, second, err := s.expand(nil)
	if err != nil {
		return nil, nil, err
	}
	if in, err = newSealer(first); err != nil {
		return nil, nil, err
	}
	out, err = newSealer(second)
	return in, out, err
}
