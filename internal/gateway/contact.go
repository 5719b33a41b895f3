package gateway

import (
	"context"
	"errors"
	"strconv"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/presence"
	"postern/internal/store/contacts"
)

// The requests about people that the live session of a device carries out.
const (
	CheckNumbers   = "contact.check"
	ShowTyping     = "chat.typing"
	RejectCall     = "call.reject"
	ListBlocked    = "contact.blocked"
	ChangeBlocked  = "contact.block"
	ContactPicture = "contact.picture"
)

// ContactInput is what these requests need.
type ContactInput struct {
	Numbers []string       `json:"numbers,omitempty"` // to look up
	ChatID  string         `json:"chatId,omitempty"`
	Typing  postern.Typing `json:"typing,omitempty"`
	CallID  string         `json:"callId,omitempty"`
	Blocked bool           `json:"blocked,omitempty"`

	PictureID string `json:"pictureId,omitempty"` // of the picture that is known
}

// ContactQuery narrows a list of contacts. A zero field does not narrow it.
type ContactQuery struct {
	DeviceID postern.DeviceID // that knows them
	ChatID   string           // of the direct chat, as [postern.ParseChat] returns it
	Text     string           // a part of a name
	Page     paging.Page
}

// List lists the people whom the devices of the caller know, newest first.
func (g Contacts) List(
	ctx context.Context, c access.Caller, q ContactQuery,
) (list paging.List[postern.KnownContact], err error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return list, err
	}
	s := contacts.Query{WorkspaceID: c.Workspace(), Devices: c.Key.Devices, Name: q.ChatID, Text: q.Text}
	if q.DeviceID != "" { // an unknown device is an error and not an empty list
		if _, err := g.devices().get(ctx, c, q.DeviceID); err != nil {
			return list, err
		}
		s.Only = []postern.DeviceID{q.DeviceID}
	}
	if s.Page, err = g.open(c.Workspace(), "contacts", q.Page); err != nil {
		return list, err
	}
	found, err := g.contacts().List(ctx, s)
	return paging.Cut(g.cursors, c.Workspace(), "contacts", found, s.Limit, contactPlace), err
}

func contactPlace(c postern.KnownContact) string { return string(c.ID) }

// Get finds a contact. The id of one that was merged into it finds it, too.
func (g Contacts) Get(ctx context.Context, c access.Caller, id postern.ContactID) (postern.KnownContact, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return postern.KnownContact{}, err
	}
	return g.contacts().Get(ctx, contacts.Query{WorkspaceID: c.Workspace(), Devices: c.Key.Devices}, id)
}

// Erase removes a person from the workspace: the contact, all messages of and to the person with their files, and what
// the person wrote in groups. It is hidden at once. A key that is limited to devices may erase only whom no other device
// knows.
func (g Contacts) Erase(ctx context.Context, c access.Caller, id postern.ContactID) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	known, err := g.contacts().Get(ctx, contacts.Query{WorkspaceID: c.Workspace()}, id)
	if err != nil {
		return g.erasedBefore(ctx, c, id, err)
	}
	for _, d := range known.DeviceIDs {
		if !c.Key.Allows(d) {
			return postern.Errorf(postern.ResourceNotAllowed, "this key may not use all devices that know this contact")
		}
	}
	if err := g.forgetPictures(ctx, c.Workspace(), known.ID); err != nil {
		return err
	}
	now := g.time()
	err = g.contacts().Erase(ctx, contacts.Erasure{
		WorkspaceID: c.Workspace(), ContactID: known.ID, At: now,
		Acts: didByAny(c, now, "contact.erased", string(known.ID), ""),
	})
	if err != nil {
		return err
	}
	return g.contacts().RemoveChats(context.WithoutCancel(ctx), g.db, c.Workspace(), now)
}

// erasedBefore returns nil if a contact of the caller's workspace was erased before, and the error that Get gave otherwise.
func (g Contacts) erasedBefore(ctx context.Context, c access.Caller, id postern.ContactID, err error) error {
	if postern.ReasonOf(err) != postern.NotFound {
		return err
	}
	was, readErr := g.contacts().WasErased(ctx, c.Workspace(), id)
	if readErr != nil || was {
		return readErr
	}
	return err
}

// TidyContacts continues to remove people who were erased, and to join the chats of those who became known better.
func (g Sessions) TidyContacts(ctx context.Context) error {
	return errors.Join(g.contacts().JoinChats(ctx),
		g.contacts().RemoveErased(ctx, g.db, &g.erasures, g.time, erasePatience))
}

// SetBook records names in the address book of the phone of a device's account.
func (g Sessions) SetBook(ctx context.Context, id postern.DeviceID, b postern.AddressBook) error {
	return g.contacts().SetBook(ctx, id, b)
}

// Book returns the address book of the phone of a device's account, as it was last read.
func (g Sessions) Book(ctx context.Context, id postern.DeviceID) ([]postern.BookEntry, error) {
	return g.contacts().Book(ctx, id)
}

// AddForm records by which number the network knows one that a device has written to.
func (g Sessions) AddForm(ctx context.Context, d postern.Device, f postern.OtherForm) error {
	return g.contacts().AddForm(ctx, d.WorkspaceID, d.ID, f, g.time())
}

// Identify joins what is known of people whose number and LID belong together, as far as the device knows them.
func (g Sessions) Identify(ctx context.Context, d postern.Device, people []postern.Seen) error {
	return g.contacts().Identify(ctx, d.WorkspaceID, d.ID, people, g.time())
}

// Check tells which numbers are on the network, in their order. What was asked within a day is not asked again. The
// others count towards the device's pace for new chats.
func (g Contacts) Check(
	ctx context.Context, c access.Caller, id postern.DeviceID, numbers []string,
) ([]postern.CheckedNumber, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return nil, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return nil, err
	}
	asked := make([]string, len(numbers))
	for i, text := range numbers {
		n, err := postern.ParsePhone(text)
		if err != nil {
			return nil, postern.Invalid("/phoneNumbers/"+strconv.Itoa(i), "%v", err)
		}
		asked[i] = n
	}
	known, err := g.contacts().Checked(ctx, c.Workspace(), asked, g.time().Add(-checksKept))
	if err != nil {
		return nil, err
	}
	if err := g.checkUnknown(ctx, c, id, asked, known); err != nil {
		return nil, err
	}
	list := make([]postern.CheckedNumber, len(asked))
	for i, n := range asked {
		list[i] = known[n]
	}
	return list, nil
}

// checkUnknown asks about the numbers that are not known, and adds the answers.
func (g Contacts) checkUnknown(
	ctx context.Context, c access.Caller, id postern.DeviceID, asked []string, known map[string]postern.CheckedNumber,
) error {
	var in ContactInput
	for _, n := range asked {
		if _, ok := known[n]; !ok {
			in.Numbers = append(in.Numbers, n)
			known[n] = postern.CheckedNumber{PhoneNumber: n} // one may be named twice
		}
	}
	if len(in.Numbers) == 0 {
		return nil
	}
	answer, err := askOnce[[]postern.CheckedNumber](ctx, g.core, c, id, nil, CheckNumbers,
		func() (ContactInput, error) { return in, nil })
	if err != nil {
		return err
	}
	for _, n := range answer.Value {
		known[n.PhoneNumber] = n
	}
	g.contacts().Remember(c.Workspace(), answer.Value, g.time())
	return nil
}

// Known returns the person who is known by a number or a LID; the zero value if nobody is.
func (g Sessions) Known(ctx context.Context, d postern.Device, name string) (postern.KnownContact, error) {
	return g.contacts().Named(ctx, d.WorkspaceID, "", name)
}

// Presence returns where sessions put what others show at the moment.
func (g Sessions) Presence() *presence.Board { return g.presence }

// Update is something that is shown at the moment.
type Update = presence.Update

// Shown reads what others show to a device at the moment, between Begin and Close.
type Shown struct {
	*presence.Reader

	g      Contacts
	device postern.Device
	chats  []string
}

// Follow reads who types in the chats of a device, and whether the people of some direct chats are online. The network tells
// that to accounts that are online themselves, so the device's account is shown as online while that is read.
func (g Contacts) Follow(
	ctx context.Context, c access.Caller, id postern.DeviceID, chats []string,
) (*Shown, error) {
	if err := c.Permit(postern.MessagesRead, postern.MessagesWrite); err != nil {
		return nil, err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if len(chats) > presence.MaxChats {
		return nil, postern.Invalid("/query/chatId", "at most %d people can be followed", presence.MaxChats)
	}
	ours := make([]string, len(chats))
	for i, text := range chats {
		chat, err := postern.ParseChat(text)
		if err != nil || !postern.IsDirect(chat) {
			return nil, postern.Invalid("/query/chatId",
				"only people are online or not: give numbers, or ids that begin with lid:")
		}
		if ours[i], err = g.chatOf(ctx, c.Workspace(), chat); err != nil {
			return nil, err
		}
	}
	return &Shown{g: g, device: d, chats: ours}, nil
}

// Begin begins to read.
func (s *Shown) Begin() {
	s.Reader = s.g.presence.Follow(s.device.ID, s.chats)
	if s.device.Status != postern.Connected {
		s.Say(Update{Watching: &postern.Watching{NotWatched: []string{}}})
	}
}

// Next returns what has come since the last call. It returns an error if the caller may no longer read the device.
func (s *Shown) Next(ctx context.Context, c access.Caller) ([]Update, error) {
	if _, err := s.g.devices().get(ctx, c, s.device.ID); err != nil {
		return nil, err
	}
	return s.Reader.Take(), nil
}

// Take does nothing: Next takes what has come.
func (*Shown) Take() []string { return nil }

func (g *core) contacts() contacts.Table { return contacts.Of(g.db) }

// Type shows in a chat that the account types or records, or no longer does.
func (g Contacts) Type(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, t postern.Typing,
) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	_, err := askOnce[struct{}](ctx, g.core, c, id, nil, ShowTyping, func() (ContactInput, error) {
		to, err := g.chatIn(ctx, c.Workspace(), id, chat)
		if err == nil && !postern.IsDirect(to) && !postern.IsGroup(to) {
			err = noChat()
		}
		return ContactInput{ChatID: to, Typing: t}, err
	})
	return err
}

// Reject rejects a call that rings.
func (g Contacts) Reject(ctx context.Context, c access.Caller, id postern.DeviceID, callID string) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	_, err := askOnce[struct{}](ctx, g.core, c, id, nil, RejectCall, func() (ContactInput, error) {
		return ContactInput{CallID: callID}, nil
	})
	return err
}

// Blocked asks the network whom the account has blocked, here or on the phone.
func (g Contacts) Blocked(
	ctx context.Context, c access.Caller, id postern.DeviceID,
) ([]postern.BlockedContact, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return nil, err
	}
	answer, err := askOnce[[]postern.BlockedContact](ctx, g.core, c, id, nil, ListBlocked,
		func() (in ContactInput, err error) { return in, nil })
	if err != nil {
		return nil, err
	}
	for i := range answer.Value {
		if err := g.nameBlocked(ctx, c, &answer.Value[i]); err != nil {
			return nil, err
		}
	}
	return answer.Value, nil
}

// nameBlocked adds what the workspace knows of somebody who is blocked.
func (g Contacts) nameBlocked(ctx context.Context, c access.Caller, b *postern.BlockedContact) error {
	q := contacts.Query{WorkspaceID: c.Workspace(), Devices: c.Key.Devices, Name: b.ChatID}
	q.Limit = 1
	found, err := g.contacts().List(ctx, q)
	if err != nil || len(found) == 0 {
		return err
	}
	b.ContactID, b.Name = postern.Maybe(found[0].ID), found[0].Name
	return nil
}

// Picture returns the file of a contact's picture, as the account of a device sees it. The network is asked whether it is
// still the same one.
func (g Contacts) Picture(
	ctx context.Context, c access.Caller, device postern.DeviceID, id postern.ContactID,
) (file postern.Media, err error) {
	if err := c.Permit(postern.ContactsRead, postern.MessagesRead); err != nil {
		return file, err
	}
	if _, err := g.devices().get(ctx, c, device); err != nil {
		return file, err
	}
	who, err := g.Get(ctx, c, id)
	if err != nil {
		return file, err
	}
	known, before, err := g.contacts().Picture(ctx, device, who.ID)
	if err != nil {
		return file, err
	}
	known, file, err = g.keptPicture(ctx, c, known, before)
	if err != nil {
		return file, err
	}
	got, err := askOnce[Picture](ctx, g.core, c, device, nil, ContactPicture, func() (ContactInput, error) {
		return ContactInput{ChatID: who.ChatID, PictureID: known}, nil
	})
	switch {
	case err != nil:
		return postern.Media{}, err
	case got.Value.ID == "":
		return postern.Media{}, postern.Errorf(postern.NotFound, "the contact shows this account no picture")
	case len(got.Value.Bytes) == 0:
		return file, nil
	}
	if file, err = g.storePicture(ctx, c, device, "contact.jpg", got.Value); err == nil {
		err = g.contacts().SetPicture(ctx, device, who.ID, got.Value.ID, file.ID)
	}
	if err == nil && before != "" && before != file.ID {
		err = g.removeFile(ctx, c.Workspace(), before)
	}
	return file, err
}

// forgetPictures removes the files of a contact's pictures.
func (g Contacts) forgetPictures(ctx context.Context, ws postern.WorkspaceID, id postern.ContactID) error {
	list, err := g.contacts().Pictures(ctx, ws, id)
	for _, file := range list {
		err = errors.Join(err, g.removeFile(ctx, ws, file))
	}
	return err
}

// removeFile removes a file, unless it is gone.
func (g Contacts) removeFile(ctx context.Context, ws postern.WorkspaceID, id postern.MediaID) error {
	row, err := g.db.Media.Get(ctx, ws, id)
	if postern.ReasonOf(err) == postern.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return g.remove(ctx, row)
}

// SetBlocked blocks the person of a direct chat, or ends that, as on the phone. A second call has no further effect.
func (g Contacts) SetBlocked(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, blocked bool,
) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return err
	}
	in := ContactInput{Blocked: blocked}
	if in.ChatID, err = postern.ParseChat(chat); err != nil || !postern.IsDirect(in.ChatID) {
		return postern.Errorf(postern.NotFound, "only people can be blocked: give a number, or an id that begins with lid:")
	}
	if in.ChatID == string(d.PhoneNumber) {
		return postern.Invalid("/path/chatId", "this is the account's own number, which it cannot block")
	}
	known, err := g.contacts().Named(ctx, c.Workspace(), "", in.ChatID)
	switch {
	case err != nil:
		return err
	case known.LID != "":
		in.ChatID = string(known.LID)
	case postern.NumberOfChat(in.ChatID) != "":
		in.Numbers = []string{in.ChatID}
	}
	_, err = askOnce[struct{}](ctx, g.core, c, id, nil, ChangeBlocked, func() (ContactInput, error) { return in, nil })
	return err
}

// ForgetChecks removes what was found out about numbers too long ago.
func (g Sessions) ForgetChecks(ctx context.Context) error {
	_, err := g.contacts().Remove(ctx, g.time().Add(-checksKept))
	return err
}
