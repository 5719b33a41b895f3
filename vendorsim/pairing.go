package vendorsim

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mau.fi/libsignal/ecc"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

var (
	// ErrBadQR is returned by Scan for text that is not a whatsmeow QR code.
	ErrBadQR = errors.New("not a QR code for linking")
	// ErrStaleQR is returned by Scan when no connected client shows the code.
	ErrStaleQR = errors.New("no connected client shows this QR code")
	// ErrPairingRefused is returned by Scan when the client did not accept the link.
	ErrPairingRefused = errors.New("client refused the link")
	// ErrPairingLost is returned by Scan and EnterCode when the client closed its connection
	// before it answered.
	ErrPairingLost = errors.New("client left while it was being linked")

	// ErrPasskey is returned by Scan and EnterCode for a number that requires its passkey, see
	// [Vendor.RequirePasskey]. The client was asked for it, and the link continues with its answer.
	ErrPasskey = errors.New("the account asks for its passkey")
)

const (
	qrRefs      = 6 // how many codes a client may show
	refBytes    = 24
	pairOfferID = "pair-device-1"
	pairDoneID  = "pair-success-1"
)

// The prefixes that distinguish the signatures of a link. The first byte is the type of signature.
const (
	accountSignature = "\x06\x00"
	deviceSignature  = "\x06\x01"
)

// pairing is a client that shows QR codes. Its fields are guarded by core.mu.
type pairing struct {
	conn    *conn
	refs    []string
	keys    savedCompanion  // what the client registered, without a device number
	code    *codePairing    // when it asked for a code to be entered on a phone
	passkey *passkeyPairing // when it was asked for the passkey of the account
	link    *link           // set after a phone has scanned the code
	settled chan error      // gets the outcome, once
}

// link is the link that a phone has offered to a client.
type link struct {
	companion  *companion
	details    []byte // what both sides sign
	accountKey []byte
}

func (p *pairing) key() string { return string(p.keys.Identity[:]) }

func (p *pairing) settle(err error) {
	select {
	case p.settled <- err:
	default:
	}
}

// offerPairing sends a new client the references for its QR codes.
func (v links) offerPairing(c *conn, static [32]byte, reg *waWa6.ClientPayload_DevicePairingRegistrationData) error {
	saved, err := registration(static, reg)
	if err != nil {
		return err
	}
	p := &pairing{conn: c, keys: saved, settled: make(chan error, 1)}
	nodes := make([]waBinary.Node, qrRefs)
	for i := range nodes {
		ref := newRef()
		p.refs = append(p.refs, ref)
		nodes[i] = waBinary.Node{Tag: "ref", Content: []byte(ref)}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	c.pairing = p
	v.pairings[p.key()] = p
	c.send(pairingIQ(pairOfferID, waBinary.Node{Tag: "pair-device", Content: nodes}))
	return nil
}

func newRef() string {
	b := make([]byte, refBytes)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func pairingIQ(id string, child waBinary.Node) waBinary.Node {
	return waBinary.Node{
		Tag: "iq",
		Attrs: waBinary.Attrs{
			"from": types.ServerJID, "type": "set", "id": id, "xmlns": "md", "t": time.Now().Unix(),
		},
		Content: []waBinary.Node{child},
	}
}

// registration reads the keys that a client registers.
func registration(static [32]byte, reg *waWa6.ClientPayload_DevicePairingRegistrationData) (savedCompanion, error) {
	id, signed, sig := reg.GetEIdent(), reg.GetESkeyVal(), reg.GetESkeySig()
	if len(id) != 32 || len(signed) != 32 || len(sig) != 64 || len(reg.GetERegid()) != 4 || len(reg.GetESkeyID()) != 3 {
		return savedCompanion{}, fmt.Errorf("%w: registration with keys of a wrong size", errHandshake)
	}
	return savedCompanion{
		Noise:    static,
		Identity: [32]byte(id),
		RegID:    binary.BigEndian.Uint32(reg.GetERegid()),
		SignedID: bigEndian24(reg.GetESkeyID()),
		Signed:   [32]byte(signed),
		Sig:      slices.Clone(sig),
	}, nil
}

// qrCode is the content of a QR code, in order.
type qrCode struct {
	ref                     string
	noise, identity, secret []byte
}

func parseQR(text string) (qrCode, error) {
	if i := strings.IndexByte(text, '#'); i >= 0 {
		text = text[i+1:]
	}
	parts := strings.Split(text, ",")
	if len(parts) < 4 {
		return qrCode{}, ErrBadQR
	}
	code := qrCode{ref: parts[0]}
	for i, dst := range []*[]byte{&code.noise, &code.identity, &code.secret} {
		b, err := base64.StdEncoding.DecodeString(parts[i+1])
		if err != nil {
			return qrCode{}, fmt.Errorf("%w: %w", ErrBadQR, err)
		}
		*dst = b
	}
	return code, nil
}

// Scan makes the phone of a number ("+15550001111") scan the text of a QR code, and returns when the
// client is linked. The client logs in by itself a moment later. Each client that is linked to a
// number becomes a separate companion. Do not call Scan from a whatsmeow event handler, because the
// client could not answer.
func (v *Vendor) Scan(ctx context.Context, qr, num string) error {
	code, err := parseQR(qr)
	if err != nil {
		return err
	}
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	ph, err := v.phoneOf(n)
	if err != nil {
		return err
	}
	p, err := v.links.offerLink(code, ph)
	if err != nil {
		return err
	}
	return v.links.outcome(ctx, p)
}

// outcome waits until a client has accepted or refused the link that it was offered.
func (v links) outcome(ctx context.Context, p *pairing) error {
	select {
	case err := <-p.settled:
		return err
	case <-v.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// offerLink offers the link to the client that shows the code.
func (v links) offerLink(code qrCode, ph *phone) (*pairing, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pairings[string(code.identity)]
	if p == nil || p.link != nil || p.passkey != nil || !slices.Contains(p.refs, code.ref) ||
		string(code.noise) != string(p.keys.Noise[:]) {
		return nil, ErrStaleQR
	}
	return p, v.offerTo(p, ph, code.secret)
}

// offerTo sends a client the link that the phone has signed, or first asks it for the passkey of the
// account. The caller holds v.mu.
func (v links) offerTo(p *pairing, ph *phone, secret []byte) error {
	passkey, err := v.passkeyLinks.of(ph.number)
	if err != nil {
		return err
	}
	if passkey != nil {
		v.passkeyLinks.ask(p, ph, secret)
		return ErrPasskey
	}
	return v.offer(p, ph, secret)
}

// offer sends a client the link that the phone has signed. The caller holds v.mu.
func (v links) offer(p *pairing, ph *phone, secret []byte) error {
	cp := &companion{account: v.accounts[ph.number], saved: p.keys}
	if cp.account == nil {
		cp.account = &account{number: ph.number}
	}
	var err error
	if cp.saved.Device, err = v.devices.freeDevice(cp.account); err != nil {
		return err
	}
	sealed, l, err := ph.signLink(cp, secret)
	if err != nil {
		return err
	}
	p.link = l
	p.conn.send(pairingIQ(pairDoneID, waBinary.Node{Tag: "pair-success", Content: []waBinary.Node{
		{Tag: "device", Attrs: waBinary.Attrs{"jid": cp.pn(), "lid": cp.lid()}},
		{Tag: "platform", Attrs: waBinary.Attrs{"name": "android"}},
		{Tag: "device-identity", Content: sealed},
	}}))
	return nil
}

// signLink makes the identity of a companion. It is signed by the account's key, and sealed with the
// secret that only the QR code contains.
func (p *phone) signLink(cp *companion, secret []byte) ([]byte, *link, error) {
	details, err := proto.Marshal(&waAdv.ADVDeviceIdentity{
		RawID:     proto.Uint32(1),
		Timestamp: new(unix(time.Now())),
		KeyIndex:  new(uint32(cp.saved.Device)),
	})
	if err != nil {
		return nil, nil, err
	}
	me := p.device.IdentityKey
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*me.Priv),
		slices.Concat([]byte(accountSignature), details, cp.saved.Identity[:]))
	signed, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentity{
		Details: details, AccountSignatureKey: me.Pub[:], AccountSignature: sig[:],
	})
	if err != nil {
		return nil, nil, err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(signed)
	sealed, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: signed, HMAC: mac.Sum(nil)})
	return sealed, &link{companion: cp, details: details, accountKey: me.Pub[:]}, err
}

// finishPairing handles a client's answer to the link that it was offered.
func (v links) finishPairing(c *conn, n *waBinary.Node) {
	p := v.answered(c, n)
	if p == nil {
		return
	}
	if err := p.link.verify(n); err != nil {
		c.finish(linger)
		p.settle(err)
		return
	}
	cp := p.link.companion
	v.mu.Lock()
	v.devices.addCompanion(cp)
	v.mu.Unlock()
	v.devices.tellDevices(cp.account.number)
	v.log.Info("companion linked", "account", cp.account.number, "device", cp.saved.Device)
	c.sendLast(streamError("515", ""), pairedLinger)
	p.settle(v.flush())
}

// answered ends the pairing that a node answers, and returns it. It returns nil if there is none.
func (v links) answered(c *conn, n *waBinary.Node) *pairing {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := c.pairing
	if p == nil || p.link == nil || attr(n, "id") != pairDoneID {
		return nil
	}
	v.dropPairing(c, p)
	return p
}

// dropPairing ends a pairing. The caller holds v.mu.
func (v links) dropPairing(c *conn, p *pairing) {
	delete(v.pairings, p.key())
	c.pairing = nil
}

// verify checks that the client accepted and signed with the key that it registered.
func (l *link) verify(n *waBinary.Node) error {
	if attr(n, "type") != "result" {
		e := n.GetChildByTag("error")
		return fmt.Errorf("%w: %s %s", ErrPairingRefused, attr(&e, "code"), attr(&e, "text"))
	}
	var signed waAdv.ADVSignedDeviceIdentity
	raw := content(n.GetChildByTag("pair-device-sign", "device-identity"))
	if err := proto.Unmarshal(raw, &signed); err != nil || len(signed.GetDeviceSignature()) != 64 {
		return fmt.Errorf("%w: no signature of the device", ErrPairingRefused)
	}
	id := l.companion.saved.Identity
	message := slices.Concat([]byte(deviceSignature), l.details, id[:], l.accountKey)
	if !ecc.VerifySignature(ecc.NewDjbECPublicKey(id), message, [64]byte(signed.GetDeviceSignature())) {
		return fmt.Errorf("%w: wrong signature of the device", ErrPairingRefused)
	}
	return nil
}

// signedPreKey is the companion's signed prekey in whatsmeow's form.
func (s *savedCompanion) signedPreKey() *keys.PreKey {
	pub := s.Signed
	k := &keys.PreKey{KeyPair: keys.KeyPair{Pub: &pub}, KeyID: s.SignedID}
	if len(s.Sig) == 64 {
		k.Signature = (*[64]byte)(slices.Clone(s.Sig))
	}
	return k
}
