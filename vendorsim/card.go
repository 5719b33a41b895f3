package vendorsim

import (
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

func contactsToWire(list []Contact, info *waE2E.ContextInfo) *waE2E.Message {
	cards := make([]*waE2E.ContactMessage, len(list))
	for i, c := range list {
		cards[i] = &waE2E.ContactMessage{DisplayName: &c.Name, Vcard: new(c.card())}
	}
	if len(cards) == 1 {
		cards[0].ContextInfo = info
		return &waE2E.Message{ContactMessage: cards[0]}
	}
	return &waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{Contacts: cards, ContextInfo: info}}
}

// card returns the contact as the vendor's apps write it: a vCard 3.0 with labels in groups.
func (c Contact) card() string {
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN:VCARD\nVERSION:3.0\nN:;%s;;;\nFN:%s\n", escaped(c.Name), escaped(c.Name))
	if c.Organization != "" {
		fmt.Fprintf(&b, "ORG:%s;\n", escaped(c.Organization))
	}
	for i, number := range c.PhoneNumbers {
		fmt.Fprintf(&b, "item%d.TEL;waid=%s:%s\nitem%d.X-ABLabel:Mobile\n", i+1, strings.TrimPrefix(number, "+"), number,
			i+1)
	}
	return b.String() + "END:VCARD"
}

// escapes are the characters of a value that a vCard escapes (RFC 2426, section 5).
var escapes = []string{`\`, `\\`, ",", `\,`, ";", `\;`, "\n", `\n`} //nolint:gochecknoglobals // a table

func escaped(s string) string { return strings.NewReplacer(escapes...).Replace(s) }

func unescaped(s string) string {
	back := make([]string, len(escapes))
	for i := 0; i < len(escapes); i += 2 {
		back[i], back[i+1] = escapes[i+1], escapes[i]
	}
	return strings.NewReplacer(back...).Replace(s)
}

func contactsOf(list ...*waE2E.ContactMessage) Content {
	c := Content{Type: TypeContact}
	for _, m := range list {
		c.Contacts = append(c.Contacts, contactOf(m))
	}
	return c
}

// contactOf reads the lines of a vCard that apps show.
func contactOf(m *waE2E.ContactMessage) Contact {
	c := Contact{Name: m.GetDisplayName(), PhoneNumbers: []string{}}
	for line := range strings.Lines(strings.ReplaceAll(m.GetVcard(), "\r\n ", "")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, params, _ := strings.Cut(name, ";")
		switch {
		case name == "ORG":
			c.Organization = unescaped(strings.TrimSuffix(value, ";"))
		case name == "TEL" && strings.Contains(strings.ToLower(params), "waid="):
			c.PhoneNumbers = append(c.PhoneNumbers, value)
		}
	}
	return c
}

func pollToWire(p Poll, info *waE2E.ContextInfo) *waE2E.Message {
	options := make([]*waE2E.PollCreationMessage_Option, len(p.Options))
	for i := range p.Options {
		options[i] = &waE2E.PollCreationMessage_Option{OptionName: &p.Options[i]}
	}
	return &waE2E.Message{
		PollCreationMessage: &waE2E.PollCreationMessage{
			Name: &p.Question, Options: options, ContextInfo: info,
			SelectableOptionsCount: new(uint32(p.MaxSelections)), //nolint:gosec // some options
		},
		MessageContextInfo: &waE2E.MessageContextInfo{MessageSecret: newSecret()},
	}
}

func pollOf(m *waE2E.PollCreationMessage) Content {
	p := Poll{Question: m.GetName(), MaxSelections: int(m.GetSelectableOptionsCount())}
	for _, o := range m.GetOptions() {
		p.Options = append(p.Options, o.GetOptionName())
	}
	return Content{Type: TypePoll, Poll: &p}
}
