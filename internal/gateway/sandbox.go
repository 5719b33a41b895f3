package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"postern/internal/access"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/store"
)

// Sandbox is the simulated vendor as the sandbox routes use it.
type Sandbox interface {
	// Of returns the network of a workspace. Each has its own: the same number in two
	// workspaces is two phones.
	Of(ws postern.WorkspaceID) (SandboxNetwork, error)
}

// SandboxNetwork is the simulated vendor of one workspace. An account is named by its
// phone number.
type SandboxNetwork interface {
	// Scan lets the phone of a number scan the text of a QR code.
	Scan(ctx context.Context, qr, number string) error
	// EnterCode lets the owner of a number enter a pairing code on the phone.
	EnterCode(ctx context.Context, code, number string) error
	// Passkey answers the network's request with the passkey of the phone that it is about. mistake is what is wrong with
	// the answer, and fault what goes wrong with it on the network; "" for nothing.
	Passkey(request postern.PasskeyOptions, mistake, fault string) (postern.PasskeyCredential, error)
	// Inbound lets a contact write to the account and returns the network id.
	Inbound(ctx context.Context, account string, m SandboxInbound) (networkID string, err error)
	// CreateGroup creates a group with the account and others, and returns its chat.
	CreateGroup(account, subject string, members []string) (chat string, err error)
	// ChangeGroup lets a phone do something in a group of the account.
	ChangeGroup(ctx context.Context, account, chat string, c SandboxGroupChange) error
	// CreateChannel creates a channel of a number, of which the account may be an administrator.
	CreateChannel(account, owner, name string, admin bool) (SandboxChannel, error)
	// Call lets a contact call the account and returns the id of the call.
	Call(ctx context.Context, account, from string, c postern.Call) (callID string, err error)
	// Appear lets a contact show the account that it types, or whether it is online.
	Appear(account string, a SandboxAppearance) error
	// Remember adds messages with a contact to what the account's phone had before it was linked, and lets it send them.
	Remember(ctx context.Context, account, from string, list []SandboxPast, onRequest bool) error
	// Receipt lets the recipient of a message confirm it; of a message to a group, the member from, or all if that is "".
	Receipt(ctx context.Context, account, from, networkID string, status postern.MessageStatus) error
	// ReadOnPhone lets the account read a received message on its phone.
	ReadOnPhone(account, networkID string) error
	// SetChat lets the account set something for a chat on its phone.
	SetChat(ctx context.Context, account string, c SandboxChat) error
	// SetContact saves a person in the address book of the account's phone; without a name, it removes the person.
	SetContact(ctx context.Context, account, number, name string) error
	// SetContactPicture sets the picture that a number shows to others, a square JPEG.
	SetContactPicture(number string, jpeg []byte) error
	// Fault makes the vendor misbehave towards the account.
	Fault(ctx context.Context, account, kind string) error
	// Phone lists what the phone of a number shows.
	Phone(number string) []PhoneMessage
	// File reads the file of a message that the phone of a number shows. The caller closes it. If
	// the phone shows no such message, or one without a file, the error is NotFound.
	File(number, networkID string) (io.ReadCloser, postern.Media, error)
}

// SandboxInbound is a message that a simulated contact writes.
type SandboxInbound struct {
	From      string
	Group     string // the chat of a group of which From is a member; "" for a direct chat
	Channel   string // the chat of a channel in which From posts; "" for none
	Status    bool   // From posts it as status
	Content   postern.Content
	Media     *NewMedia         // the file, of kinds that carry one: not one at a URL
	File      io.Reader         // its content, which Inbound finds
	Thumbnail []byte            // of a video, which Inbound makes as apps do; nil for none
	ReplyTo   postern.MessageID // a message of the chat; "" for none
	QuoteOf   string            // its network id, which Inbound finds
}

// SandboxAppearance is what a simulated contact shows at the moment.
type SandboxAppearance struct {
	From       string
	Group      string         // the chat of a group in which it types; "" for the direct chat
	Typing     postern.Typing // "" for nothing
	Available  *bool          // nil: as before
	LastSeenAt *postern.Time  // of a contact that leaves; nil: it hides that
}

// PhoneMessage is a message on the simulated phone.
type PhoneMessage struct {
	ID   string       `json:"id" doc:"Id of the message on the network." example:"3EB0A1B2C3D4E5F60718"`
	From string       `json:"from" doc:"Number of the sender; empty for a post in a channel of which the phone is no administrator." example:"+15550001111"`
	To   string       `json:"to" doc:"Number of the recipient, or the chat of a group or a channel, or status for a status post." example:"+15551234567"`
	Type postern.Kind `json:"type" doc:"Kind of the message." example:"text"`
	Body string       `json:"body" doc:"The text." example:"Hello"`
	At   postern.Time `json:"at" doc:"When the phone got the message." example:"2026-11-21T09:00:00.000Z" format:"date-time"`

	Media *PhoneMedia `json:"media,omitempty" doc:"The file of a message that carries one; absent from other kinds."`

	LinkPreview *postern.LinkPreview `json:"linkPreview,omitempty" doc:"What a text shows of its link; absent if it shows nothing."`

	Pinned bool `json:"pinned,omitzero" doc:"True if the message is pinned in its chat; otherwise absent." example:"true"`

	Starred bool `json:"starred,omitzero" doc:"True if the owner of the phone has starred the message; otherwise absent." example:"true"`

	postern.Extra
}

// PhoneMedia is a file as the simulated phone shows it.
type PhoneMedia struct {
	MIMEType string  `json:"mimeType" doc:"Type of the file, as its message declares it." example:"image/jpeg"`
	Size     int64   `json:"size" doc:"Bytes of the file." example:"48213"`
	SHA256   string  `json:"sha256" doc:"SHA-256 of the file, in lower-case hexadecimal digits." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Filename string  `json:"filename,omitempty" doc:"Name of the file; absent if it has none." example:"invoice.pdf"`
	Duration float64 `json:"duration,omitzero" doc:"Length of a video or of audio, in seconds; absent from other files." example:"12"`
	Width    int     `json:"width,omitzero" doc:"Width of a picture or video, in pixels; absent from other files." example:"1280"`
	Height   int     `json:"height,omitzero" doc:"Height of a picture or video, in pixels; absent from other files." example:"720"`
}

// On tells whether the network is simulated.
func (g SandboxPhones) On() bool { return g.sandbox != nil }

func (g SandboxPhones) device(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if !g.On() {
		return postern.Device{}, postern.Errorf(
			postern.SandboxOff, "this server is connected to the real network; start a server with POSTERN_SANDBOX=on",
		)
	}
	return g.devices().get(ctx, c, id)
}

// linkedDevice finds a sandbox device that has an account.
func (g SandboxPhones) linkedDevice(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	d, err := g.device(ctx, c, id)
	if err == nil && (d.PhoneNumber == "" || !d.Status.HoldsSlot() || d.Status == postern.Linking) {
		err = postern.Errorf(postern.NotLinked, "the device is %s; link it first", d.Status)
	}
	return d, err
}

// phone finds a device whose phone the caller may control, and the simulated network of that phone.
func (g SandboxPhones) phone(
	ctx context.Context, c access.Caller, id postern.DeviceID,
) (d postern.Device, network SandboxNetwork, err error) {
	if err = c.Permit(postern.SandboxWrite); err != nil {
		return d, nil, err
	}
	if d, err = g.linkedDevice(ctx, c, id); err != nil {
		return d, nil, err
	}
	network, err = g.sandbox.Of(c.Workspace())
	return d, network, err
}

// Scan lets a simulated phone scan the code of the device's open link attempt, or lets its
// owner enter the pairing code; entered replaces the code that is shown. Without a number
// it uses the phone that the attempt names, or a phone of the device's own. It returns the
// number.
func (g SandboxPhones) Scan(
	ctx context.Context, c access.Caller, id postern.DeviceID, number, entered string,
) (string, error) {
	if err := c.Permit(postern.SandboxWrite); err != nil {
		return "", err
	}
	d, err := g.device(ctx, c, id)
	if err != nil {
		return "", err
	}
	if number, err = checkNumber(number); err != nil {
		return "", err
	}
	l, err := g.awaitCode(ctx, c, id)
	if err != nil {
		return "", err
	}
	number = cmp.Or(number, l.PhoneNumber, string(d.PhoneNumber), ownNumber(id))
	network, err := g.sandbox.Of(c.Workspace())
	if err != nil {
		return "", err
	}
	err = scan(ctx, network, l, number, entered)
	if errors.Is(err, ErrPasskeyAsked) {
		return number, g.awaitPasskey(ctx, c, id)
	}
	if err != nil {
		return "", postern.Errorf(
			postern.NoOpenLink, "the phone was refused, or the code was replaced; read the link attempt for the reason",
		)
	}
	return number, g.awaitLinked(ctx, c, id)
}

// ErrPasskeyAsked is the error of a scan or of an entered code after which the network asks for the passkey.
var ErrPasskeyAsked = errors.New("the network asks for the passkey")

// awaitPasskey waits until the attempt shows what the network asks for, but at most linkedWait.
func (g SandboxPhones) awaitPasskey(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	ctx, cancel := context.WithTimeout(ctx, linkedWait)
	defer cancel()
	changes := g.db.Listen(store.LinkChanged, string(id))
	defer changes.Close()
	for {
		l, err := g.links().get(context.WithoutCancel(ctx), c, id)
		if err != nil || l.Status != postern.LinkPending {
			return err
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return nil
		}
	}
}

// Passkey returns what the browser of a simulated phone's owner would send: the answer of the phone's passkey to the
// request of the open link attempt. mistake is what is wrong with it, and fault what goes wrong on the network; "" for
// nothing.
func (g SandboxPhones) Passkey(
	ctx context.Context, c access.Caller, id postern.DeviceID, mistake, fault string,
) (answer postern.PasskeyCredential, err error) {
	if err := c.Permit(postern.SandboxWrite); err != nil {
		return answer, err
	}
	if _, err := g.device(ctx, c, id); err != nil {
		return answer, err
	}
	l, err := g.links().get(ctx, c, id)
	switch {
	case err != nil:
		return answer, err
	case !l.Status.Open():
		return answer, errNoOpenLink
	case l.Passkey == nil:
		return answer, postern.Errorf(
			postern.NoPasskeyWanted, "the link attempt is %s; the network does not ask for a passkey", l.Status)
	}
	network, err := g.sandbox.Of(c.Workspace())
	if err != nil {
		return answer, err
	}
	return network.Passkey(l.Passkey.PublicKey, mistake, fault)
}

func scan(ctx context.Context, network SandboxNetwork, l postern.Link, number, entered string) error {
	if l.Method == postern.ByCode {
		return network.EnterCode(ctx, cmp.Or(entered, string(l.PairingCode)), number)
	}
	return network.Scan(ctx, cmp.Or(entered, string(l.QR)), number)
}

// awaitLinked waits until the device is connected, so that the next request can send, but
// at most linkedWait.
func (g SandboxPhones) awaitLinked(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	ctx, cancel := context.WithTimeout(ctx, linkedWait)
	defer cancel()
	changes := g.db.Listen(store.DeviceChanged, string(id))
	defer changes.Close()
	for {
		d, err := g.devices().get(context.WithoutCancel(ctx), c, id)
		if err != nil || d.Status != postern.Linking && d.Status != postern.Connecting {
			return err
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return nil
		}
	}
}

func checkNumber(number string) (string, error) {
	if number == "" {
		return "", nil
	}
	n, err := postern.ParsePhone(number)
	if err != nil {
		return "", postern.Invalid("/phoneNumber", "%v", err)
	}
	return n, nil
}

// ownNumber is the number of the simulated phone of a device when the caller names none.
func ownNumber(id postern.DeviceID) string {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("+1555%07d", binary.BigEndian.Uint64(sum[:])%10_000_000)
}

// awaitCode waits for the first code, which follows some milliseconds after the attempt
// was opened.
func (g SandboxPhones) awaitCode(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, codeWait)
	defer cancel()
	changes := g.db.Listen(store.LinkChanged, string(id))
	defer changes.Close()
	for {
		l, err := g.links().get(ctx, c, id)
		if err != nil {
			return l, err
		}
		if l.Status != postern.LinkPending {
			return l, postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device; open one first")
		}
		if l.QR != "" || l.PairingCode != "" {
			return l, nil
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return l, postern.Errorf(postern.Unavailable, "the link attempt has no code yet; try again shortly")
		}
	}
}

// Inbound lets a contact write to the device's account. It returns the network id of the
// message.
func (g SandboxPhones) Inbound(
	ctx context.Context, c access.Caller, id postern.DeviceID, in SandboxInbound,
) (networkID string, err error) {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return "", err
	}
	if in.From, err = postern.ParsePhone(in.From); err != nil {
		return "", postern.Invalid("/from", "%v", err)
	}
	if in.Group, err = checkGroup(in.Group); err != nil {
		return "", err
	}
	if in.Channel, err = checkPost(in); err != nil {
		return "", err
	}
	if err := checkStatus(in); err != nil {
		return "", err
	}
	if in.Media != nil {
		in.Content.Media = &postern.Media{Filename: cmp.Or(in.Media.Filename, "file")}
	}
	if in.Content, err = in.Content.Checked(); err != nil {
		return "", err
	}
	if in.ReplyTo != "" {
		m, err := g.messages().quoted(ctx, c, in.ReplyTo, id, cmp.Or(in.Group, postern.ChatOfNumber(in.From)))
		if err != nil {
			return "", err
		}
		in.QuoteOf = m.NetworkID
	}
	if in.Media == nil {
		return network.Inbound(ctx, string(d.PhoneNumber), in)
	}
	file, err := g.attachInbound(ctx, c, &in)
	if err != nil {
		return "", err
	}
	defer file.Close()
	in.File = file
	return network.Inbound(ctx, string(d.PhoneNumber), in)
}

// checkGroup returns the chat of a group in its usual form; "" stays.
func checkGroup(chat string) (string, error) {
	if chat == "" {
		return "", nil
	}
	id, err := postern.ParseChat(chat)
	if err != nil || !postern.IsGroup(id) {
		return "", postern.Invalid("/group", "this is not the chat of a group, such as group:120363041234567890")
	}
	return id, nil
}

// SandboxGroup is a group of simulated phones.
type SandboxGroup struct {
	ChatID       string   `json:"chatId" doc:"The chat of the group; usable as \"to\"." example:"group:120363041234567890"`
	Subject      string   `json:"subject" doc:"Its name." example:"Support"`
	Participants []string `json:"participants" nullable:"false" doc:"Numbers of the members. The first one is the administrator." example:"[\"+15551234567\",\"+15550001111\"]"`
}

// CreateGroup creates a group. The first member is its administrator, and the device's account the last one.
func (g SandboxPhones) CreateGroup(
	ctx context.Context, c access.Caller, id postern.DeviceID, subject string, members []string,
) (SandboxGroup, error) {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return SandboxGroup{}, err
	}
	list := make([]string, len(members), len(members)+1)
	for i, member := range members {
		if list[i], err = postern.ParsePhone(member); err != nil {
			return SandboxGroup{}, postern.Invalid("/participants/"+strconv.Itoa(i), "%v", err)
		}
	}
	list = append(list, string(d.PhoneNumber))
	chat, err := network.CreateGroup(string(d.PhoneNumber), subject, list)
	return SandboxGroup{chat, subject, list}, err
}

// SandboxGroupChange is what the phone of a member does in a group.
type SandboxGroupChange struct {
	From   string // whose phone it is
	Join   bool   // it uses the invitation first
	Group  postern.GroupChange
	People ParticipantsChange
	Delete postern.MessageID // a message that it deletes for everyone; "" for none
	Target string            // the network id of that message, which ChangeGroup finds
}

// ChangeGroup lets the phone of a member change a group, or of somebody who joins it.
func (g SandboxPhones) ChangeGroup(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, in SandboxGroupChange,
) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	group, err := postern.ParseChat(chat)
	if err != nil || !postern.IsGroup(group) {
		return postern.Errorf(postern.NotFound, "there is no such group; its id begins with group:")
	}
	if in.From, err = postern.ParsePhone(in.From); err != nil {
		return postern.Invalid("/from", "%v", err)
	}
	if err := in.People.parse(); err != nil {
		return err
	}
	if in.Delete != "" {
		m, err := g.messages().get(ctx, c, in.Delete)
		switch {
		case err != nil:
			return err
		case m.DeviceID != id || m.ChatID != group:
			return postern.Invalid("/delete", "the message is not one of this group")
		}
		in.Target = m.NetworkID
	}
	return network.ChangeGroup(ctx, string(d.PhoneNumber), group, in)
}

// parse brings numbers into their usual form.
func (p ParticipantsChange) parse() (err error) {
	for pointer, list := range map[string][]string{
		"/add": p.Add, "/remove": p.Remove, "/promote": p.Promote, "/demote": p.Demote,
	} {
		for i, number := range list {
			if list[i], err = postern.ParsePhone(number); err != nil {
				return postern.Invalid(pointer+"/"+strconv.Itoa(i), "%v", err)
			}
		}
	}
	return nil
}

// attachInbound finds the file that a simulated contact sends, and opens it.
func (g SandboxPhones) attachInbound(ctx context.Context, c access.Caller, in *SandboxInbound) (io.ReadCloser, error) {
	if in.Media.URL != "" {
		return nil, postern.Invalid("/media/url", "a simulated contact sends files by id or as data")
	}
	row, err := g.file(ctx, c, NewMessage{Media: in.Media})
	if err != nil {
		return nil, err
	}
	file := row.Media
	file.Filename = cmp.Or(in.Media.Filename, file.Filename)
	in.Content.Media = &file
	if in.Content.Kind == postern.KindVideo {
		in.Thumbnail = g.thumbnailOf(ctx, c, file)
	}
	_, r, err := Media(g).open(ctx, row)
	return r, err
}

// thumbnailOf makes a small JPEG of a video; nil if that is not possible.
func (g SandboxPhones) thumbnailOf(ctx context.Context, c access.Caller, file postern.Media) []byte {
	p, err := g.library.Prepare(ctx, c.Workspace(), library.Taken{Media: file}, postern.KindVideo)
	if err != nil {
		return nil // simulated contacts send what they like
	}
	p.Close()
	return p.Thumbnail
}

// Call lets a contact call the device's account, and returns the id of the call.
func (g SandboxPhones) Call(
	ctx context.Context, c access.Caller, id postern.DeviceID, from string, call postern.Call,
) (callID string, err error) {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return "", err
	}
	if from, err = postern.ParsePhone(from); err != nil {
		return "", postern.Invalid("/from", "%v", err)
	}
	return network.Call(ctx, string(d.PhoneNumber), from, call)
}

// Appear lets a contact show the device's account that it types, or whether it is online.
func (g SandboxPhones) Appear(ctx context.Context, c access.Caller, id postern.DeviceID, a SandboxAppearance) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	if a.From, err = postern.ParsePhone(a.From); err != nil {
		return postern.Invalid("/from", "%v", err)
	}
	return network.Appear(string(d.PhoneNumber), a)
}

// File reads the file of a message that the phone of a device shows. The caller closes it.
func (g SandboxPhones) File(
	ctx context.Context, c access.Caller, id postern.DeviceID, networkID string,
) (io.ReadCloser, postern.Media, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return nil, postern.Media{}, err
	}
	d, err := g.linkedDevice(ctx, c, id)
	if err != nil {
		return nil, postern.Media{}, err
	}
	network, err := g.sandbox.Of(c.Workspace())
	if err != nil {
		return nil, postern.Media{}, err
	}
	return network.File(string(d.PhoneNumber), networkID)
}

// Receipt lets the recipient of an outbound message confirm it, or the account read an inbound one on its phone. from is a member of the group to which it was sent; ""
// means all members.
func (g SandboxPhones) Receipt(
	ctx context.Context, c access.Caller, id postern.DeviceID, message postern.MessageID, from string,
	status postern.MessageStatus,
) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	m, err := g.messages().get(ctx, c, message)
	if err != nil {
		return err
	}
	read := m.Direction == postern.Inbound && status == postern.Read && from == ""
	if m.DeviceID != id || m.Direction != postern.Outbound && !read {
		return postern.Invalid("/messageId", "name a message that this device sent, or one that its account reads")
	}
	if from != "" {
		if !postern.IsGroup(m.ChatID) {
			return postern.Invalid("/from", "the message was sent to one person; leave this out")
		}
		if from, err = postern.ParsePhone(from); err != nil {
			return postern.Invalid("/from", "%v", err)
		}
	}
	if read {
		return network.ReadOnPhone(string(d.PhoneNumber), m.NetworkID)
	}
	return network.Receipt(ctx, string(d.PhoneNumber), from, m.NetworkID, status)
}

// SandboxChat is what an account sets for a chat on its simulated phone. Nil leaves it as it is.
type SandboxChat struct {
	ChatID          string
	Archived, Muted *bool
	Label           *string // the name of a label, which is made if there is none
	Labeled         *bool   // whether the chat has it; true by default
}

// SetChat lets the account archive, mute or label a chat on its phone.
func (g SandboxPhones) SetChat(ctx context.Context, c access.Caller, id postern.DeviceID, in SandboxChat) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	in.ChatID, err = postern.ParseChat(in.ChatID)
	switch {
	case err != nil || postern.NumberOfChat(in.ChatID) == "" && !postern.IsGroup(in.ChatID):
		return postern.Invalid("/chatId", "name a number or a group")
	case in.Label != nil && checkLabel(*in.Label, 0) != nil:
		return postern.Invalid("/label", "a name has 1 to %d characters of plain text, and no spaces around it",
			postern.MaxLabelName)
	}
	return network.SetChat(ctx, string(d.PhoneNumber), in)
}

// SetContact saves a person in the address book of the account's phone. Without a name, it removes the person. picture is
// the one that the person shows from now on; nil leaves it.
func (g SandboxPhones) SetContact(
	ctx context.Context, c access.Caller, id postern.DeviceID, number, name string, picture *NewMedia,
) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	if number, err = postern.ParsePhone(number); err != nil {
		return postern.Invalid("/phoneNumber", "%v", err)
	}
	if picture != nil {
		jpeg, err := g.avatar(ctx, c, picture)
		if err != nil {
			return err
		}
		if err := network.SetContactPicture(number, jpeg); err != nil {
			return err
		}
	}
	return network.SetContact(ctx, string(d.PhoneNumber), number, name)
}

// Fault makes the simulated vendor misbehave towards the device.
func (g SandboxPhones) Fault(ctx context.Context, c access.Caller, id postern.DeviceID, kind string) error {
	if err := c.Permit(postern.SandboxWrite); err != nil {
		return err
	}
	d, err := g.linkedDevice(ctx, c, id)
	if err != nil {
		return err
	}
	if kinds := SandboxFaults(); !slices.Contains(kinds, kind) {
		return postern.Invalid("/kind", "the fault must be one of %s", listed(kinds))
	}
	if kind == phoneUnseen { // nothing that the vendor does
		return errors.Join(g.phones().Forget(ctx, d.WorkspaceID, d.ID, g.time()), g.reportUnseen(ctx))
	}
	return g.fault(ctx, d, kind)
}

// phoneUnseen is the fault of a phone that is not used any more.
const phoneUnseen = "phone-unseen"

// SandboxFaults lists the ways in which the simulated vendor can misbehave.
func SandboxFaults() []string {
	return []string{"drop", "silence", "conflict", "restrict", "limit", "unlimit", "logout", "ban", phoneUnseen}
}

// Offline disconnects the device from the simulated vendor for a number of seconds, at
// most an hour; 0 lets it return at once.
func (g SandboxPhones) Offline(ctx context.Context, c access.Caller, id postern.DeviceID, seconds int) error {
	if err := c.Permit(postern.SandboxWrite); err != nil {
		return err
	}
	d, err := g.linkedDevice(ctx, c, id)
	if err != nil {
		return err
	}
	if seconds < 0 || seconds > maxOffline {
		return postern.Invalid("/seconds", "from 0 to %d", maxOffline)
	}
	return g.fault(ctx, d, "offline:"+strconv.Itoa(seconds))
}

func (g SandboxPhones) fault(ctx context.Context, d postern.Device, kind string) error {
	network, err := g.sandbox.Of(d.WorkspaceID)
	if err != nil {
		return err
	}
	return network.Fault(ctx, string(d.PhoneNumber), kind)
}

// List lists what the phone of the device's account shows.
func (g SandboxPhones) List(ctx context.Context, c access.Caller, id postern.DeviceID) ([]PhoneMessage, error) {
	if err := c.Permit(postern.SandboxWrite); err != nil {
		return nil, err
	}
	d, err := g.device(ctx, c, id)
	if err != nil {
		return nil, err
	}
	network, err := g.sandbox.Of(c.Workspace())
	if err != nil {
		return nil, err
	}
	return network.Phone(string(d.PhoneNumber)), nil
}
