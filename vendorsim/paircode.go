package vendorsim

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

var (
	// ErrNoCode is returned by EnterCode when no connected client waits for a
	// code to be entered on the phone of that number.
	ErrNoCode = errors.New("no connected client waits for a pairing code on this phone")
	// ErrWrongCode is returned by EnterCode for a code that the client does not
	// show. It ends the client's pairing.
	ErrWrongCode = errors.New("not the code that the client shows")

	errBadBundle = errors.New("malformed key bundle")
)

const (
	codeRounds   = 2 << 16 // of PBKDF2, as the real client has it
	saltSize     = 32
	wrappedSize  = saltSize + aes.BlockSize + 32
	bundleNonce  = 12
	bundleSize   = 3 * 32 // the client's identity, the phone's, and randomness
	codeTag      = "link_code_companion_reg"
	codeRefTag   = "link_code_pairing_ref"
	wrappedTag   = "link_code_pairing_wrapped_companion_ephemeral_pub"
	phoneTag     = "link_code_pairing_wrapped_primary_ephemeral_pub"
	bundleTag    = "link_code_pairing_wrapped_key_bundle"
	bundleLabel  = "link_code_pairing_key_bundle_encryption_key"
	advSecretTag = "adv_secret"
)

// codePairing is a client that waits for its code to be entered on a phone. Its
// fields are guarded by core.mu.
type codePairing struct {
	number    number
	ref       string
	wrapped   []byte        // the client's ephemeral key under its code
	phone     *phone        // the phone on which a code was entered; nil before
	ephemeral *keys.KeyPair // the phone's ephemeral key
	peer      []byte        // the client's ephemeral key, as decrypted with the entered code
}

// linkByCode handles the stages of a pairing by code that come from the client.
func (v codes) linkByCode(c *conn, n *waBinary.Node) {
	reg := n.GetChildByTag(codeTag)
	switch attr(&reg, "stage") {
	case "companion_hello":
		v.codeHello(c, n, &reg)
	case "companion_finish":
		v.codeFinish(c, n, &reg)
	default:
		c.replyError(n, 400, "bad-request")
	}
}

// codeHello stores the number that a client wants to be linked to.
func (v codes) codeHello(c *conn, n, reg *waBinary.Node) {
	jid, _ := attrJID(reg, "jid")
	num, ok := numberOf(jid)
	wrapped := content(reg.GetChildByTag(wrappedTag))
	v.mu.Lock()
	defer v.mu.Unlock()
	p := c.pairing
	key := content(reg.GetChildByTag("companion_server_auth_key_pub"))
	if p == nil || p.link != nil || len(wrapped) != wrappedSize || string(key) != string(p.keys.Noise[:]) {
		c.replyError(n, 400, "bad-request")
		return
	}
	if !ok || !num.exists() {
		c.replyError(n, 404, "item-not-found")
		return
	}
	p.code = &codePairing{number: num, ref: newRef(), wrapped: slices.Clone(wrapped)}
	c.reply(n, waBinary.Node{Tag: codeTag, Content: []waBinary.Node{{Tag: codeRefTag, Content: []byte(p.code.ref)}}})
	v.notify()
}

// EnterCode enters a pairing code on the phone of a number ("+15550001111"), and
// returns when the client is linked, like [Vendor.Scan]. Case and the dash are
// ignored. A wrong code ends the client's pairing.
func (v *Vendor) EnterCode(ctx context.Context, code, num string) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	ph, err := v.phoneOf(n)
	if err != nil {
		return err
	}
	p, c := v.codes.awaitingCode(n)
	if p == nil {
		return ErrNoCode
	}
	hello, err := c.enter(ph, code)
	if err != nil {
		return err
	}
	if !v.codes.sendHello(p, c, hello) {
		return ErrNoCode
	}
	return v.links.outcome(ctx, p)
}

// awaitingCode finds the client that waits for a code of a number, and returns a
// copy of its state.
func (v codes) awaitingCode(n number) (*pairing, codePairing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pairings {
		if p.code != nil && p.code.number == n && p.code.phone == nil {
			return p, *p.code
		}
	}
	return nil, codePairing{}
}

// enter performs the phone's part of a pairing: it opens the client's key with the
// code, and wraps a key of its own in the same way.
func (c *codePairing) enter(ph *phone, code string) (hello waBinary.Node, err error) {
	code = strings.ToUpper(strings.ReplaceAll(code, "-", ""))
	salt, rest := c.wrapped[:saltSize], c.wrapped[saltSize:]
	if c.peer, err = wrapKey(code, salt, rest[:aes.BlockSize], rest[aes.BlockSize:]); err != nil {
		return hello, err
	}
	c.phone, c.ephemeral = ph, keys.NewKeyPair()
	head := make([]byte, saltSize+aes.BlockSize)
	_, _ = rand.Read(head) // never fails
	mine, err := wrapKey(code, head[:saltSize], head[saltSize:], c.ephemeral.Pub[:])
	return waBinary.Node{
		Tag: "notification", Attrs: waBinary.Attrs{"from": types.ServerJID, "type": codeTag, "id": newRef()},
		Content: []waBinary.Node{{
			Tag: codeTag, Attrs: waBinary.Attrs{"stage": "primary_hello"},
			Content: []waBinary.Node{
				{Tag: codeRefTag, Content: []byte(c.ref)},
				{Tag: phoneTag, Content: slices.Concat(head, mine)},
				{Tag: "primary_identity_pub", Content: ph.device.IdentityKey.Pub[:]},
			},
		}},
	}, err
}

// wrapKey seals or opens a key with a code. Both are the same operation.
func wrapKey(code string, salt, iv, key []byte) ([]byte, error) {
	secret, err := pbkdf2.Key(sha256.New, code, salt, codeRounds, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(key))
	cipher.NewCTR(block, iv).XORKeyStream(out, key)
	return out, nil
}

// sendHello tells the client that a code was entered, unless it has disconnected or
// another code was entered earlier.
func (v codes) sendHello(p *pairing, c codePairing, hello waBinary.Node) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.pairings[p.key()] != p || p.link != nil || p.code == nil || p.code.ref != c.ref || p.code.phone != nil {
		return false
	}
	*p.code = c
	p.conn.send(hello)
	return true
}

// codeFinish opens the client's key bundle and offers the client the link. It
// succeeds only if the entered code is the one that the client shows. Otherwise the
// vendor answers with an error and ends the pairing; the client gets its next code
// on a new connection.
func (v codes) codeFinish(c *conn, n, reg *waBinary.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := c.pairing
	ref := string(content(reg.GetChildByTag(codeRefTag)))
	if p == nil || p.link != nil || p.passkey != nil || p.code == nil || p.code.phone == nil || ref != p.code.ref {
		c.replyError(n, 400, "bad-request")
		return
	}
	secret, err := p.code.open(content(reg.GetChildByTag(bundleTag)), p.keys.Identity)
	if err == nil {
		c.reply(n)
		err = v.links.offerTo(p, p.code.phone, secret)
	} else {
		c.replyError(n, 403, "forbidden")
	}
	if err != nil && !errors.Is(err, ErrPasskey) {
		v.links.dropPairing(c, p)
	}
	if err != nil {
		p.settle(err)
	}
}

// open returns the secret with which the client checks the link that it is offered.
func (c *codePairing) open(bundle []byte, identity [32]byte) ([]byte, error) {
	if len(bundle) < saltSize+bundleNonce {
		return nil, errBadBundle
	}
	shared, err := agree(*c.ephemeral.Priv, c.peer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongCode, err)
	}
	plain, err := openBundle(shared, bundle)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongCode, err)
	}
	me := c.phone.device.IdentityKey
	if len(plain) != bundleSize || string(plain[:32]) != string(identity[:]) ||
		string(plain[32:64]) != string(me.Pub[:]) {
		return nil, errBadBundle
	}
	both, err := agree(*me.Priv, identity[:])
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, slices.Concat(shared, both, plain[64:]), nil, advSecretTag, 32)
}

func openBundle(shared, bundle []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, shared, bundle[:saltSize], bundleLabel, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, bundle[saltSize:saltSize+bundleNonce], bundle[saltSize+bundleNonce:], nil)
}

// agree returns the shared secret of X25519.
func agree(priv [32]byte, peer []byte) ([]byte, error) {
	mine, err := ecdh.X25519().NewPrivateKey(priv[:])
	if err != nil {
		return nil, err
	}
	theirs, err := ecdh.X25519().NewPublicKey(peer)
	if err != nil {
		return nil, err
	}
	return mine.ECDH(theirs)
}
