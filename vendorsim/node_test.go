package vendorsim

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"testing"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/binary/token"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// honest are nodes as whatsmeow sends them.
func honest() []waBinary.Node {
	peer, me := number("15550002222").lid(), number("15550001111")
	enc := []waBinary.Node{{
		Tag: "enc", Attrs: waBinary.Attrs{"v": "2", "type": "pkmsg"},
		Content: []byte{0x33, 1, 2, 3},
	}}
	iq := func(xmlns, kind string, child waBinary.Node) waBinary.Node {
		return waBinary.Node{
			Tag: "iq", Attrs: waBinary.Attrs{"id": "1.2-3", "xmlns": xmlns, "type": kind, "to": types.ServerJID},
			Content: []waBinary.Node{child},
		}
	}
	users := []waBinary.Node{
		{Tag: "user", Attrs: waBinary.Attrs{"jid": peer}},
		{Tag: "user", Content: []waBinary.Node{{Tag: "contact", Content: "+15550002222@c.us"}}},
	}
	key := keyNode("skey", me.testKey())
	return []waBinary.Node{
		{Tag: "message", Attrs: waBinary.Attrs{"id": "3EB0AA", "to": peer, "type": "text"}, Content: []waBinary.Node{
			{Tag: "participants", Content: []waBinary.Node{
				{Tag: "to", Attrs: waBinary.Attrs{"jid": peer}, Content: enc},
				{Tag: "to", Attrs: waBinary.Attrs{"jid": withDevice(me.lid(), 2)}, Content: enc},
			}},
		}},
		{Tag: "message", Attrs: waBinary.Attrs{"id": "3EB0AB", "to": me.pn(), "category": "peer"}, Content: enc},
		{Tag: "receipt", Attrs: waBinary.Attrs{"id": "3EB0AA", "to": peer, "type": "retry"}, Content: []waBinary.Node{
			{Tag: "retry", Attrs: waBinary.Attrs{"id": "3EB0AA", "count": 1}},
			{Tag: "registration", Content: []byte{0, 0, 0, 1}},
			{Tag: "keys", Content: []waBinary.Node{{Tag: "identity", Content: key.GetChildren()[1].Content}, key}},
		}},
		{Tag: "receipt", Attrs: waBinary.Attrs{"id": "3EB0AA", "to": peer, "type": "read"}},
		{Tag: "ack", Attrs: waBinary.Attrs{"id": "3EB0AA", "class": "message", "to": peer, "error": 487}},
		iq("encrypt", "get", waBinary.Node{Tag: "count"}),
		iq("encrypt", "get", waBinary.Node{Tag: "key", Content: users[:1]}),
		iq("encrypt", "set", waBinary.Node{Tag: "registration", Content: []byte{0, 0, 0, 1}}),
		iq("usync", "get", waBinary.Node{Tag: "usync", Content: []waBinary.Node{{Tag: "list", Content: users}}}),
		iq("md", "set", waBinary.Node{Tag: "remove-companion-device"}),
		iq("", "result", waBinary.Node{Tag: "pair-device-sign"}),
	}
}

func (n number) testKey() *keys.PreKey {
	k := keys.NewKeyPair()
	signed := keys.NewKeyPair()
	return &keys.PreKey{KeyPair: *signed, KeyID: 7, Signature: k.Sign(signed)}
}

func TestHonestNodesAreDecoded(t *testing.T) {
	t.Parallel()
	for _, n := range honest() {
		raw := encodeNode(n)
		got, err := decodeNode(raw)
		if err != nil || got.Tag != n.Tag {
			t.Errorf("decode %s: %v, %v", n.Tag, got, err)
		}
		var packed bytes.Buffer
		packed.WriteByte(2)
		z := zlib.NewWriter(&packed)
		_, _ = z.Write(raw[1:])
		_ = z.Close()
		if got, err := decodeNode(packed.Bytes()); err != nil || got.Tag != n.Tag {
			t.Errorf("decode compressed %s: %v, %v", n.Tag, got, err)
		}
	}
}

func TestMalformedNodesAreRefused(t *testing.T) {
	t.Parallel()
	deep := []byte{0}
	for range 2 * maxDepth {
		deep = append(deep, token.List8, 2, 5, token.List8, 1)
	}
	wide := []byte{0, token.List8, 2, 5, token.List16, 0xFF, 0xFF}
	for name, raw := range map[string][]byte{
		"empty":               {},
		"nothing":             {0},
		"no list":             {0, 5},
		"empty list":          {0, token.List8, 0},
		"tag is an address":   {0, token.List8, 1, token.JIDPair, 0, 5},
		"odd length of none":  {0, token.List8, 1, token.Nibble8, 0x80},
		"text cut short":      {0, token.List8, 1, token.Binary32, 0x7F, 0xFF, 0xFF, 0xFF, 1},
		"left over":           {0, token.List8, 1, 5, 5},
		"user is a list":      {0, token.List8, 3, 5, 6, token.JIDPair, token.List8, 1, 5, 5},
		"server is missing":   {0, token.List8, 3, 5, 6, token.JIDPair, 5, 0},
		"not compressed":      {2, 1, 2, 3},
		"deep":                deep,
		"more than there are": wide,
	} {
		if n, err := decodeNode(raw); err == nil {
			t.Errorf("%s: decoded as %v", name, n)
		} else if !errors.Is(err, errBadNode) {
			t.Errorf("%s: error is %v, want %v", name, err, errBadNode)
		}
	}
}

func FuzzDecodeNode(f *testing.F) {
	for _, n := range honest() {
		f.Add(encodeNode(n))
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		n, err := decodeNode(raw)
		if err == nil {
			_ = encodeNode(*n)
		}
	})
}

// FuzzHandle gives a vendor any node that decodes, from a companion that is logged in.
func FuzzHandle(f *testing.F) {
	for _, n := range honest() {
		f.Add(encodeNode(n))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := decodeNode(raw)
		if err != nil {
			return
		}
		v, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := loggedIn(v, "15550001111")
		loggedIn(v, "15550002222")
		if _, err := v.Send(context.Background(), "+15550001111", "+15550002222", "to be answered"); err != nil {
			t.Fatal(err)
		}
		v.sockets.handle(context.Background(), c, n)
		v.sockets.handle(context.Background(), c, n)
		c.mu.Lock()
		c.writing = true // no goroutine drains it
		c.mu.Unlock()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// loggedIn links a companion with no client behind it: what it is sent piles up.
func loggedIn(v *Vendor, n number) *conn {
	k := n.testKey()
	cp := &companion{account: &account{number: n}, saved: savedCompanion{Device: 2, RegID: 1}}
	me := keys.NewKeyPair()
	cp.saved.Identity, cp.saved.Signed, cp.saved.SignedID, cp.saved.Sig = *me.Pub, *k.Pub, k.KeyID,
		me.Sign(&k.KeyPair)[:]
	c := &conn{core: v.core, writing: true}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.devices.addCompanion(cp)
	v.logins.attach(c, cp)
	return c
}
