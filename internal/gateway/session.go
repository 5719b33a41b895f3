package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/newchats"
	"postern/internal/store/passkeys"
	"postern/internal/store/phones"
)

// SessionState is the state of a device's session as the session engine sees it.
type SessionState struct {
	Status      postern.Status
	Reason      string
	Until       postern.Time // when a restriction ends; 0 if that is unknown
	DisplayName string
}

// eventOf returns the event that a state causes. Connecting is only a transition and
// causes none.
func eventOf(s postern.Status) (postern.EventType, bool) {
	switch s {
	case postern.Connected:
		return postern.DeviceConnected, true
	case postern.Disconnected:
		return postern.DeviceDisconnected, true
	case postern.Restricted:
		return postern.DeviceRestricted, true
	case postern.LoggedOut:
		return postern.DeviceLoggedOutEv, true
	case postern.Banned:
		return postern.DeviceBanned, true
	case postern.Conflict:
		return postern.DeviceConflict, true
	case postern.Unlinked, postern.Linking, postern.Connecting, postern.Paused:
	}
	return "", false
}

// live returns the states that a session may leave on its own. A state that the user or
// the plan has set since is never overwritten.
func live() []postern.Status {
	return []postern.Status{
		postern.Connecting,
		postern.Connected,
		postern.Disconnected,
		postern.Restricted,
		postern.Conflict,
	}
}

// SetState records the state of a device's session, with an event if the status has
// changed, or the reason of a disconnected device: a refused login is not what ended the
// connection before it. When the account is gone, queued messages fail and the device's slot is freed.
func (g Sessions) SetState(ctx context.Context, id postern.DeviceID, s SessionState) error {
	d, err := g.db.Devices.ForEngine(ctx, id)
	if err != nil {
		return err
	}
	o := store.SetDeviceState{
		WorkspaceID: d.WorkspaceID,
		DeviceID:    id,
		Status:      s.Status,
		Reason:      s.Reason,
		Until:       s.Until,
		DisplayName: s.DisplayName,
		From:        live(),
		At:          g.time(),
	}
	if s.Status == postern.LoggedOut || s.Status == postern.Banned {
		o.Desired, o.DropAccount, o.FailQueued = postern.WantIdle, true, true
	}
	if d.Status == s.Status && string(d.StatusReason) == s.Reason && d.RestrictedUntil == s.Until &&
		(s.DisplayName == "" || s.DisplayName == string(d.DisplayName)) {
		return nil
	}
	changed := d.Status != s.Status || s.Status == postern.Disconnected
	if t, makes := eventOf(s.Status); makes && changed {
		if o.Event, err = g.event(d, s, o.At, t); err != nil {
			return err
		}
	}
	return g.db.Devices.SetState(ctx, o)
}

func (g Sessions) event(
	d postern.Device, s SessionState, at postern.Time, t postern.EventType,
) (*postern.Event, error) {
	d.Status, d.StatusReason, d.RestrictedUntil = s.Status, postern.Maybe(s.Reason), s.Until
	if s.DisplayName != "" {
		d.DisplayName = postern.Maybe(s.DisplayName)
	}
	if s.Status == postern.Connected {
		d.ConnectedAt, d.LastSeenAt = at, at
	}
	e, err := d.Event(t)
	return &e, err
}

// SetNewChats records whether the account of a device may start chats.
func (g Sessions) SetNewChats(ctx context.Context, id postern.DeviceID, n postern.NewChats) error {
	d, err := g.db.Devices.ForEngine(ctx, id)
	if err != nil {
		return err
	}
	kind := postern.DeviceLimited
	if n.Allowed {
		kind, n.Until = postern.DeviceUnlimited, 0
	}
	n.Slowed = d.NewChats.Slowed
	if !n.Allowed && d.NewChats.Allowed { // as it is stored with the event
		n.Slowed = min(n.Slowed+1, postern.MostSlowed)
	}
	d.NewChats = n
	e, err := d.Event(kind)
	if err != nil {
		return err
	}
	return g.newChats().Set(ctx, newchats.Change{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, NewChats: n, At: g.time(), Event: e,
	})
}

func (g *core) newChats() newchats.Table { return newchats.Of(g.db) }

func (g *core) phones() phones.Table { return phones.Of(g.db) }

// PhoneSeen records that the phone of a device was seen.
func (g Sessions) PhoneSeen(ctx context.Context, id postern.DeviceID, at postern.Time) error {
	return g.phones().Seen(ctx, id, at)
}

// ReportUnseen reports which phones have not been seen for long.
func (g Sessions) ReportUnseen(ctx context.Context) error { return g.reportUnseen(ctx) }

func (g *core) reportUnseen(ctx context.Context) error {
	now := g.time()
	list, err := g.phones().Unseen(ctx, now, limitChunk)
	for _, id := range list {
		d, readErr := g.db.Devices.ForEngine(ctx, id)
		e, eventErr := d.Event(postern.DevicePhoneUnseen)
		if err = errors.Join(err, readErr, eventErr); err == nil {
			err = g.phones().Report(ctx, id, e, now)
		}
	}
	return err
}

// LiftLimits lets accounts start chats again whose limit is over, and others start them faster that have not been
// limited for a day.
func (g Sessions) LiftLimits(ctx context.Context) error {
	now := g.time()
	list, err := g.newChats().Over(ctx, now, now.Add(-limitTime), limitChunk)
	for _, id := range list {
		err = errors.Join(err, g.SetNewChats(ctx, id, postern.NewChats{Allowed: true}))
	}
	return errors.Join(err, g.newChats().Ease(ctx, now, now.Add(-easeTime)))
}

// Unlinked records that the vendor has confirmed the removal of a link, or that there was
// nothing to remove.
func (g Sessions) Unlinked(ctx context.Context, d postern.Device) error {
	return g.db.Devices.SetState(ctx, store.SetDeviceState{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Unlinked, Reason: "unlinked",
		Desired: postern.WantIdle, DropAccount: true,
		FromDesired: postern.WantUnlink, At: g.time(),
	})
}

// Receive stores a message that arrived, or that the account sent from elsewhere, with its
// event. If it carries a file, source is where the file is fetched. Only after Receive has
// returned nil may the message be acknowledged to the network.
func (g Sessions) Receive(
	ctx context.Context, m postern.Message, sender string, t postern.EventType, f ArrivedFile,
) error {
	m.ID, m.CreatedAt, m.Metadata = postern.NewMessageID(), g.time(), map[string]string{}
	o := store.RecordInbound{
		Sender: sender, Type: t, Undecryptable: t == postern.MessageUndecryptable, Now: m.CreatedAt,
	}
	if m.Content.Media != nil {
		o.File = g.received(&m, f)
	}
	o.Message = m
	return g.db.Messages.RecordInbound(ctx, o)
}

// ChatOf returns the chat that we have with a person whom the network names by a LID: once the number behind it is
// known, there is only the chat with the number. Other chats stay as they are.
func (g Sessions) ChatOf(ctx context.Context, d postern.Device, chat string) (string, error) {
	if !strings.HasPrefix(chat, "lid:") {
		return chat, nil
	}
	return g.chatOf(ctx, d.WorkspaceID, chat)
}

// chatOf returns the chat that we have with the person of a direct chat, who may be known by another name by now.
func (g *core) chatOf(ctx context.Context, ws postern.WorkspaceID, chat string) (string, error) {
	if !postern.IsDirect(chat) {
		return chat, nil
	}
	c, err := g.contacts().Named(ctx, ws, "", chat)
	if err != nil || c.PhoneNumber == "" {
		return chat, err
	}
	return c.ChatID, nil
}

// Starred records that the account has starred a message elsewhere, or has taken its star away. It
// ignores a message that we do not have, and a change that was made here, and may be called again.
func (g Sessions) Starred(
	ctx context.Context, d postern.Device, chat, about string, starred bool, at postern.Time,
) error {
	known, err := g.Quoted(ctx, d, chat, about)
	if err != nil || known == "" {
		return err
	}
	ours, err := g.db.Messages.IsActed(ctx, d.ID, chat, about, postern.KindStar, at)
	if err != nil || ours {
		return err
	}
	return g.Receive(ctx, postern.Message{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound, ChatID: chat, From: d.PhoneNumber,
		To: postern.Maybe(postern.NumberOfChat(chat)), About: about, Content: postern.StarOf(starred),
		Status: postern.Sent, NetworkID: starID(chat, about, starred, at), Source: postern.FromPhone, SentAt: at,
	}, "", postern.MessageEcho, ArrivedFile{})
}

// starID identifies a change of a star, which has no id on the network.
func starID(chat, about string, starred bool, at postern.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %d", chat, about, starred, at))
	return "STAR" + strings.ToUpper(hex.EncodeToString(sum[:9]))
}

// ArrivedFile is the file of a message that has arrived.
type ArrivedFile struct {
	Source []byte            // where it is fetched
	Mode   postern.MediaMode // when it is fetched; "" is eager
}

// received gives the file of a message an id, and returns its row. A view-once file without a source
// is not fetched.
func (g Sessions) received(m *postern.Message, f ArrivedFile) *store.MediaRow {
	file, next := *m.Content.Media, m.CreatedAt
	file.ID, file.Status, file.SHA256 = postern.NewMediaID(), postern.MediaPending, ""
	if f.Mode == postern.MediaLazy {
		next = next.Add(store.UntilAsked)
	}
	if m.Content.ViewOnce && len(f.Source) == 0 || f.Mode == postern.MediaOff || g.library == nil {
		file.Status, f.Source = postern.MediaExpired, nil
	}
	m.Content.Media = &file
	return &store.MediaRow{
		Media: file, WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, MessageID: m.ID,
		Source: g.SealSource(file.ID, f.Source), NextAt: next, CreatedAt: m.CreatedAt, UsedAt: m.CreatedAt,
	}
}

// SealSource encrypts where a file is fetched, which includes the key of the file.
func (g Sessions) SealSource(id postern.MediaID, source []byte) []byte {
	return g.box.Seal(source, id.SourcePlace())
}

// OpenSource decrypts what SealSource has encrypted.
func (g Sessions) OpenSource(id postern.MediaID, sealed []byte) ([]byte, error) {
	source, err := g.box.Open(sealed, id.SourcePlace())
	if err != nil {
		return nil, fmt.Errorf("read where a file is: %w", err)
	}
	return source, nil
}

// Quoted returns the id of a message in a chat of a device, by the network id under which a
// reply names it; null if we do not have the message.
func (g Sessions) Quoted(
	ctx context.Context, d postern.Device, chat, networkID string,
) (postern.Maybe, error) {
	m, ok, err := g.db.Messages.InChat(ctx, d.ID, chat, networkID)
	if err != nil || !ok {
		return "", err
	}
	return postern.Maybe(m.ID), nil
}

// Receipt is what the network tells a device of messages that it sent.
type Receipt struct {
	NetworkIDs []string
	Chats      []string // all names of the chat; messages that were sent to others stay as they are
	Member     string   // who confirms in a group: "lid:" and digits, or a number; "" in a direct chat
	Number     string   // of the member; "" while the network hides it
	Status     postern.MessageStatus
	At         postern.Time // the network's time
}

// Confirm advances the status of messages by the network's receipts to a device.
func (g Sessions) Confirm(ctx context.Context, d postern.Device, r Receipt) error {
	list := make([]store.Receipt, len(r.NetworkIDs))
	for i, id := range r.NetworkIDs {
		list[i] = store.Receipt{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, NetworkID: id, Chats: r.Chats, Member: r.Member, Number: r.Number,
			Status: r.Status, At: r.At, Now: g.time(),
		}
	}
	return g.db.Messages.RecordReceipts(ctx, list)
}

// ProxyOf returns the URL of the proxy for a device's connection to the network; "" means
// a direct connection. If it cannot be decrypted, that is an error: a direct connection
// would reveal the server's own address.
func (g Sessions) ProxyOf(d *postern.Device) (string, error) {
	if len(d.Proxy) == 0 {
		return "", nil
	}
	url, err := g.box.Open(d.Proxy, d.ID.ProxyPlace())
	if err != nil {
		return "", fmt.Errorf("read the proxy of a device: %w", err)
	}
	return string(url), nil
}

// OpenLink finds the link attempt that the engine has to serve; ok is false if none is
// open.
func (g Sessions) OpenLink(ctx context.Context, d postern.Device) (l store.LinkRow, ok bool, err error) {
	l, ok, err = g.db.Links.Latest(ctx, d.WorkspaceID, d.ID)
	return l, ok && l.Status == postern.LinkPending, err
}

// WatchLink reports every change of a device's link attempts until the listener is closed.
func (g Sessions) WatchLink(id postern.DeviceID) *store.Listener {
	return g.db.Listen(store.LinkChanged, string(id))
}

// ShowCode stores a new code for a link attempt. The code is encrypted, because anyone who
// reads it while it is valid can take over the account.
func (g Sessions) ShowCode(l store.LinkRow, text string, expires postern.Time) {
	g.db.Links.SetCode(l.ID, l.DeviceID, g.box.Seal([]byte(text), l.ID.CodePlace()), expires)
}

// WantPasskey shows that the network asks for the passkey of the account, and keeps the attempt open long enough for
// its owner to get it.
func (g Sessions) WantPasskey(ctx context.Context, d postern.Device, l store.LinkRow, o postern.PasskeyOptions) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode a request for a passkey: %w", err)
	}
	d.Status, d.StatusReason = postern.Linking, "passkey-required"
	e, err := d.Event(postern.DeviceLinking)
	if err != nil {
		return fmt.Errorf("describe the device: %w", err)
	}
	now := g.time()
	return g.passkeys().Want(ctx, l, raw, now.Add(passkeyTime), e, now)
}

// ForgetPasskey begins an attempt anew whose connection is gone, so that a request for a passkey is no longer shown.
func (g Sessions) ForgetPasskey(ctx context.Context, l store.LinkRow) error {
	if !l.Passkey {
		return nil
	}
	return g.passkeys().Reset(ctx, l)
}

// Credential waits for the owner's answer to the network's request.
func (g Sessions) Credential(ctx context.Context, l store.LinkRow) (c postern.PasskeyCredential, err error) {
	raw, err := g.passkeys().Await(ctx, l, passkeys.Answered)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}

// CompareCode shows a code for the owner to compare.
func (g Sessions) CompareCode(ctx context.Context, l store.LinkRow, code string) error {
	ok, err := g.passkeys().Compare(ctx, l, code)
	if err == nil && !ok {
		err = errNoOpenLink
	}
	return err
}

// CodeCompared waits until the owner has compared the code.
func (g Sessions) CodeCompared(ctx context.Context, l store.LinkRow) error {
	_, err := g.passkeys().Await(ctx, l, passkeys.Confirmed)
	return err
}

// RefusedError means that the phone that scanned a code may not be linked. Its text is the
// reason of the link attempt.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Scanned decides whether an account may be linked to the device, before any of its keys
// is stored. It returns a RefusedError if not.
func (g Sessions) Scanned(ctx context.Context, d postern.Device, l store.LinkRow, account, number string) error {
	switch {
	case l.ExpectedNumber != "" && l.ExpectedNumber != number, l.PhoneNumber != "" && l.PhoneNumber != number:
		return RefusedError("unexpected-number")
	case d.PhoneNumber != "" && string(d.PhoneNumber) != number && !l.AllowNewNumber:
		return RefusedError("other-number")
	}
	err := g.db.Links.Scanned(ctx, l, account, number)
	if postern.ReasonOf(err) == postern.NumberAlreadyLinked {
		return RefusedError(postern.NumberAlreadyLinked)
	}
	return err
}

// Linked records that the device is linked. The account's keys are durable by then.
func (g Sessions) Linked(
	ctx context.Context, d postern.Device, l store.LinkRow, account, number, displayName string,
) error {
	now := g.time()
	d.Status, d.StatusReason, d.PhoneNumber, d.DisplayName, d.LinkedAt = postern.Connecting, "", postern.Maybe(
		number,
	), postern.Maybe(displayName), now
	e, err := d.Event(postern.DeviceLinked)
	if err != nil {
		return fmt.Errorf("describe the device: %w", err)
	}
	return g.db.Links.Finish(ctx, store.FinishLink{
		LinkID: l.ID, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: account, Number: number,
		DisplayName: displayName, At: now, Event: e,
	})
}

// EndLink ends a link attempt without a link.
func (g Sessions) EndLink(ctx context.Context, l store.LinkRow, status postern.LinkStatus, reason string) error {
	_, err := g.db.Links.End(ctx, store.LinkEnd{
		WorkspaceID: l.WorkspaceID, DeviceID: l.DeviceID, LinkID: l.ID, Status: status, Reason: reason, At: g.time(),
	})
	return err
}
