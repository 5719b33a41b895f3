package postern

import (
	"slices"
	"strings"
	"testing"
)

func TestContentThatCanBeSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Content
		want Reason // "" for content that can be sent
	}{
		{"a text", Text("hello"), ""},
		{"the longest text", Text(strings.Repeat("x", MaxText)), ""},
		{"a longer text", Text(strings.Repeat("x", MaxText+1)), PayloadTooLarge},
		{"the longest text in Chinese", Text(strings.Repeat("字", MaxText)), ""},
		{"the longest text in pictures", Text(strings.Repeat("👋", MaxText)), ""},
		{"a longer text in Chinese", Text(strings.Repeat("字", MaxText+1)), PayloadTooLarge},
		{"no text", Text(""), ValidationFailed},
		{"an unsupported kind", Unsupported(""), ValidationFailed},
		{"nothing", Content{}, ValidationFailed},
		{"a poll", poll("Where?", "Here", "There"), ""},
		{"a poll with one option", poll("Where?", "Here"), ValidationFailed},
		{"a poll with 13 options", poll("?", strings.Split("abcdefghijklm", "")...), ValidationFailed},
		{"a poll with the same option twice", poll("Where?", "Here", "Here"), ValidationFailed},
		{"a poll with an empty option", poll("Where?", "Here", ""), ValidationFailed},
		{"a poll without a question", poll("", "Here", "There"), ValidationFailed},
		{"a poll with a long question", poll(strings.Repeat("?", MaxQuestion+1), "a", "b"), PayloadTooLarge},
		{"a poll with a long option", poll("?", strings.Repeat("x", MaxPollOption+1), "b"), PayloadTooLarge},
		{"a poll with a text", Content{Kind: KindPoll, Text: "x", Extra: poll("?", "a", "b").Extra}, ValidationFailed},
		{"no poll", Content{Kind: KindPoll}, ValidationFailed},
		{"a contact", card(Contact{Name: "Ada", PhoneNumbers: []string{"+1 555 765-4321"}}), ""},
		{"a contact without a name", card(Contact{PhoneNumbers: []string{"+15557654321"}}), ValidationFailed},
		{"a contact without a number", card(Contact{Name: "Ada"}), ValidationFailed},
		{"a contact with a wrong number", card(Contact{Name: "Ada", PhoneNumbers: []string{"1"}}), ValidationFailed},
		{"no contact", card(), ValidationFailed},
		{"21 contacts", card(make([]Contact, 21)...), ValidationFailed},
		{"a mention", Content{Kind: KindText, Text: "@15557654321", Extra: Extra{Mentions: []string{"+15557654321"}}}, ""},
		{"a mention of nobody", Content{Kind: KindText, Text: "x", Extra: Extra{Mentions: []string{"everybody"}}}, ValidationFailed},
		{"a text with a poll", Content{Kind: KindText, Text: "x", Extra: poll("?", "a", "b").Extra}, ValidationFailed},
	}
	for _, tt := range tests {
		_, err := tt.in.Checked()
		if (err == nil) != (tt.want == "") || err != nil && ReasonOf(err) != tt.want {
			t.Errorf("%s: check = %v, want %q", tt.name, err, tt.want)
		}
	}
}

func poll(question string, options ...string) Content {
	return Content{Kind: KindPoll, Extra: Extra{Poll: &Poll{Question: question, Options: options}}}
}

func card(contacts ...Contact) Content {
	return Content{Kind: KindContact, Extra: Extra{Contacts: contacts}}
}

// Numbers are stored and sent in one form, and the caller's own list stays as it was.
func TestNumbersInContentHaveOneForm(t *testing.T) {
	t.Parallel()
	in := card(Contact{Name: "Ada", PhoneNumbers: []string{"+1 (555) 765-4321"}})
	in.Mentions = []string{"15557654321@s.whatsapp.net", "123456789@lid"}
	got, err := in.Checked()
	if err != nil || got.Contacts[0].PhoneNumbers[0] != "+15557654321" ||
		!slices.Equal(got.Mentions, []string{"+15557654321", "lid:123456789"}) {
		t.Errorf("checked = %+v, %v", got, err)
	}
	if in.Contacts[0].PhoneNumbers[0] != "+1 (555) 765-4321" {
		t.Error("the caller's contacts were changed")
	}
}
