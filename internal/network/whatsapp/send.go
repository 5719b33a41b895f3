package whatsapp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/network/whatsapp/live"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// Send hands m to the vendor and waits for its answer.
func (s *session) Send(ctx context.Context, m network.Outbound) (time.Time, error) {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return time.Time{}, network.ErrNotConnected
	}
	defer c.calls.Leave()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	to, err := c.recipient(ctx, m.ChatID)
	if err != nil {
		return time.Time{}, err
	}
	switch m.Content.Kind {
	case postern.KindRead:
		return c.confirm(ctx, to, m, types.ReceiptTypeRead)
	case postern.KindPlayed:
		return c.confirm(ctx, to, m, types.ReceiptTypePlayed)
	case postern.KindStar:
		return s.star(ctx, c, to, m)
	default: // a message, or an action that is sent as one
	}
	if to == types.StatusBroadcastJID {
		if err := c.choose(ctx, m); err != nil {
			return time.Time{}, err
		}
	}
	at, err := c.transmit(ctx, to, m)
	for tries := 1; tries < staleTries && errors.Is(err, keys.ErrStale); tries++ {
		at, err = c.transmit(ctx, to, m)
	}
	if errors.Is(err, errNoCopy) {
		if err := c.resetKeys(ctx, to); err != nil {
			return time.Time{}, redact("send", err)
		}
		at, err = c.transmit(ctx, to, m)
	}
	if errors.Is(err, errNoCopy) {
		return time.Time{}, c.unencrypted(ctx, to)
	}
	return at, err
}

// choose makes those who may see a status post get the message that is sent next, also people who were saved or removed
// on the phone just now.
func (c *conn) choose(ctx context.Context, m network.Outbound) error {
	err := c.state.Sync(ctx, state.Contacts, func() {})
	if errors.Is(err, state.ErrNotStored) {
		c.end(disconnected("store-unavailable")) // the next connection reads it again
		return network.ErrNotConnected
	}
	if err != nil {
		c.log.WarnContext(ctx, "the address book was not read", "error", redact("read", err))
	}
	book, err := m.Book(ctx)
	if err == nil {
		err = c.audience.Choose(ctx, c.cli, book)
	}
	if err == nil || isErr[*network.Rejected](err) {
		return err
	}
	return unsent("choose who sees a status post", err)
}

// unencrypted returns the error of a message that held no copy for the recipient's phone again. whatsmeow
// also omits the copy if it gets no answer to its request for keys, for example because the connection has
// ended. Then the message may be tried again, unless the vendor refuses the request for good.
func (c *conn) unencrypted(ctx context.Context, to types.JID) error {
	fetch := c.cli.DangerousInternals().FetchPreKeys //nolint:staticcheck // there is no other way
	var iq *whatsmeow.IQError
	_, err := fetch(ctx, []types.JID{to})
	refused := errors.As(err, &iq) && iq.Code/100 == 4 && iq.Code != http.StatusTooManyRequests
	if err != nil && !refused {
		return unsent("fetch the recipient's keys", err)
	}
	const detail = "the message could not be encrypted for the recipient's phone"
	return &network.Rejected{Code: postern.EncryptionFailed, Detail: detail}
}

// recipient returns the network's address of a chat: that of the group, of the channel or of status posts, or the LID of a
// person. A number without a LID is not on the network.
func (c *conn) recipient(ctx context.Context, chat string) (types.JID, error) {
	if lid, ok := strings.CutPrefix(chat, "lid:"); ok && isDigits(lid) {
		return types.NewJID(lid, types.HiddenUserServer), nil
	}
	if group, ok := strings.CutPrefix(chat, "group:"); ok {
		return types.NewJID(group, types.GroupServer), nil
	}
	if channel, ok := live.ChannelAddress(chat); ok {
		return channel, nil
	}
	if chat == postern.StatusChat {
		return types.StatusBroadcastJID, nil
	}
	digits, ok := strings.CutPrefix(chat, "+")
	if !ok || !isDigits(digits) {
		const detail = "the chat is not an address on this network"
		return types.EmptyJID, &network.Rejected{Code: postern.RecipientNotFound, Detail: detail}
	}
	pn := types.NewJID(digits, types.DefaultUserServer)
	lid, err := c.cli.Store.LIDs.GetLIDForPN(ctx, pn)
	if err != nil {
		return types.EmptyJID, redact("send", err)
	}
	if !lid.IsEmpty() {
		return lid, nil
	}
	return c.lookUp(ctx, pn)
}

// lookUp asks the vendor for the LID of a number.
func (c *conn) lookUp(ctx context.Context, pn types.JID) (types.JID, error) {
	found, err := c.cli.GetUserInfo(ctx, []types.JID{pn})
	if err != nil {
		return types.EmptyJID, unsent("send", err)
	}
	lid := found[pn].LID
	if lid.IsEmpty() {
		return c.otherForm(ctx, pn)
	}
	return lid.ToNonAD(), nil
}

// otherForm asks the vendor for the account of a number that it knows by another form, as people may write it in some
// countries. The search of the apps finds these accounts, while an address must have the vendor's form.
func (c *conn) otherForm(ctx context.Context, pn types.JID) (types.JID, error) {
	enter := func() (*whatsmeow.Client, func(), bool) { return c.cli, func() {}, true }
	found, err := live.CheckNumbers(ctx, enter, []string{"+" + pn.User})
	if err != nil {
		return types.EmptyJID, unsent("send", err)
	}
	form := postern.OtherForm{
		Form: found[0].PhoneNumber, Number: string(found[0].NetworkNumber), LID: string(found[0].LID),
	}
	if !found[0].Exists || form.Number == "" || form.LID == "" {
		return types.EmptyJID, &network.Rejected{
			Code: postern.RecipientNotFound, Detail: "the number is not on the network",
		}
	}
	if form.Form != form.Number && !c.stores(ctx, network.OtherForm{OtherForm: form}) {
		return types.EmptyJID, network.ErrNotConnected
	}
	return types.NewJID(strings.TrimPrefix(form.LID, "lid:"), types.HiddenUserServer), nil
}

// transmit sends the message once. errNoCopy means that nothing was sent,
// because the stanza held no copy for the recipient's phone.
func (c *conn) transmit(ctx context.Context, to types.JID, m network.Outbound) (time.Time, error) {
	msg, err := c.form(ctx, to, m)
	if err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, done := c.keys.Ahead(ctx)
	defer done()
	c.out.expect(m, cancel)
	resp, err := c.cli.SendMessage(ctx, to, msg,
		whatsmeow.SendRequestExtra{ID: m.NetworkID, Timeout: answerTimeout, MediaHandle: content.HandleOf(m.File)})
	switch outcome, why := c.out.done(); {
	case outcome == withheld:
		return time.Time{}, why
	case outcome == refused:
		return time.Time{}, errNoCopy
	case outcome == unseen && err == nil:
		return time.Time{}, errUnchecked
	case errors.Is(err, whatsmeow.ErrNotInGroup), errors.Is(err, whatsmeow.ErrGroupNotFound):
		return time.Time{}, notInGroup()
	case outcome == unseen:
		return time.Time{}, unsent("send", err)
	case errors.Is(err, whatsmeow.ErrServerReturnedError):
		return time.Time{}, rejected(err, to)
	case err != nil:
		return time.Time{}, redact("send", err)
	}
	return resp.Timestamp.UTC(), nil
}

// resetKeys discards the session with the recipient's phone, so that the next
// attempt fetches fresh keys.
func (c *conn) resetKeys(ctx context.Context, to types.JID) error {
	address := to.SignalAddress().String()
	if err := c.cli.Store.Identities.DeleteIdentity(ctx, address); err != nil {
		return err
	}
	return c.cli.Store.Sessions.DeleteSession(ctx, address)
}

// unsent classifies an error from before anything was sent.
func unsent(did string, err error) error {
	var gone *whatsmeow.DisconnectedError
	if errors.As(err, &gone) || errors.Is(err, whatsmeow.ErrNotConnected) {
		return network.ErrNotConnected
	}
	return redact(did, err)
}

// reachoutLimit is the vendor's code for an account that may not start chats.
const reachoutLimit = 463

// rejected returns the vendor's refusal of a message. whatsmeow has the code only
// in the text of the error.
func rejected(err error, to types.JID) error {
	code, convErr := strconv.Atoi(strings.TrimPrefix(err.Error(), whatsmeow.ErrServerReturnedError.Error()+" "))
	if convErr != nil {
		return &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused the message"}
	}
	if code == http.StatusForbidden && to.Server == types.GroupServer {
		return notInGroup()
	}
	if to.Server == types.NewsletterServer {
		return postRefused(code)
	}
	if code == reachoutLimit {
		const detail = "the network does not let this account write to people who never wrote to it (463)"
		return &network.Rejected{Code: postern.RestrictedSender, Detail: detail}
	}
	detail := "the network refused the message with code " + strconv.Itoa(code)
	return &network.Rejected{Code: postern.NetworkRejected, Detail: detail}
}

// postRefused is the refusal of a post in a channel.
func postRefused(code int) error {
	detail := "the network refused the post with code " + strconv.Itoa(code)
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		detail = "only administrators of the channel can post in it (" + strconv.Itoa(code) + ")"
	case http.StatusNotFound:
		detail = "there is no such channel (404)"
	}
	return &network.Rejected{Code: postern.NetworkRejected, Detail: detail}
}

// notInGroup is the refusal of a message to a group that the account is not in.
func notInGroup() error {
	return &network.Rejected{Code: postern.NotInGroup, Detail: "the account is not a member of the group"}
}

// messageForRetry returns a sent message to whatsmeow, for a recipient who could
// not read it. The chat is compared, so that a message is never sent to another
// person than the first time.
func (v *run) messageForRetry(_, to types.JID, id types.MessageID) *waE2E.Message {
	if !v.calls.Enter() {
		v.unanswered()
		return nil
	}
	defer v.calls.Leave()
	ctx, cancel := context.WithTimeout(v.cli.BackgroundEventCtx, updateTimeout)
	defer cancel()
	m, ok, err := v.host.Outbound(ctx, id)
	if err != nil {
		v.log.WarnContext(ctx, "a message that is asked for again was not read; ending the connection", "error", err)
		v.unanswered()
	}
	if !ok {
		return nil
	}
	address, ok := v.again(ctx, to, m.ChatID)
	if !ok {
		return nil
	}
	if m.Content.Kind == postern.KindPoll && !v.hasSecret(ctx, address, id) {
		return nil // with a secret of its own, the recipient's vote could not be read, or those of all others
	}
	msg, err := v.form(ctx, address, m)
	if err != nil {
		return nil
	}
	return msg
}

func (c *conn) hasSecret(ctx context.Context, to types.JID, id string) bool {
	secret, _, err := c.cli.Store.MsgSecrets.GetMessageSecret(ctx, to, c.cli.Store.GetLID(), id)
	return err == nil && len(secret) > 0
}

// unanswered ends the connection, so that whatsmeow cannot acknowledge the request that it handles, and the vendor
// repeats it.
func (v *run) unanswered() { v.end(disconnected("store-unavailable")) }

// again returns the address of a chat for a message that somebody asks for again in the chat with an address; ok is
// false if that is another one.
func (v *run) again(ctx context.Context, asked types.JID, chat string) (address types.JID, ok bool) {
	if asked == types.StatusBroadcastJID {
		return asked, chat == postern.StatusChat
	}
	if asked.Server == types.GroupServer {
		group, known := namedChat(asked)
		return asked.ToNonAD(), known && group == chat
	}
	p, err := v.resolve(ctx, asked, types.EmptyJID)
	return p.address(), err == nil && p.names(chat)
}

// form returns the network's form of a message to a chat. It is the same at each attempt.
func (c *conn) form(ctx context.Context, to types.JID, m network.Outbound) (*waE2E.Message, error) {
	if m.Target != nil {
		return c.action(ctx, to, m)
	}
	name := c.naming(ctx, to)
	out := content.Outgoing{File: m.File, Picture: m.Picture, Timer: m.Timer, Content: content.Renamed(m.Content, name)}
	out.Status = to == types.StatusBroadcastJID
	if q := m.Quote; q != nil {
		out.Quote = &content.Quote{NetworkID: q.NetworkID, Author: c.member(ctx, to, q), Content: content.Renamed(q.Content, name)}
	}
	if m.Content.Kind == postern.KindPoll {
		var err error
		if out.Secret, err = c.secret(ctx, to, m.NetworkID); err != nil {
			return nil, redact("send", err)
		}
	}
	return content.ToWire(out)
}

// secret returns the secret of a message to a person: the one of an earlier attempt, or a
// new one. It is stored here because whatsmeow would send the message even if it cannot
// store the secret, and then nobody could read the votes.
func (c *conn) secret(ctx context.Context, to types.JID, id string) ([]byte, error) {
	secrets, own := c.cli.Store.MsgSecrets, c.cli.Store.GetLID()
	stored, _, err := secrets.GetMessageSecret(ctx, to, own, id)
	if err != nil || len(stored) > 0 {
		return stored, err
	}
	fresh := make([]byte, content.SecretSize)
	rand.Read(fresh) // never fails (Go 1.24)
	return fresh, secrets.PutMessageSecret(ctx, to, own, id, fresh)
}
