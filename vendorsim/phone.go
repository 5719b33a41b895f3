package vendorsim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

const (
	// signedPreKeyID is the id of the only signed prekey that a phone has.
	signedPreKeyID = 1
	// padBlock is what plaintexts are padded to a multiple of.
	padBlock = 16
)

var errUnreadable = errors.New("cannot decrypt")

// phone is the simulated phone of one number: a Signal identity with its sessions. A phone is
// created at its first use.
type phone struct {
	core   *core
	number number

	mu       sync.Mutex // guards the fields below; taken before v.mu
	device   *store.Device
	sessions map[string][]byte // by Signal address
	saved    savedPhone
}

type savedPhone struct {
	PreKeys uint32 `json:"preKeys"` // number of prekeys handed out so far
}

// phoneOf returns the phone of a number.
func (v *core) phoneOf(n number) (*phone, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.phone(n)
}

// phone is phoneOf for a caller that holds v.mu.
func (v *core) phone(n number) (*phone, error) {
	if p := v.phones[n]; p != nil {
		return p, nil
	}
	me, err := v.keys.derive("phone " + string(n))
	if err != nil {
		return nil, err
	}
	signed, err := v.keys.derive("signed " + string(n))
	if err != nil {
		return nil, err
	}
	p := &phone{core: v, number: n, sessions: make(map[string][]byte)}
	s := signalStore{NoopStore: new(store.NoopStore), p: p}
	p.device = &store.Device{
		NoiseKey:       me, // unused, but required in a Device
		IdentityKey:    me,
		RegistrationID: binary.BigEndian.Uint32(me.Pub[:]) & 0x3FFF,
		SignedPreKey:   &keys.PreKey{KeyPair: *signed, KeyID: signedPreKeyID, Signature: me.Sign(signed)},
		Identities:     s, Sessions: s, PreKeys: s, SenderKeys: s,
	}
	v.phones[n] = p
	return p, nil
}

// bundle hands out a new prekey of the phone.
func (p *phone) bundle() bundle {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := bundle{regID: p.device.RegistrationID, identity: *p.device.IdentityKey.Pub, signed: p.device.SignedPreKey}
	p.saved.PreKeys++
	p.core.put("phone/"+string(p.number), p.saved)
	if k, err := p.preKey(p.saved.PreKeys); err == nil {
		b.once = k
	}
	return b
}

// preKey derives the prekey with an id, so that prekeys need not be stored.
func (p *phone) preKey(id uint32) (*keys.PreKey, error) {
	pair, err := p.core.keys.derive(fmt.Sprintf("prekey %s %d", string(p.number), id))
	if err != nil {
		return nil, err
	}
	return &keys.PreKey{KeyPair: *pair, KeyID: id}, nil
}

// signalStore is the part of whatsmeow's store that the Signal code uses, kept in a phone. It is
// called with the phone's lock held.
type signalStore struct {
	*store.NoopStore
	p *phone
}

// IsTrustedIdentity implements whatsmeow's IdentityStore. Phones trust every identity.
func (signalStore) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) {
	return true, nil
}

// GetSession implements whatsmeow's SessionStore.
func (s signalStore) GetSession(_ context.Context, address string) ([]byte, error) {
	return s.p.sessions[address], nil
}

// HasSession implements whatsmeow's SessionStore.
func (s signalStore) HasSession(_ context.Context, address string) (bool, error) {
	return s.p.sessions[address] != nil, nil
}

// PutSession implements whatsmeow's SessionStore.
func (s signalStore) PutSession(_ context.Context, address string, raw []byte) error {
	s.p.sessions[address] = raw
	s.p.core.putRaw(sessionKey(s.p.number, address), raw)
	return nil
}

// GetPreKey implements whatsmeow's PreKeyStore.
func (s signalStore) GetPreKey(_ context.Context, id uint32) (*keys.PreKey, error) {
	if id == 0 || id > s.p.saved.PreKeys {
		return nil, nil //nolint:nilnil // the interface requires nil for a missing key
	}
	return s.p.preKey(id)
}

func sessionKey(n number, address string) string { return "session/" + string(n) + "/" + address }

// sealed is an encrypted message.
type sealed struct {
	kind string // "pkmsg" for the first messages of a session, "msg" for later ones
	data []byte
}

func (s sealed) node(retries int) waBinary.Node {
	attrs := waBinary.Attrs{"v": "2", "type": s.kind}
	if retries > 0 {
		attrs["count"] = retries
	}
	return waBinary.Node{Tag: "enc", Attrs: attrs, Content: s.data}
}

// encrypt seals an encoded message for a companion. It begins a session if there is none, or if the caller
// provides new keys. The caller holds p.mu.
func (p *phone) encrypt(ctx context.Context, cp *companion, plain []byte, fresh *bundle) (sealed, error) {
	address := cp.lid().SignalAddress()
	builder := session.NewBuilderFromSignal(p.device, address, store.SignalProtobufSerializer)
	if err := p.begin(ctx, builder, cp, fresh); err != nil {
		return sealed{}, fmt.Errorf("begin session: %w", err)
	}
	out, err := session.NewCipher(builder, address).Encrypt(ctx, pad(plain))
	if err != nil {
		return sealed{}, fmt.Errorf("encrypt: %w", err)
	}
	kind := "msg"
	if out.Type() == protocol.PREKEY_TYPE {
		kind = "pkmsg"
	}
	return sealed{kind: kind, data: out.Serialize()}, nil
}

func (p *phone) begin(ctx context.Context, builder *session.Builder, cp *companion, fresh *bundle) error {
	if fresh == nil {
		if p.sessions[cp.lid().SignalAddress().String()] != nil {
			return nil
		}
		p.core.mu.Lock()
		b := p.core.prekeys.takeBundle(cp)
		p.core.mu.Unlock()
		fresh = &b
	}
	b, err := fresh.signal()
	if err != nil {
		return err
	}
	return builder.ProcessBundle(ctx, b)
}

// decrypt opens a message that a companion sealed for this phone. The caller holds p.mu.
func (p *phone) decrypt(ctx context.Context, from types.JID, enc waBinary.Node) (msg *waE2E.Message, err error) {
	defer func() {
		if r := recover(); r != nil { // libsignal trusts the shape of what it parses
			msg, err = nil, fmt.Errorf("%w: %v", errUnreadable, r)
		}
	}()
	plain, err := p.open(ctx, from.SignalAddress(), attr(&enc, "type"), content(enc))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if plain, err = unpad(plain); err != nil {
		return nil, err
	}
	msg = new(waE2E.Message)
	if err := proto.Unmarshal(plain, msg); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return msg, nil
}

func (p *phone) open(ctx context.Context, from *protocol.SignalAddress, kind string, raw []byte) ([]byte, error) {
	ser := store.SignalProtobufSerializer
	cipher := session.NewCipher(session.NewBuilderFromSignal(p.device, from, ser), from)
	if kind == "pkmsg" {
		m, err := protocol.NewPreKeySignalMessageFromBytes(raw, ser.PreKeySignalMessage, ser.SignalMessage)
		if err != nil {
			return nil, err
		}
		return cipher.DecryptMessage(ctx, m)
	}
	m, err := protocol.NewSignalMessageFromBytes(raw, ser.SignalMessage)
	if err != nil {
		return nil, err
	}
	return cipher.Decrypt(ctx, m)
}

// pad adds padding up to the next block. Each byte of the padding is its length.
func pad(plain []byte) []byte {
	n := padBlock - len(plain)%padBlock
	return append(plain, bytes.Repeat([]byte{byte(n)}, n)...)
}

func unpad(plain []byte) ([]byte, error) {
	if len(plain) == 0 {
		return nil, fmt.Errorf("%w: empty", errUnreadable)
	}
	n := int(plain[len(plain)-1])
	if n > len(plain) {
		return nil, fmt.Errorf("%w: wrong padding", errUnreadable)
	}
	return plain[:len(plain)-n], nil
}
