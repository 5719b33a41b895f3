package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/vendorsim"
)

// rememberVendor stores the root key of the vendor in the database. It returns an error if
// devices are linked at another vendor: a simulated vendor must never see the keys of a
// real device, and vice versa.
func rememberVendor(ctx context.Context, db *store.Store, rootKey []byte) error {
	const setting = "vendor_root_key"
	now := fingerprint(rootKey)
	before, err := db.Settings.Get(ctx, setting)
	if err != nil || before == now {
		return err
	}
	linked, err := db.Devices.CountLinked(ctx)
	if err != nil {
		return err
	}
	if before != "" && linked > 0 {
		return fmt.Errorf("this database has %d devices linked at %s, and the server was started for %s; "+
			"start it as before, or with another POSTERN_DATA_DIR", linked, before, now)
	}
	return db.Settings.Set(ctx, setting, now)
}

// fingerprint returns the name of a vendor for the database and for error messages.
func fingerprint(rootKey []byte) string {
	if rootKey == nil {
		return "the real vendor"
	}
	sum := sha256.Sum256(rootKey)
	return "a vendor with root key " + hex.EncodeToString(sum[:8])
}

func (a *App) sandbox() gateway.Sandbox {
	if a.vendor == nil {
		return nil
	}
	return spaces{a.vendor}
}

// spaces gives each workspace its own number space.
type spaces struct{ *vendorsim.Spaces }

func (s spaces) Of(ws postern.WorkspaceID) (gateway.SandboxNetwork, error) {
	v, err := s.Spaces.Of(string(ws))
	return simulated{v}, err
}

// simulated lets the sandbox routes control the simulated vendor of a workspace.
type simulated struct{ *vendorsim.Vendor }

func (s simulated) Scan(ctx context.Context, qr, number string) error {
	return passkeyAsked(s.Vendor.Scan(ctx, qr, number))
}

func (s simulated) EnterCode(ctx context.Context, code, number string) error {
	return passkeyAsked(s.Vendor.EnterCode(ctx, code, number))
}

func passkeyAsked(err error) error {
	if errors.Is(err, vendorsim.ErrPasskey) {
		return gateway.ErrPasskeyAsked
	}
	return err
}

func (s simulated) Passkey(o postern.PasskeyOptions, mistake, fault string) (c postern.PasskeyCredential, err error) {
	request, err := json.Marshal(o)
	if err != nil {
		return c, fmt.Errorf("encode a request for a passkey: %w", err)
	}
	number, err := s.Passkeys().OwnerOf(request)
	if err == nil && fault != "" {
		err = s.Passkeys().Fail(number, vendorsim.PasskeyFault(fault))
	}
	var answer []byte
	if err == nil {
		var p *vendorsim.Passkey
		if p, err = s.Vendor.Passkeys().Of(number); err == nil {
			answer, err = p.Answer(request, vendorsim.PasskeyMistake(mistake))
		}
	}
	if err != nil {
		return c, postern.Errorf(postern.NoPasskeyWanted, "no simulated phone has a passkey for this link attempt")
	}
	return c, json.Unmarshal(answer, &c)
}

func (s simulated) Inbound(ctx context.Context, account string, in gateway.SandboxInbound) (string, error) {
	c := simulatedContent(in.Content)
	c.ReplyTo = in.QuoteOf
	if in.File != nil {
		file, err := s.upload(account, c.Type, in)
		if err != nil {
			return "", simulatedError(err)
		}
		c.Media = describedFile(file, in.Content)
		c.Media.Thumbnail = in.Thumbnail
	}
	if channel, ok := strings.CutPrefix(in.Channel, "channel:"); ok {
		id, err := s.Channels().Post(channel, in.From, c)
		return id, channelError(err)
	}
	if in.Status {
		id, err := s.Status().Post(ctx, in.From, c, account)
		return id, simulatedError(err)
	}
	if group, ok := strings.CutPrefix(in.Group, "group:"); ok {
		id, err := s.WriteInGroup(ctx, group, in.From, c)
		return id, simulatedError(err)
	}
	id, err := s.SendContent(ctx, account, in.From, c)
	return id, simulatedError(err)
}

// upload stores the file of what a simulated contact writes.
func (s simulated) upload(account, kind string, in gateway.SandboxInbound) (vendorsim.Media, error) {
	if in.Channel != "" {
		return s.Channels().Upload(in.From, kind, in.File)
	}
	return s.Upload(account, kind, in.File)
}

func (s simulated) CreateGroup(_, subject string, members []string) (string, error) {
	g, err := s.Vendor.CreateGroup(subject, members...)
	return "group:" + g.ID, simulatedError(err)
}

func (s simulated) CreateChannel(
	account, owner, name string, admin bool,
) (created gateway.SandboxChannel, err error) {
	ch, err := s.Channels().Create(owner, name, "")
	if err == nil && admin {
		err = s.Channels().Promote(ch.ID, account)
	}
	return gateway.SandboxChannel{ChatID: "channel:" + ch.ID, Name: ch.Name, Invite: ch.Invite}, channelError(err)
}

// channelError is [simulatedError] for a channel.
func channelError(err error) error {
	switch {
	case errors.Is(err, vendorsim.ErrUnknownChannel):
		return postern.Invalid("/channel", "there is no such channel on the simulated network; create it first")
	case errors.Is(err, vendorsim.ErrNotAllowed):
		return postern.Invalid("/from", "only administrators of the channel may post in it")
	}
	return simulatedError(err)
}

func (s simulated) ChangeGroup(ctx context.Context, account, chat string, in gateway.SandboxGroupChange) error {
	id, c, p := strings.TrimPrefix(chat, "group:"), in.Group, in.People
	if in.Join {
		if waits, err := s.JoinGroup(id, in.From); err != nil || waits {
			return simulatedError(err)
		}
	}
	if in.Target != "" {
		if _, err := s.Revoke(ctx, account, in.From, in.Target); err != nil {
			return simulatedError(err)
		}
	}
	return simulatedError(s.Vendor.ChangeGroup(id, in.From, vendorsim.GroupChange{
		Subject: c.Subject, Description: c.Description, AnnounceOnly: c.AnnounceOnly, AdminsEdit: c.AdminsEdit,
		JoinApproval: c.JoinApproval, Disappearing: c.Disappearing, Add: p.Add, Remove: p.Remove, Promote: p.Promote,
		Demote: p.Demote,
	}))
}

func (s simulated) Remember(
	ctx context.Context, account, from string, list []gateway.SandboxPast, onRequest bool,
) error {
	past := make([]vendorsim.Past, len(list))
	for i, m := range list {
		past[i] = vendorsim.Past{
			From: from, Content: vendorsim.Content{Type: vendorsim.TypeText, Body: m.Body}, At: m.SentAt,
		}
		if m.FromMe {
			past[i].From, past[i].To = account, from
		}
	}
	err := s.Vendor.Remember(account, past)
	if err == nil && !onRequest {
		err = s.SyncHistory(ctx, account)
	}
	return simulatedError(err)
}

func (s simulated) Call(ctx context.Context, account, from string, c postern.Call) (string, error) {
	id, err := s.Vendor.Call(ctx, account, from, vendorsim.Call(c))
	return id, simulatedError(err)
}

func (s simulated) Appear(account string, a gateway.SandboxAppearance) error {
	if a.Available != nil {
		seen := vendorsim.Seen{Online: *a.Available}
		if a.LastSeenAt != nil {
			seen.Last = a.LastSeenAt.Std()
		}
		if err := s.Online().Appear(a.From, seen); err != nil {
			return simulatedError(err)
		}
	}
	if a.Typing == "" {
		return nil
	}
	kind := map[postern.Typing]vendorsim.MomentKind{
		postern.TypingVoice: vendorsim.MomentRecording, postern.TypingPaused: vendorsim.MomentPaused,
		postern.TypingText: vendorsim.MomentTyping,
	}[a.Typing]
	return simulatedError(s.Online().Type(account, a.From, strings.TrimPrefix(a.Group, "group:"), kind))
}

// describedFile completes what a simulated phone says about a file.
func describedFile(file vendorsim.Media, c postern.Content) *vendorsim.Media {
	m := c.Media
	file.MimeType, file.FileName, file.Seconds = m.MIMEType, m.Filename, int(math.Ceil(m.Duration))
	file.Width, file.Height, file.ViewOnce, file.GIF, file.Round = m.Width, m.Height, c.ViewOnce, c.GIF, c.Round
	return &file
}

// File reads a file that the phone shows.
func (s simulated) File(number, networkID string) (io.ReadCloser, postern.Media, error) {
	shown, err := s.ShownMessage(number, networkID)
	if err != nil || shown.Media == nil {
		return nil, postern.Media{}, postern.Errorf(postern.NotFound, "the phone shows no such file")
	}
	r, err := s.OpenMedia(*shown.Media)
	if err != nil {
		return nil, postern.Media{}, postern.Errorf(postern.NotFound, "the simulated network no longer has the file")
	}
	m := shown.Media
	return r, postern.Media{
		MIMEType: m.MimeType, Size: m.Size, SHA256: m.SHA256.String(), Filename: m.FileName, Status: postern.MediaReady,
	}, nil
}

func shownMedia(m *vendorsim.Media) *gateway.PhoneMedia {
	if m == nil {
		return nil
	}
	return &gateway.PhoneMedia{
		MIMEType: m.MimeType, Size: m.Size, SHA256: m.SHA256.String(), Filename: m.FileName,
		Duration: float64(m.Seconds), Width: m.Width, Height: m.Height,
	}
}

// simulatedError translates what the caller can do something about. It leaves out the number
// that the vendor's error names.
func simulatedError(err error) error {
	switch {
	case errors.Is(err, vendorsim.ErrUnknownAccount):
		return postern.Errorf(postern.NotLinked, "the simulated phone is not linked to the device; link it first")
	case errors.Is(err, vendorsim.ErrNotOnNetwork):
		return postern.Invalid("", "one of the numbers is not on the simulated network")
	case errors.Is(err, vendorsim.ErrUnknownGroup):
		return postern.Invalid("/group", "there is no such group on the simulated network; create it first")
	case errors.Is(err, vendorsim.ErrNotAllowed), errors.Is(err, vendorsim.ErrNotAuthor):
		return postern.Invalid("/from", "only administrators of the group may do this")
	case errors.Is(err, vendorsim.ErrNotMember):
		return postern.Invalid("/from", "this number is not a member of the group")
	case errors.Is(err, vendorsim.ErrUnknownMessage):
		return postern.Invalid("/messageId", "the network does not have this message; wait until it is sent")
	}
	return err
}

// simulatedContent returns content as simulated phones write it.
func simulatedContent(c postern.Content) vendorsim.Content {
	simulated := vendorsim.Content{
		Type: string(c.Kind), Body: c.Text, Location: (*vendorsim.Location)(c.Location), Poll: (*vendorsim.Poll)(c.Poll),
		Mentions: c.Mentions, Forwarded: c.Forwarded,
	}
	if p := c.LinkPreview; p != nil {
		simulated.LinkPreview = &vendorsim.LinkPreview{URL: p.URL, Title: p.Title, Description: p.Description}
	}
	for _, one := range c.Contacts {
		simulated.Contacts = append(simulated.Contacts, vendorsim.Contact(one))
	}
	return simulated
}

// shownContent returns content that a simulated phone shows.
func shownContent(c vendorsim.Content) postern.Extra {
	shown := postern.Extra{
		Location: (*postern.Location)(c.Location), Poll: (*postern.Poll)(c.Poll),
		Mentions: c.Mentions, Forwarded: c.Forwarded,
	}
	if m := c.Media; m != nil {
		shown.ViewOnce, shown.GIF, shown.Round = m.ViewOnce, m.GIF, m.Round
	}
	for _, one := range c.Contacts {
		shown.Contacts = append(shown.Contacts, postern.Contact(one))
	}
	return shown
}

func shownPreview(p *vendorsim.LinkPreview) *postern.LinkPreview {
	if p == nil {
		return nil
	}
	return &postern.LinkPreview{URL: p.URL, Title: p.Title, Description: p.Description}
}

func (s simulated) Receipt(
	ctx context.Context, account, from, networkID string, status postern.MessageStatus,
) error {
	if from != "" {
		return simulatedError(s.GroupReceipt(account, from, networkID, vendorsim.ReceiptKind(status)))
	}
	return simulatedError(s.Vendor.Receipt(ctx, account, networkID, vendorsim.ReceiptKind(status)))
}

func (s simulated) ReadOnPhone(account, networkID string) error {
	return simulatedError(s.PhoneRead(account, false, networkID))
}

func (s simulated) SetChat(ctx context.Context, account string, c gateway.SandboxChat) error {
	var err error
	if c.Archived != nil {
		err = s.PhoneChats().Archive(ctx, account, c.ChatID, *c.Archived)
	}
	if c.Muted != nil && err == nil {
		err = s.PhoneChats().Mute(ctx, account, c.ChatID, *c.Muted, 0)
	}
	if c.Label != nil && err == nil {
		err = s.PhoneLabels().PutNamed(ctx, account, c.ChatID, *c.Label, c.Labeled == nil || *c.Labeled)
	}
	return simulatedError(err)
}

func (s simulated) SetContact(ctx context.Context, account, number, name string) error {
	if name == "" {
		return simulatedError(s.AddressBook().Remove(ctx, account, number))
	}
	return simulatedError(s.AddressBook().Save(ctx, account, vendorsim.BookEntry{Number: number, Name: name}))
}

func (s simulated) SetContactPicture(number string, jpeg []byte) error {
	return simulatedError(s.PhoneProfiles().SetPicture(number, jpeg))
}

func (s simulated) Fault(ctx context.Context, account, kind string) error {
	return simulatedError(s.Vendor.Fault(ctx, account, vendorsim.Fault(kind)))
}

func (s simulated) Phone(number string) []gateway.PhoneMessage {
	shown := s.Shown(number)
	list := make([]gateway.PhoneMessage, len(shown))
	for i, m := range shown {
		to := m.To
		if m.Group != "" {
			to = "group:" + m.Group
		}
		if m.Group == vendorsim.StatusID {
			to = postern.StatusChat
		}
		if m.Channel != "" {
			to = "channel:" + m.Channel
		}
		list[i] = gateway.PhoneMessage{
			ID: m.ID, From: m.From, To: to, Type: postern.Kind(m.Type), Body: m.Body, At: postern.TimeOf(m.At),
			Extra: shownContent(m.Content), Media: shownMedia(m.Media), Pinned: m.Pinned, Starred: m.Starred, LinkPreview: shownPreview(m.LinkPreview),
		}
	}
	return list
}
