package postern

import (
	"cmp"
	"strconv"
)

// Contact is a person or a company whose numbers a message shows.
type Contact struct {
	Name         string   `json:"name" doc:"Name, at most 1,000 bytes in UTF-8." example:"Ada Lovelace"`
	PhoneNumbers []string `json:"phoneNumbers" nullable:"false" doc:"Phone numbers: 1 to 10 in a message that is sent, as + and 7 to 15 digits. A received contact may have none, or numbers in other forms." example:"[\"+15557654321\"]"`
	Organization string   `json:"organization,omitempty" doc:"Company, at most 1,000 bytes in UTF-8." example:"Analytical Engines"`
}

// Limits of contacts and mentions.
const (
	MaxContacts       = 20   // in one message
	MaxContactNumbers = 10   // of one contact
	MaxContactName    = 1000 // bytes of UTF-8, of a name or an organization
	MaxMentions       = 1024 // in one message: as many as a group has members
)

// MentionAll stands for all members of a group among those whom a message mentions.
const MentionAll = "all"

// checkContacts returns contacts as they are sent.
func checkContacts(list []Contact) ([]Contact, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > MaxContacts {
		return nil, Invalid("/contacts", "a message shows at most %d contacts", MaxContacts)
	}
	checked := make([]Contact, len(list))
	for i, c := range list {
		var err error
		if checked[i], err = c.checked("/contacts/" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return checked, nil
}

func (c Contact) checked(pointer string) (_ Contact, err error) {
	switch {
	case c.Name == "":
		return c, Invalid(pointer+"/name", "a contact needs a name")
	case len(c.Name) > MaxContactName:
		return c, Errorf(PayloadTooLarge, "the name of a contact has at most %d bytes in UTF-8", MaxContactName)
	case len(c.Organization) > MaxContactName:
		return c, Errorf(PayloadTooLarge, "the organization of a contact has at most %d bytes in UTF-8", MaxContactName)
	case len(c.PhoneNumbers) == 0 || len(c.PhoneNumbers) > MaxContactNumbers:
		return c, Invalid(pointer+"/phoneNumbers", "a contact has 1 to %d phone numbers", MaxContactNumbers)
	}
	c.PhoneNumbers, err = checkNumbers(pointer+"/phoneNumbers", c.PhoneNumbers)
	return c, err
}

// checkNumbers returns the numbers of a list in one form.
func checkNumbers(pointer string, list []string) ([]string, error) {
	numbers := make([]string, len(list))
	for i, s := range list {
		number, err := ParsePhone(s)
		if err != nil {
			return nil, Invalid(pointer+"/"+strconv.Itoa(i), "%v", err)
		}
		numbers[i] = number
	}
	return numbers, nil
}

// MaxCheckedNumbers is how many numbers one request may check.
const MaxCheckedNumbers = 50

// CheckedNumber tells whether a number is on the network.
type CheckedNumber struct {
	PhoneNumber   string `json:"phoneNumber" doc:"The number that was asked about, as + and digits." example:"+15551234567"`
	Exists        bool   `json:"exists" doc:"Whether the number is on the network." example:"true"`
	NetworkNumber Maybe  `json:"networkNumber" nullable:"true" doc:"The number as the network writes it, to which messages go. In some countries it differs from the one that was asked about. Null if it is not on the network." example:"+15551234567"`
	LID           Maybe  `json:"lid" nullable:"true" doc:"Identifies the person even while the network hides the number." example:"lid:123456789012345"`
	BusinessName  Maybe  `json:"businessName" nullable:"true" doc:"The verified name of a business; null for other accounts." example:"Acme"`
}

// BlockedContact is somebody whom an account has blocked.
type BlockedContact struct {
	ChatID      string `json:"chatId" doc:"The direct chat with the person; usable in the path to end the block." example:"+15551234567"`
	PhoneNumber Maybe  `json:"phoneNumber" nullable:"true" doc:"Number of the person; null while the network hides it." example:"+15551234567"`
	LID         Maybe  `json:"lid" nullable:"true" doc:"Identifies the person even while the network hides the number." example:"lid:123456789012345"`
	ContactID   Maybe  `json:"contactId" nullable:"true" doc:"Id of the contact, if a device that the key may use knows the person." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Name        Maybe  `json:"name" nullable:"true" doc:"Name of the contact, if it is known." example:"Ada Lovelace"`
}

// Typing is what an account shows in a chat before it writes.
type Typing string

// What is shown.
const (
	TypingText   Typing = "text"
	TypingVoice  Typing = "voice"
	TypingPaused Typing = "paused"
)

// ShownTyping is that somebody writes in a chat at the moment, or no longer does.
type ShownTyping struct {
	ChatID  string `json:"chatId" doc:"The chat." example:"+15551234567"`
	From    Maybe  `json:"from" nullable:"true" doc:"Number of who writes; null while the network hides it." example:"+15551234567"`
	FromLID Maybe  `json:"fromLid" nullable:"true" doc:"Identifies who writes even while the network hides the number." example:"lid:123456789012345"`
	Typing  Typing `json:"typing" enum:"text,voice,paused" doc:"What is written." example:"text"`
	At      Time   `json:"at" format:"date-time" doc:"When the network reported it." example:"2026-11-21T09:00:00.000Z"`
}

// ShownPresence is whether the person of a direct chat is online.
type ShownPresence struct {
	ChatID     string `json:"chatId" doc:"The direct chat with the person." example:"+15551234567"`
	Available  bool   `json:"available" doc:"Whether the person is online." example:"false"`
	LastSeenAt Time   `json:"lastSeenAt" format:"date-time" nullable:"true" doc:"When the person was online last; null while that is so, and if the person does not show it." example:"2026-11-21T08:55:00.000Z"`
	At         Time   `json:"at" format:"date-time" doc:"When the network reported it." example:"2026-11-21T09:00:00.000Z"`
}

// Watching is whether the network reports at the moment what others show.
type Watching struct {
	Watching   bool     `json:"watching" doc:"Whether updates arrive." example:"true"`
	NotWatched []string `json:"notWatched" nullable:"false" doc:"The chats whose people the network was not asked about." example:"[]"`
}

// KnownContact is a person, or a company, whom devices of a workspace know.
type KnownContact struct {
	ID          ContactID    `json:"id" doc:"Opaque id of the contact. It stays when a name or a number becomes known." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Name        Maybe        `json:"name" nullable:"true" doc:"The first of names that is known: from an address book, of the business, or the person's own. Null if none is." example:"Ada Lovelace"`
	Names       ContactNames `json:"names" doc:"All names that are known."`
	PhoneNumber Maybe        `json:"phoneNumber" nullable:"true" doc:"Number of the contact; null while the network hides it." example:"+15551234567"`
	LID         Maybe        `json:"lid" nullable:"true" doc:"Identifies the contact even while the network hides the number." example:"lid:123456789012345"`
	ChatID      string       `json:"chatId" doc:"The direct chat with the contact; usable as \"to\"." example:"+15551234567"`
	DeviceIDs   []DeviceID   `json:"deviceIds" nullable:"false" doc:"The devices that know the contact." example:"[\"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA\"]"`
	CreatedAt   Time         `json:"createdAt" format:"date-time" nullable:"true" doc:"When the contact became known." example:"2026-11-21T09:00:00.000Z"`
}

// ContactNames are the names of a contact.
type ContactNames struct {
	AddressBook Maybe `json:"addressBook" nullable:"true" doc:"The name in the address book of the phone of an account whose device knows the contact." example:"Ada Lovelace"`
	Business    Maybe `json:"business" nullable:"true" doc:"The name of a business that the network has verified." example:"Acme"`
	Own         Maybe `json:"own" nullable:"true" doc:"The name that people give themselves." example:"Ada"`
}

// Best returns the name by which people know a contact: what the account calls it, then what the network has verified,
// and last what it says of itself, which may be anything.
func (n ContactNames) Best() Maybe { return cmp.Or(n.AddressBook, n.Business, n.Own) }

// Complete returns c with what follows from its names and addresses.
func (c KnownContact) Complete() KnownContact {
	c.Name, c.ChatID = c.Names.Best(), cmp.Or(string(c.PhoneNumber), string(c.LID))
	if c.DeviceIDs == nil {
		c.DeviceIDs = []DeviceID{}
	}
	return c
}

// IdentifiedContact is the object of contact.identified.
type IdentifiedContact struct {
	KnownContact

	MergedIDs      []ContactID `json:"mergedIds" nullable:"false" doc:"Contacts that turned out to be this one. Their ids keep working." example:"[\"ct_01JD8Z3NDEKTSV4RRFFQ69G5FB\"]"`
	PreviousChatID string      `json:"previousChatId" doc:"The chat before the number was known. Its messages move to chatId." example:"lid:123456789012345"`
}

// Event returns the event about a contact of a device.
func (c IdentifiedContact) Event(ws WorkspaceID, device DeviceID) (Event, error) {
	if c.MergedIDs == nil {
		c.MergedIDs = []ContactID{}
	}
	b, err := EncodeJSON(c)
	return Event{
		ID: NewEventID(), WorkspaceID: ws, DeviceID: device, Type: ContactIdentified, Subject: "contact", Object: b,
		ChatID: c.ChatID, MessageID: MessageID(c.ID),
	}, err
}

// MaxBookEntries is how many entries of a phone's address book are kept.
const MaxBookEntries = 50_000

// AddressBook is what is known of the address book of an account's phone.
type AddressBook struct {
	Whole   bool // there are no other entries
	Entries []BookEntry
}

// BookEntry is a person in an address book.
type BookEntry struct {
	Entry string // by which the phone names it: a number or a LID, like a chat
	Other string // the other of the two, if the entry has it
	Name  string // "" if the entry was removed
}

// Seen is a person as the network names them at one time. Each member may be "".
type Seen struct {
	Number   string // "+" and digits
	LID      string // "lid:" and digits
	Name     string // that people give themselves
	Business string // that the network has verified
}

// OtherForm is a number that the network knows by another form of it, such as with or without a digit that a country has
// added to its numbers.
type OtherForm struct {
	Form   string // "+" and digits, as people write the number
	Number string // of the account, as the network writes it
	LID    string // of the account
}

// IsEmpty reports whether nobody was seen.
func (s Seen) IsEmpty() bool { return s.Number == "" && s.LID == "" }

// PersonOfChat returns with whom a direct chat of an account is; nobody for groups, and for the account itself.
func PersonOfChat(chat, own string) (s Seen) {
	switch {
	case chat == own || !IsDirect(chat):
	case NumberOfChat(chat) != "":
		s.Number = chat
	default:
		s.LID = chat
	}
	return s
}

// Person returns who wrote a message, or who got it in a direct chat.
func (m Message) Person() (s Seen) {
	if m.Direction == Outbound {
		return PersonOfChat(m.ChatID, string(m.From))
	}
	s = Seen{Number: string(m.From), Name: m.FromName, Business: m.FromBusiness}
	if m.FromLID != "" {
		s.LID = ChatOfLID(m.FromLID)
	}
	return s
}
