package vendorsim

import (
	"cmp"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waVnameCert"
	"google.golang.org/protobuf/proto"
)

// person is what the network tells others of a number. It is not stored, so it is lost when the Vendor is closed.
type person struct {
	hidden   bool   // it names the person by the hidden address only
	business string // the name that it has verified; "" for a person
	claims   number // the number by which it names the person instead; "" for the own one
}

// Hide makes the network name a number by its hidden address only, or ends that.
func (v *Vendor) Hide(num string, hidden bool) error {
	return v.people.change(num, func(p *person) { p.hidden = hidden })
}

// Verify gives a number the verified name of a business; "" takes it away.
func (v *Vendor) Verify(num, name string) error {
	return v.people.change(num, func(p *person) { p.business = name })
}

// Claim makes the network name a person by another number than its own, beside the hidden address; "" ends that.
func (v *core) Claim(num, other string) error {
	return v.people.change(num, func(p *person) { p.claims = number(strings.TrimPrefix(other, "+")) })
}

func (v people) change(num string, change func(*person)) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.persons[n]
	change(&p)
	v.persons[n] = p
	return nil
}

// business returns the verified name of a number; "" for none.
func (v people) business(n number) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.persons[n].business
}

// hides reports whether the network hides a number.
func (v people) hides(n number) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.persons[n].hidden
}

// introduce sets what the network tells of the sender of a text. The caller holds v.mu.
func (v people) introduce(t *text) {
	p := v.persons[t.From]
	t.Name, t.Hidden, t.Business, t.Claims = v.profiles[t.From].Name, p.hidden, p.business, p.claims
}

// claimed is the number by which the network names the sender.
func (t text) claimed() number { return cmp.Or(t.Claims, t.From) }

// verified returns the children of a message that tell the verified name of its sender.
func (t text) verified(attrs waBinary.Attrs) []waBinary.Node {
	if t.Business == "" || t.Peer {
		return nil
	}
	attrs["verified_level"] = "high"
	return []waBinary.Node{certificate(t.Business)}
}

// certificate returns the node by which the network confirms the name of a business.
func certificate(name string) waBinary.Node {
	details, err := proto.Marshal(&waVnameCert.VerifiedNameCertificate_Details{
		Serial: proto.Uint64(1), Issuer: proto.String("smb:wa"), VerifiedName: proto.String(name),
	})
	if err == nil {
		details, err = proto.Marshal(&waVnameCert.VerifiedNameCertificate{Details: details, Signature: []byte{1}})
	}
	if err != nil {
		panic(err) // these messages can always be encoded
	}
	return waBinary.Node{Tag: "verified_name", Attrs: waBinary.Attrs{"v": "1"}, Content: details}
}
