package whatsapp

import (
	"errors"
	"strings"
	"testing"

	"postern/internal/network"
	"postern/internal/postern"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

func TestCopyForTheRecipient(t *testing.T) {
	t.Parallel()
	recipient, own := types.NewJID("1234", types.HiddenUserServer), types.NewJID("99", types.HiddenUserServer)
	companion := recipient
	companion.Device = 5
	to := func(jid types.JID, content ...waBinary.Node) waBinary.Node {
		return waBinary.Node{Tag: "to", Attrs: waBinary.Attrs{"jid": jid}, Content: content}
	}
	enc := waBinary.Node{Tag: "enc", Attrs: waBinary.Attrs{"type": "msg"}}
	canceled := errors.New("canceled")
	tests := []struct {
		name   string
		copies []waBinary.Node
		may    error
		want   fate
	}{
		{"nobody", nil, nil, refused},
		{"own phone only", []waBinary.Node{to(own, enc)}, nil, refused},
		{"a companion only", []waBinary.Node{to(companion, enc)}, nil, refused},
		{"an empty copy", []waBinary.Node{to(recipient)}, nil, refused},
		{"the phone", []waBinary.Node{to(own, enc), to(recipient, enc)}, nil, left},
		{"the phone, but too late", []waBinary.Node{to(own, enc), to(recipient, enc)}, canceled, withheld},
	}
	for _, tt := range tests {
		stopped := false
		var o outgoing
		o.expect(network.Outbound{NetworkID: "ID", Leave: func() error { return tt.may }}, func() { stopped = true })
		o.saw(
			&waBinary.Node{
				Tag:     "message",
				Attrs:   waBinary.Attrs{"id": "OTHER", "to": recipient},
				Content: []waBinary.Node{{Tag: "participants"}},
			},
		)
		o.saw(
			&waBinary.Node{
				Tag: "message", Attrs: waBinary.Attrs{"id": "ID", "to": recipient},
				Content: []waBinary.Node{enc},
			},
		)
		if stopped || o.fate != unseen {
			t.Fatal("another stanza was taken for the message")
		}
		o.saw(&waBinary.Node{
			Tag: "message", Attrs: waBinary.Attrs{"id": "ID", "to": recipient},
			Content: []waBinary.Node{{Tag: "participants", Content: tt.copies}},
		})
		if got, why := o.done(); got != tt.want || !errors.Is(why, tt.may) || stopped == (tt.want == left) {
			t.Errorf("%s: fate %d (%v), stopped %v, want %d", tt.name, got, why, stopped, tt.want)
		}
	}
}

// A message to a group is sent even if nobody gets a copy of their own, and Reach is told how many people get the key.
func TestCopyForAGroup(t *testing.T) {
	t.Parallel()
	own := types.NewJID("99", types.HiddenUserServer)
	to := func(user string, device uint16) waBinary.Node {
		jid := types.NewJID(user, types.HiddenUserServer)
		jid.Device = device
		return waBinary.Node{Tag: "to", Attrs: waBinary.Attrs{"jid": jid}}
	}
	people := -1
	o := outgoing{own: func() string { return own.User }}
	o.expect(network.Outbound{NetworkID: "ID", Reach: func(n int) { people = n }}, func() { t.Error("it was stopped") })
	o.saw(&waBinary.Node{
		Tag: "message", Attrs: waBinary.Attrs{"id": "ID", "to": types.NewJID("1203", types.GroupServer)},
		Content: []waBinary.Node{
			{Tag: "participants", Content: []waBinary.Node{to("1", 0), to("1", 3), to("2", 0), to("99", 2)}},
			{Tag: "enc", Attrs: waBinary.Attrs{"type": "skmsg"}},
		},
	})
	if got, why := o.done(); got != left || why != nil || people != 2 {
		t.Errorf("fate %d (%v) for %d people, want %d for 2", got, why, people, left)
	}
}

func TestRefusalsOfTheVendor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code int
		want postern.FailureCode
	}{{463, postern.RestrictedSender}, {479, postern.NetworkRejected}, {400, postern.NetworkRejected}}
	for _, tt := range tests {
		err := rejected(serverError(tt.code), types.EmptyJID)
		var r *network.Rejected
		if !asRejected(err, &r) || r.Code != tt.want || !strings.Contains(r.Detail, "4") {
			t.Errorf("code %d = %v, want %s", tt.code, err, tt.want)
		}
	}
}

// A send that is interrupted from outside is canceled in whatsmeow, where its answer may
// just be arriving (docs/decisions/0003).
func TestSendEndsByItself(t *testing.T) {
	t.Parallel()
	if answerTimeout >= sendTimeout || sendTimeout >= network.SendTimeout {
		t.Errorf("an answer has %v, a send %v, and the engine waits %v; want each shorter than the next",
			answerTimeout, sendTimeout, network.SendTimeout)
	}
}
