package vendorsim

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// passkeyTime is for how long the vendor waits for an answer to its request.
const passkeyTime = 10 * time.Minute

// The tags of the queries with which a client answers.
const (
	passkeyOptionsTag  = "passkey_request_options"
	passkeyRefTag      = "ref"
	passkeyPrologueTag = "passkey_prologue"
	passkeyNonceTag    = "companion_nonce"
	passkeyRequestTag  = "encrypted_pairing_request"
)

const (
	handoffLabel = "shortcake-passkey-handoff-v1"
	pairingLabel = "Pairing Information Encryption Key"
	passkeyNonce = 32
	pairingIV    = 12
)

// PasskeyFault is something that goes wrong with the next link of a number by its passkey.
type PasskeyFault string

// The faults of a link by passkey.
const (
	// PasskeyRefused refuses an answer that is right.
	PasskeyRefused PasskeyFault = "refused"
	// PasskeyExpired refuses the answer because it comes too late.
	PasskeyExpired PasskeyFault = "expired"
	// PasskeyDeclined is an owner who declines on the phone: nothing follows the answer.
	PasskeyDeclined PasskeyFault = "declined"
	// PasskeyCommitment is a phone to which the client reveals another number than it has committed to.
	PasskeyCommitment PasskeyFault = "commitment"
)

var errPasskeyFault = errors.New("no such fault of a passkey")

// passkeyPairing is a client that was asked for the passkey of the account. Its fields are guarded by
// core.mu.
type passkeyPairing struct {
	phone     *phone
	request   passkeyRequest
	until     time.Time
	secret    []byte // of the code that the phone has scanned
	ref       string
	identity  []byte // what the client is, with its key for this link
	peer      *waCompanionReg.CompanionEphemeralIdentity
	committed []byte // hash of the identity and of the number that the client reveals later
	proven    bool   // the client knows the secret
	ephemeral *keys.KeyPair
	nonce     []byte
	key       []byte // of the last message of the client; nil before it has revealed its number
	code      string // that both sides show
}

// Passkeys are the passkeys of accounts, and what goes wrong with them.
type Passkeys struct{ v *Vendor }

// Passkeys returns the passkeys of accounts.
func (v *Vendor) Passkeys() Passkeys { return Passkeys{v} }

// Require makes a number ask for its passkey whenever a client is linked to it.
func (p Passkeys) Require(num string) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if p.v.passkeys[n] != nil {
		return nil
	}
	p.v.passkeys[n], err = newPasskey()
	return err
}

// Of returns the passkey of a number that asks for it.
func (p Passkeys) Of(num string) (*Passkey, error) {
	n, err := knownNumber(num)
	if err != nil {
		return nil, err
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	key, err := p.v.passkeyLinks.of(n)
	if err == nil && key == nil {
		err = ErrNoPasskey
	}
	return key, err
}

// OwnerOf returns the number whose passkey a request asks for.
func (p Passkeys) OwnerOf(request []byte) (num string, err error) {
	var r passkeyRequest
	if err := json.Unmarshal(request, &r); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoPasskey, err)
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	for _, pairing := range p.v.pairings {
		if k := pairing.passkey; k != nil && k.request.Challenge == r.Challenge {
			return k.phone.number.String(), nil
		}
	}
	return "", ErrNoPasskey
}

// Fail makes something go wrong with the next link of a number by its passkey.
func (p Passkeys) Fail(num string, f PasskeyFault) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	if !slices.Contains([]PasskeyFault{PasskeyRefused, PasskeyExpired, PasskeyDeclined, PasskeyCommitment}, f) {
		return fmt.Errorf("%w: %q", errPasskeyFault, f)
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	p.v.passkeyFaults[n] = f
	return nil
}

// Code returns the code that the phone of a number shows, for its owner to compare with that
// of the client; "" if it shows none.
func (p Passkeys) Code(num string) string {
	n, err := parseNumber(num)
	if err != nil {
		return ""
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	for _, pairing := range p.v.pairings {
		if k := pairing.passkey; k != nil && k.phone.number == n && k.code != "" {
			return k.code
		}
	}
	return ""
}

// of returns the passkey of a number; nil if it asks for none. The caller holds v.mu.
func (v passkeyLinks) of(n number) (*Passkey, error) {
	if v.passkeys[n] != nil || n.String() != NumberPasskey {
		return v.passkeys[n], nil
	}
	p, err := newPasskey()
	if err == nil {
		v.passkeys[n] = p
	}
	return p, err
}

// fails reports whether a fault waits for the link of a number, and disarms it. The caller holds v.mu.
func (v passkeyLinks) fails(n number, f PasskeyFault) bool {
	if v.passkeyFaults[n] != f {
		return false
	}
	delete(v.passkeyFaults, n)
	return true
}

// ask asks a client for the passkey of the account. The caller holds v.mu.
func (v passkeyLinks) ask(p *pairing, ph *phone, secret []byte) {
	challenge := make([]byte, 32)
	_, _ = rand.Read(challenge) // never fails
	p.passkey = &passkeyPairing{
		phone: ph, secret: slices.Clone(secret), until: now().Add(passkeyTime),
		request: passkeyRequest{
			Challenge: base64URL.EncodeToString(challenge), Timeout: int(passkeyTime / time.Millisecond),
			Domain: PasskeyDomain, AllowCredentials: []any{}, UserVerification: "required",
			Extensions: map[string]any{"uvm": true},
		},
	}
	p.conn.send(notice("passkey_prologue_request", p.passkey.options()))
	v.notify()
}

func (k *passkeyPairing) options() waBinary.Node {
	text, _ := json.Marshal(k.request) // it has nothing that cannot be encoded
	return waBinary.Node{Tag: passkeyOptionsTag, Content: text}
}

// notice returns a notification of the vendor to a client that is being linked.
func notice(kind string, child waBinary.Node) waBinary.Node {
	return waBinary.Node{
		Tag:     "notification",
		Attrs:   waBinary.Attrs{"from": types.ServerJID, "type": kind, "id": newRef()},
		Content: []waBinary.Node{child},
	}
}

// isPasskeyTag reports whether a query belongs to a link by passkey.
func isPasskeyTag(tag string) bool {
	return slices.Contains([]string{
		passkeyOptionsTag, passkeyRefTag, passkeyPrologueTag, passkeyNonceTag, passkeyRequestTag,
	}, tag)
}

// refusal is the answer to a query that the vendor refuses.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

var (
	badRequest = refusal{400, "bad-request"}
	forbidden  = refusal{403, "forbidden"}
	gone       = refusal{410, "gone"}
)

// query answers a query of a client that was asked for a passkey.
func (v passkeyLinks) query(c *conn, n *waBinary.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := c.pairing
	if p == nil || p.passkey == nil || p.link != nil {
		c.replyError(n, badRequest.code, badRequest.text)
		return
	}
	then, err := v.answer(p, n)
	if refused, ok := errors.AsType[refusal](err); ok {
		c.replyError(n, refused.code, refused.text)
		return
	}
	if then != nil {
		then()
	}
}

// answer handles a query. It returns what follows the answer. The caller holds v.mu.
func (v passkeyLinks) answer(p *pairing, n *waBinary.Node) (then func(), err error) {
	k, c := p.passkey, p.conn
	switch firstTag(n) {
	case passkeyOptionsTag:
		c.reply(n, k.options())
		return nil, nil
	case passkeyRefTag:
		k.ref = newRef()
		c.reply(n, waBinary.Node{Tag: passkeyRefTag, Content: []byte(k.ref)})
		return nil, nil
	case passkeyPrologueTag:
		err = v.prologue(p, n)
		then = func() { v.continueOn(p) }
	case passkeyNonceTag:
		err = v.reveal(k, content(n.GetChildByTag(passkeyNonceTag)))
	default:
		var secret []byte
		secret, err = k.open(content(n.GetChildByTag(passkeyRequestTag)), p.keys)
		then = func() { p.settleUnless(v.links.offer(p, k.phone, secret)) }
	}
	if err == nil {
		c.reply(n)
	}
	return then, err
}

// settleUnless settles a pairing that has failed.
func (p *pairing) settleUnless(err error) {
	if err != nil {
		p.settle(err)
	}
}

// prologue checks the answer of the account's passkey and the client's proof that it has shown the code
// that was scanned, and keeps what the client commits to.
func (v passkeyLinks) prologue(p *pairing, n *waBinary.Node) error {
	k := p.passkey
	child := func(tag string) []byte { return content(n.GetChildByTag(passkeyPrologueTag, tag)) }
	passkey, err := v.of(k.phone.number)
	if err != nil || passkey == nil || k.ephemeral != nil {
		return badRequest
	}
	if v.fails(k.phone.number, PasskeyExpired) || now().After(k.until) {
		return gone
	}
	if err := passkey.check(k.request.Challenge, child("credential_id"), child("webauthn_assertion")); err != nil {
		v.log.Info("passkey refused", "account", k.phone.number, "reason", err.Error())
		return forbidden
	}
	if v.fails(k.phone.number, PasskeyRefused) {
		return forbidden
	}
	return k.commit(child("prologue_payload"), child("pairing_handoff_proof"))
}

// commit reads what a client commits to.
func (k *passkeyPairing) commit(payload, proof []byte) error {
	var prologue waCompanionReg.ProloguePayload
	var peer waCompanionReg.CompanionEphemeralIdentity
	if proto.Unmarshal(payload, &prologue) != nil ||
		proto.Unmarshal(prologue.GetCompanionEphemeralIdentity(), &peer) != nil || len(peer.GetPublicKey()) != 32 ||
		len(prologue.GetCommitment().GetHash()) != sha256.Size || k.ref == "" || peer.GetRef() != k.ref {
		return badRequest
	}
	if len(proof) > 0 {
		if !k.proves(payload, proof) {
			return forbidden
		}
		k.proven = true
	}
	k.identity, k.peer, k.committed = prologue.GetCompanionEphemeralIdentity(), &peer, prologue.GetCommitment().GetHash()
	k.ephemeral, k.nonce = keys.NewKeyPair(), make([]byte, passkeyNonce)
	_, _ = rand.Read(k.nonce) // never fails
	return nil
}

// proves reports whether a proof was made with the secret of the scanned code.
func (k *passkeyPairing) proves(payload, proof []byte) bool {
	key, err := hkdf.Key(sha256.New, k.secret, nil, handoffLabel, 32)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(payload)
	return hmac.Equal(mac.Sum(nil), proof)
}

// continueOn lets the phone tell the client its key, unless its owner declines.
func (v passkeyLinks) continueOn(p *pairing) {
	k := p.passkey
	if v.fails(k.phone.number, PasskeyDeclined) {
		return
	}
	identity, err := proto.Marshal(&waCompanionReg.PrimaryEphemeralIdentity{
		PublicKey: k.ephemeral.Pub[:], Nonce: k.nonce,
	})
	if err != nil {
		p.settle(err)
		return
	}
	p.conn.send(notice("crsc_continuation", waBinary.Node{Tag: "primary_ephemeral_identity", Content: identity}))
}

// The alphabet of codes that people compare.
var linkingBase32 = base32.NewEncoding("123456789ABCDEFGHJKLMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// reveal checks the number that a client reveals against what it has committed to, and computes the
// code that the phone shows.
func (v passkeyLinks) reveal(k *passkeyPairing, nonce []byte) error {
	if k.ephemeral == nil || len(nonce) != passkeyNonce || k.key != nil {
		return badRequest
	}
	hash := sha256.Sum256(slices.Concat(k.identity, nonce))
	if v.fails(k.phone.number, PasskeyCommitment) || string(hash[:]) != string(k.committed) {
		return badRequest
	}
	shared, err := agree(*k.ephemeral.Priv, k.peer.GetPublicKey())
	if err != nil {
		return badRequest
	}
	salt := fmt.Sprintf("Companion Pairing %d with ref %s", k.peer.GetDeviceType(), k.ref)
	if k.key, err = hkdf.Key(sha256.New, shared, []byte(salt), pairingLabel, 32); err != nil {
		return badRequest
	}
	digest := sha256.Sum256(slices.Concat(nonce, k.ephemeral.Pub[:]))
	code := make([]byte, 5)
	for i := range code {
		code[i] = k.nonce[i] ^ digest[i]
	}
	text := linkingBase32.EncodeToString(code)
	k.code = text[:4] + "-" + text[4:]
	v.notify()
	return nil
}

// open returns the secret with which the client checks the link that it is offered.
func (k *passkeyPairing) open(sealed []byte, registered savedCompanion) ([]byte, error) {
	var wrapped waCompanionReg.EncryptedPairingRequest
	if k.key == nil || proto.Unmarshal(sealed, &wrapped) != nil || len(wrapped.GetIV()) != pairingIV {
		return nil, badRequest
	}
	block, err := aes.NewCipher(k.key)
	if err != nil {
		return nil, badRequest
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, badRequest
	}
	plain, err := gcm.Open(nil, wrapped.GetIV(), wrapped.GetEncryptedPayload(), nil)
	if err != nil {
		return nil, forbidden
	}
	var r waCompanionReg.PairingRequest
	if proto.Unmarshal(plain, &r) != nil || string(r.GetCompanionPublicKey()) != string(registered.Noise[:]) ||
		string(r.GetCompanionIdentityKey()) != string(registered.Identity[:]) || len(r.GetAdvSecret()) != 32 {
		return nil, forbidden
	}
	return r.GetAdvSecret(), nil
}
