package testkit_test

import (
	"net/url"
	"slices"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// A number that the network knows by another form of it is one person with one chat, whichever form is used.
func TestNumbersHaveOtherForms(t *testing.T) {
	for country, forms := range map[string][2]string{
		"Brazil":    {"+5531987654321", "+553187654321"},
		"Mexico":    {"+525512345678", "+5215512345678"},
		"Argentina": {"+541123456789", "+5491123456789"},
	} {
		t.Run(country, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
				dialled, number := forms[0], forms[1]
				c := k.Workspace("growth")
				hooks := c.Receive("contact.identified", "message.received")
				d := c.Link(phone)
				first := send(c, d, dialled, "Hello")
				c.AwaitMessage(first.ID, postern.Delivered)
				if shown := k.Vendor.Shown(number); len(shown) != 1 || shown[0].Body != "Hello" {
					t.Fatalf("the phone shows %+v", shown)
				}
				told := members(t, hooks.AwaitCount(postern.ContactIdentified, 1)[0], "contact")
				if told["phoneNumber"] != number || told["chatId"] != number || told["previousChatId"] != dialled {
					t.Errorf("contact.identified says %v", told)
				}
				if _, err := k.Vendor.Send(t.Context(), phone, dialled, "Hi"); err != nil {
					t.Fatal(err)
				}
				answer := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")
				if answer["chatId"] != number || answer["contactId"] != told["id"] {
					t.Errorf("the answer is %v", answer)
				}
				second := send(c, d, dialled, "How are you?")
				c.AwaitMessage(second.ID, postern.Delivered)
				if second.ChatID != number || string(second.To) != number {
					t.Errorf("the second message is to %s in %s", second.To, second.ChatID)
				}
				for _, name := range forms {
					if list := contactList(c, "?chatId="+url.QueryEscape(name)); len(list) != 1 || string(list[0].ID) != told["id"] {
						t.Errorf("contacts with %s are %+v", name, list)
					}
					testkit.Eventually(t, "one chat with all messages", func() (bool, any) {
						var list struct{ Data []postern.Message }
						c.Call("GET", "/v1/messages?chatId="+url.QueryEscape(name), nil, 200, &list)
						return len(list.Data) == 3, list
					})
				}
				var chats struct{ Data []postern.Chat }
				c.Call("GET", "/v1/chats", nil, 200, &chats)
				if len(chats.Data) != 1 || chats.Data[0].ChatID != number {
					t.Errorf("chats are %+v", chats)
				}
			})
		})
	}
}

// People are added to groups by each form of their numbers, and numbers are checked by each.
func TestGroupsTakeOtherFormsOfNumbers(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		const dialled, number = "+5531987654321", "+553187654321"
		c := k.Workspace("growth")
		d := c.Link(phone)
		var group struct {
			postern.Group

			Outcomes []postern.ParticipantOutcome
		}
		c.Call("POST", path(d, "/groups"), map[string]any{
			"subject": "Orders", "participants": []string{dialled, ann},
		}, 201, &group)
		if len(group.Outcomes) > 0 || !slices.ContainsFunc(group.Participants, func(p postern.Participant) bool {
			return string(p.PhoneNumber) == number
		}) {
			t.Errorf("the group is %+v", group)
		}
		var checked struct{ Data []postern.CheckedNumber }
		c.Call("POST", path(d, "/contacts/check"), map[string]any{"phoneNumbers": []string{dialled}}, 200, &checked)
		if one := checked.Data[0]; !one.Exists || string(one.NetworkNumber) != number {
			t.Errorf("the check says %+v", one)
		}
	})
}
