package content

import (
	"bytes"
	"fmt"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"github.com/emersion/go-vcard"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// numberParam is the parameter of a phone number in a vCard by which the network's apps
// find the account of the number.
const numberParam = "waid"

func contactsToWire(list []postern.Contact, info *waE2E.ContextInfo) (*waE2E.Message, error) {
	cards := make([]*waE2E.ContactMessage, len(list))
	for i, c := range list {
		card, err := encodeCard(c)
		if err != nil {
			return nil, &network.Rejected{Code: postern.NetworkRejected, Detail: "a contact has no form on the network"}
		}
		cards[i] = &waE2E.ContactMessage{DisplayName: &c.Name, Vcard: &card}
	}
	if len(cards) == 1 {
		cards[0].ContextInfo = info
		return &waE2E.Message{ContactMessage: cards[0]}, nil
	}
	title := fmt.Sprintf("%d contacts", len(cards))
	return &waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{
		DisplayName: &title, Contacts: cards, ContextInfo: info,
	}}, nil
}

// encodeCard returns a contact as a vCard 3.0 (RFC 2426).
func encodeCard(c postern.Contact) (string, error) {
	card := vcard.Card{}
	card.SetValue(vcard.FieldVersion, "3.0")
	card.SetValue(vcard.FieldFormattedName, c.Name)
	card.SetName(&vcard.Name{GivenName: c.Name})
	if c.Organization != "" {
		card.SetValue(vcard.FieldOrganization, c.Organization)
	}
	for _, number := range c.PhoneNumbers {
		card.Add(vcard.FieldTelephone, &vcard.Field{Value: number, Params: vcard.Params{
			vcard.ParamType: {"CELL"}, numberParam: {strings.TrimPrefix(number, "+")},
		}})
	}
	var b bytes.Buffer
	err := vcard.NewEncoder(&b).Encode(card)
	return b.String(), err
}

func contactsFromWire(list []*waE2E.ContactMessage) postern.Content {
	var text clipper
	if len(list) > maxCards {
		list, text.cut = list[:maxCards], true
	}
	contacts := make([]postern.Contact, len(list))
	for i, m := range list {
		contacts[i] = contactFromWire(m, &text)
	}
	if len(contacts) == 0 {
		return postern.Unsupported("contactsArray")
	}
	return postern.Content{Kind: postern.KindContact, Truncated: text.cut, Extra: postern.Extra{Contacts: contacts}}
}

// contactFromWire returns a contact with at least its name, even if its vCard cannot be read.
func contactFromWire(m *waE2E.ContactMessage, text *clipper) postern.Contact {
	c := postern.Contact{Name: text.bytes(m.GetDisplayName(), postern.MaxContactName), PhoneNumbers: []string{}}
	card := decodeCard(m.GetVcard())
	if card == nil {
		text.cut = text.cut || m.GetVcard() != ""
		return c
	}
	if c.Name == "" {
		c.Name = text.bytes(card.PreferredValue(vcard.FieldFormattedName), postern.MaxContactName)
	}
	c.Organization = text.bytes(strings.Trim(card.Value(vcard.FieldOrganization), ";"), postern.MaxContactName)
	numbers := card[vcard.FieldTelephone]
	if len(numbers) > maxNumbers {
		numbers, text.cut = numbers[:maxNumbers], true
	}
	for _, f := range numbers {
		c.PhoneNumbers = append(c.PhoneNumbers, numberOf(f, text))
	}
	return c
}

// decodeCard returns a vCard, or nil if it is too long or cannot be read.
func decodeCard(s string) vcard.Card {
	if len(s) > maxCard {
		return nil
	}
	card, err := vcard.NewDecoder(strings.NewReader(s)).Decode()
	if err != nil {
		return nil
	}
	return card
}

// numberOf returns a phone number in our form if it has one, and else as it was written.
func numberOf(f *vcard.Field, text *clipper) string {
	if number, err := postern.ParsePhone("+" + f.Params.Get(numberParam)); err == nil {
		return number
	}
	if number, err := postern.ParsePhone(f.Value); err == nil {
		return number
	}
	return text.bytes(f.Value, maxName)
}
