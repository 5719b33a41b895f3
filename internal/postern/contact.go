package postern

import "strconv"

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

// Typing is what an account shows in a chat before it writes.
type Typing string

// What is shown.
const (
	TypingText   Typing = "text"
	TypingVoice  Typing = "voice"
	TypingPaused Typing = "paused"
)
