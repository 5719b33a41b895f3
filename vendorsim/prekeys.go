package vendorsim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/util/optional"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

const (
	// lowPreKeys is the number of prekeys at which a companion is asked for more.
	lowPreKeys = 5
	// maxPreKeys is how many prekeys of a companion the vendor stores.
	maxPreKeys = 2000
)

var errBadKeys = errors.New("malformed keys")

// bundle holds the keys that begin a Signal session with a device.
type bundle struct {
	regID    uint32
	device   uint16
	identity [32]byte
	signed   *keys.PreKey
	once     *keys.PreKey // one-time prekey; nil if none is left
}

// signal returns the bundle in libsignal's form.
func (b bundle) signal() (*prekey.Bundle, error) {
	if b.signed == nil || b.signed.Signature == nil {
		return nil, fmt.Errorf("%w: no signed prekey", errBadKeys)
	}
	id, pub := optional.NewEmptyUint32(), ecc.ECPublicKeyable(nil)
	if b.once != nil {
		id, pub = optional.NewOptionalUint32(b.once.KeyID), ecc.NewDjbECPublicKey(*b.once.Pub)
	}
	return prekey.NewBundle(b.regID, uint32(b.device), id, b.signed.KeyID, pub,
		ecc.NewDjbECPublicKey(*b.signed.Pub), *b.signed.Signature,
		identity.NewKey(ecc.NewDjbECPublicKey(b.identity))), nil
}

// nodes returns the bundle in the form of the answer to a prekey query.
func (b bundle) nodes() []waBinary.Node {
	out := []waBinary.Node{
		{Tag: "registration", Content: binary.BigEndian.AppendUint32(nil, b.regID)},
		{Tag: "type", Content: []byte{ecc.DjbType}},
		{Tag: "identity", Content: b.identity[:]},
		keyNode("skey", b.signed),
	}
	if b.once != nil {
		out = append(out, keyNode("key", b.once))
	}
	return out
}

func keyNode(tag string, k *keys.PreKey) waBinary.Node {
	id := binary.BigEndian.AppendUint32(nil, k.KeyID)
	children := []waBinary.Node{{Tag: "id", Content: id[1:]}, {Tag: "value", Content: k.Pub[:]}}
	if k.Signature != nil {
		children = append(children, waBinary.Node{Tag: "signature", Content: k.Signature[:]})
	}
	return waBinary.Node{Tag: tag, Content: children}
}

// parseKey parses a prekey of a client. The signature is optional.
func parseKey(n waBinary.Node) (*keys.PreKey, error) {
	id, value := content(n.GetChildByTag("id")), content(n.GetChildByTag("value"))
	sig := content(n.GetChildByTag("signature"))
	if len(id) != 3 || len(value) != 32 {
		return nil, fmt.Errorf("%w: id of %d bytes, key of %d", errBadKeys, len(id), len(value))
	}
	pub := [32]byte(value)
	k := &keys.PreKey{KeyPair: keys.KeyPair{Pub: &pub}, KeyID: bigEndian24(id)}
	if len(sig) == 64 {
		k.Signature = (*[64]byte)(slices.Clone(sig))
	}
	return k, nil
}

func bigEndian24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func prekeyKey(cp *companion, id uint32) string { return fmt.Sprintf("prekey/%s/%d", cp.name(), id) }

// uploadKeys stores the prekeys that a companion uploads.
func (v prekeys) uploadKeys(c *conn, n *waBinary.Node) {
	signed, err := parseKey(n.GetChildByTag("skey"))
	if err != nil || signed.Signature == nil {
		c.replyError(n, 400, "bad-request")
		return
	}
	list := n.GetChildByTag("list")
	v.mu.Lock()
	defer v.mu.Unlock()
	cp := c.companion
	cp.saved.SignedID, cp.saved.Signed, cp.saved.Sig = signed.KeyID, *signed.Pub, signed.Signature[:]
	for _, child := range list.GetChildren() {
		if k, err := parseKey(child); err == nil {
			v.storePreKey(cp, k)
		}
	}
	v.devices.saveCompanion(cp)
	c.reply(n)
}

func (v prekeys) storePreKey(cp *companion, k *keys.PreKey) {
	same := func(x *keys.PreKey) bool { return x.KeyID == k.KeyID }
	if len(cp.prekeys) >= maxPreKeys || slices.ContainsFunc(cp.prekeys, same) {
		return
	}
	cp.prekeys = append(cp.prekeys, k)
	v.putRaw(prekeyKey(cp, k.KeyID), k.Pub[:])
}

// countKeys answers with at least 1. If whatsmeow gets 0 at its first login, it makes and uploads
// 812 prekeys instead of 50, which takes 300 ms.
func (v prekeys) countKeys(c *conn, n *waBinary.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	left := max(len(c.companion.prekeys), 1)
	c.reply(n, waBinary.Node{Tag: "count", Attrs: waBinary.Attrs{"value": left}})
}

// takeBundle hands out one of a companion's prekeys. The caller holds v.mu.
func (v prekeys) takeBundle(cp *companion) bundle {
	b := bundle{
		regID: cp.saved.RegID, device: cp.saved.Device, identity: cp.saved.Identity, signed: cp.saved.signedPreKey(),
	}
	if len(cp.prekeys) == 0 {
		return b
	}
	b.once = cp.prekeys[0]
	cp.prekeys = cp.prekeys[1:]
	v.remove(prekeyKey(cp, b.once.KeyID))
	if len(cp.prekeys) == lowPreKeys-1 {
		v.queues.deliverNotice(cp, "encrypt", types.ServerJID, waBinary.Node{
			Tag: "count", Attrs: waBinary.Attrs{"value": len(cp.prekeys)},
		})
	}
	return b
}

// fetchKeys answers a client's query for the keys to begin sessions.
func (v prekeys) fetchKeys(c *conn, n *waBinary.Node) {
	query := n.GetChildByTag("key")
	var users []waBinary.Node
	for _, u := range query.GetChildren() {
		jid, ok := attrJID(&u, "jid")
		if !ok {
			continue
		}
		user := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": jid}}
		if b, ok := v.bundleFor(jid); ok {
			user.Content = b.nodes()
		} else {
			user.Content = []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": 404, "text": "not-found"}}}
		}
		users = append(users, user)
	}
	c.reply(n, waBinary.Node{Tag: "list", Content: users})
}

// bundleFor returns keys of the device at an address: of a phone, which is created if it does not
// exist, or of a companion.
func (v prekeys) bundleFor(jid types.JID) (bundle, bool) {
	n, ok := numberOf(jid)
	if !ok || !n.exists() {
		return bundle{}, false
	}
	if jid.Device == 0 {
		p, err := v.phoneOf(n)
		if err != nil {
			return bundle{}, false
		}
		return p.bundle(), true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	cp := v.devices.companion(n, jid.Device)
	if cp == nil {
		return bundle{}, false
	}
	return v.takeBundle(cp), true
}
