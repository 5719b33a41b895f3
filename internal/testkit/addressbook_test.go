package testkit_test

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// book is a device and the address book of its account's phone.
type book struct {
	t *testing.T
	k *testkit.Kit
	c *testkit.Client
	d postern.Device
}

func newBook(t *testing.T, k *testkit.Kit) book {
	t.Helper()
	c := k.Workspace("growth")
	return book{t, k, c, c.Link(phone)}
}

func (b book) save(list ...vendorsim.BookEntry) {
	b.t.Helper()
	if err := b.k.Vendor.AddressBook().Save(b.t.Context(), phone, list...); err != nil {
		b.t.Fatal(err)
	}
}

func (b book) remove(number string) {
	b.t.Helper()
	if err := b.k.Vendor.AddressBook().Remove(b.t.Context(), phone, number); err != nil {
		b.t.Fatal(err)
	}
}

// writes lets a person write to the account.
func (b book) writes(number string) {
	b.t.Helper()
	if _, err := b.k.Vendor.Send(b.t.Context(), phone, number, "Hello"); err != nil {
		b.t.Fatal(err)
	}
}

// called waits until a contact has a name in the address book; "" for none.
func (b book) called(number, name string) {
	b.t.Helper()
	testkit.Eventually(b.t, fmt.Sprintf("%s is called %q", number, name), func() (bool, any) {
		list := contactList(b.c, "?chatId="+url.QueryEscape(number))
		return len(list) == 1 && string(list[0].Names.AddressBook) == name &&
			list[0].Name == cmp.Or(postern.Maybe(name), list[0].Names.Own), list
	})
}

// The names of the phone's address book are those of the contacts: before and after somebody writes, while the gateway
// is down, and until they are changed or removed. Other workspaces and other devices do not see them.
func TestContactsHaveTheNamesOfTheAddressBook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann of the shop"})
		b.writes(ann)
		b.called(ann, "Ann of the shop")
		b.writes(customer)
		b.called(customer, "")
		b.save(vendorsim.BookEntry{Number: customer, Name: "A customer"})
		b.called(customer, "A customer")
		b.called(ann, "Ann of the shop")
		var chat postern.Chat
		if b.c.Call("GET", path(b.d, "/chats/"+url.QueryEscape(customer)), nil, 200, &chat); chat.Name != "A customer" {
			t.Errorf("the chat is called %q", chat.Name)
		}
		k.Stop()
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann"})
		b.remove(customer)
		k.Boot()
		b.called(ann, "Ann")
		b.called(customer, "")
		b.remove(ann)
		b.remove(ann)
		b.called(ann, "")
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann again"})
		b.called(ann, "Ann again")

		second := b.c.Link("+15550001112")
		if _, err := k.Vendor.Send(t.Context(), "+15550001112", ann, "Hello"); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "both devices know the contact", func() (bool, any) {
			list := contactList(b.c, "?deviceId="+string(second.ID))
			return len(list) == 1 && len(list[0].DeviceIDs) == 2 && list[0].Names.AddressBook == "Ann again", list
		})
		limited := k.Key(b.c.Workspace, gateway.NewKey{
			Name: "one", Devices: []postern.DeviceID{second.ID}, Scopes: []postern.Scope{postern.ContactsRead},
		})
		if list := contactList(limited, ""); len(list) != 1 || list[0].Names.AddressBook != "" {
			t.Errorf("a key of the other device sees %+v", list)
		}
	})
}

// A person who is known by a hidden number only has the name, too, and keeps it when the number becomes known.
func TestHiddenPeopleHaveTheNamesOfTheAddressBook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		hooks := b.c.Receive("contact.identified")
		if err := k.Vendor.Hide(ann, true); err != nil {
			t.Fatal(err)
		}
		b.writes(ann)
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann of the shop"})
		testkit.Eventually(t, "the contact has its name", func() (bool, any) {
			list := contactList(b.c, "")
			return len(list) == 1 && list[0].PhoneNumber == "" && list[0].Name == "Ann of the shop", list
		})
		if err := k.Vendor.Hide(ann, false); err != nil {
			t.Fatal(err)
		}
		b.writes(ann)
		if told := members(t, hooks.AwaitCount(postern.ContactIdentified, 1)[0], "contact"); told["name"] != "Ann of the shop" {
			t.Errorf("contact.identified says %v", told)
		}
		b.called(ann, "Ann of the shop")
	})
}

// What a phone writes in its address book may be anything: it is bounded, and what is wrong changes nothing else.
func TestHostileAddressBooks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.writes(ann)
		b.writes(customer)
		b.called(ann, "")
		b.called(customer, "")
		lid := string(contactList(b.c, "?chatId="+url.QueryEscape(customer))[0].LID)
		address := strings.TrimPrefix(lid, "lid:") + "@lid"
		b.save(
			vendorsim.BookEntry{Number: ann, Name: "Ann\u202e\x00\x07 " + strings.Repeat("x", 100_000)},
			vendorsim.BookEntry{Address: "", Name: "nobody"},
			vendorsim.BookEntry{Address: "not an address", Name: "nobody"},
			vendorsim.BookEntry{Address: "12345678901234567890123@s.whatsapp.net", Name: "too long"},
			vendorsim.BookEntry{Address: "1@s.whatsapp.net", Name: "too short"},
			vendorsim.BookEntry{Address: "120363041234567890@g.us", Name: "a group"},
			vendorsim.BookEntry{Address: strings.Repeat("9", 100_000) + "@lid", Name: "huge"},
			vendorsim.BookEntry{Number: customer, Name: "A customer"},
			vendorsim.BookEntry{Number: "+15550000021", LID: address, Name: "one claim"},
			vendorsim.BookEntry{Number: "+15550000022", LID: address, Name: "another claim"},
			vendorsim.BookEntry{Number: "+15550000023", LID: "'; DROP TABLE address_book;--", Name: "\u200b\u202e"},
		)
		b.called(customer, "A customer")
		b.writes("+15550000021")
		b.called("+15550000021", "one claim")
		b.writes("+15550000023")
		b.called("+15550000023", "")
		if list := contactList(b.c, ""); len(list) != 4 {
			t.Errorf("contacts are %+v", list)
		}
		got := contactList(b.c, "?chatId="+url.QueryEscape(ann))[0].Names.AddressBook
		if !strings.HasPrefix(string(got), "Ann") || len([]rune(got)) > 256 || strings.ContainsAny(string(got), "\u202e\x00\x07") {
			t.Errorf("a hostile name is %q", got)
		}
		other := k.Workspace("growth")
		if list := contactList(other, ""); len(list) != 0 {
			t.Errorf("another workspace sees %+v", list)
		}
	})
}

// An address book of thousands is read after linking, and read again completely after the device was linked again.
func TestALargeAddressBook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		list := make([]vendorsim.BookEntry, 2000)
		for i := range list {
			list[i] = vendorsim.BookEntry{Number: fmt.Sprintf("+1555100%04d", i), Name: fmt.Sprintf("Person %d", i)}
		}
		b.save(list...)
		for _, i := range []int{0, 499, 500, 1999} {
			b.writes(list[i].Number)
			b.called(list[i].Number, list[i].Name)
		}
		if all := contactList(b.c, "?limit=100"); len(all) != 4 {
			t.Errorf("%d contacts, want only those who wrote", len(all))
		}
		b.c.Call("POST", path(b.d, "/unlink"), nil, 200, nil)
		b.c.Call("POST", path(b.d, "/link"), nil, 201, nil)
		b.c.Scan(b.d.ID, map[string]string{"phoneNumber": phone})
		b.c.Await(b.d.ID, postern.Connected)
		b.writes(list[1000].Number)
		b.called(list[1000].Number, list[1000].Name)
		b.called(list[0].Number, list[0].Name)
	})
}

// What is damaged is read again from the beginning, as a snapshot, in which those who were removed are missing.
func TestADamagedAddressBookIsReadAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.writes(ann)
		b.writes(customer)
		for i := range 25 {
			b.save(vendorsim.BookEntry{Number: customer, Name: fmt.Sprint("Customer ", i)})
		}
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann"})
		b.called(customer, "Customer 24")
		b.called(ann, "Ann")
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateDamaged); err != nil {
			t.Fatal(err)
		}
		b.remove(ann)
		b.called(ann, "")
		b.called(customer, "Customer 24")
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann again"})
		b.called(ann, "Ann again")
	})
}

// Erasing a person removes the name from the address book that is stored, too.
func TestErasedPeopleHaveNoName(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.save(vendorsim.BookEntry{Number: ann, Name: "Ann"}, vendorsim.BookEntry{Number: customer, Name: "A customer"})
		b.writes(ann)
		b.writes(customer)
		b.called(ann, "Ann")
		id := contactList(b.c, "?chatId="+url.QueryEscape(ann))[0].ID
		b.c.Call("DELETE", "/v1/contacts/"+string(id), nil, 204, nil)
		b.writes(ann)
		b.called(ann, "")
		b.called(customer, "A customer")
	})
}

// The sandbox lets callers try it.
func TestTheSandboxHasAnAddressBook(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.writes(ann)
		box := "/v1/sandbox/devices/" + string(b.d.ID) + "/contacts"
		b.c.Call("POST", box, map[string]any{"phoneNumber": ann, "name": "Ann"}, 204, nil)
		b.called(ann, "Ann")
		b.c.Call("POST", box, map[string]any{"phoneNumber": ann, "name": nil}, 204, nil)
		b.called(ann, "")
		for _, body := range []map[string]any{
			{"phoneNumber": ann}, {"phoneNumber": ann, "name": ""}, {"phoneNumber": "ann", "name": "Ann"},
			{"phoneNumber": ann, "name": strings.Repeat("x", 257)},
		} {
			b.c.Call("POST", box, body, 422, nil)
		}
		if names := slices.Collect(func(yield func(string) bool) {
			for _, c := range contactList(b.c, "") {
				if !yield(string(c.Names.AddressBook)) {
					return
				}
			}
		}); !slices.Equal(names, []string{""}) {
			t.Errorf("names are %q", names)
		}
	})
}
