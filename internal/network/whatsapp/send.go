package whatsapp

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/keys"
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
	at, err := c.transmit(ctx, to, m)
	for tries := 1; tries < staleTries && errors.Is(err, keys.ErrStale); tries++ {
		at, err = c.transmit(ctx, to, m)
	}
	if errors.Is(err, errNoCopy) {
		if err := c.resetKeys(ctx, to); err != nil {
			return time.Time{}, hush("send", err)
		}
		at, err = c.transmit(ctx, to, m)
	}
	if errors.Is(err, errNoCopy) {
		return time.Time{}, &network.Rejected{Code: postern.EncryptionFailed, Detail: "the message could not be encrypted for the recipient's phone"}
	}
	return at, err
}

// recipient finds the address a chat has on the network, which is always a LID;
// a number without one is not on the network.
func (c *conn) recipient(ctx context.Context, chat string) (types.JID, error) {
	if lid, ok := strings.CutPrefix(chat, "lid:"); ok && isDigits(lid) {
		return types.NewJID(lid, types.HiddenUserServer), nil
	}
	digits, ok := strings.CutPrefix(chat, "+")
	if !ok || !isDigits(digits) {
		return types.EmptyJID, &network.Rejected{Code: postern.RecipientNotFound, Detail: "the chat is not an address on this network"}
	}
	pn := types.NewJID(digits, types.DefaultUserServer)
	lid, err := c.cli.Store.LIDs.GetLIDForPN(ctx, pn)
	if err != nil {
		return types.EmptyJID, hush("send", err)
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
		return types.EmptyJID, unsent(err)
	}
	lid := found[pn].LID
	if lid.IsEmpty() {
		return types.EmptyJID, &network.Rejected{Code: postern.RecipientNotFound, Detail: "the number is not on the network"}
	}
	return lid.ToNonAD(), nil
}

// transmit sends the message once. [errNoCopy] means that nothing left because
// it held no copy for the recipient's phone.
func (c *conn) transmit(ctx context.Context, to types.JID, m network.Outbound) (time.Time, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.out.expect(m.NetworkID, cancel)
	resp, err := c.cli.SendMessage(ctx, to, text(m.Body), whatsmeow.SendRequestExtra{ID: m.NetworkID, Timeout: answerTimeout})
	switch fate := c.out.done(); {
	case fate == refused:
		return time.Time{}, errNoCopy
	case fate == unseen && err == nil:
		return time.Time{}, errUnchecked
	case fate == unseen:
		return time.Time{}, unsent(err)
	case errors.Is(err, whatsmeow.ErrServerReturnedError):
		return time.Time{}, rejected(err)
	case err != nil:
		return time.Time{}, hush("send", err)
	}
	return resp.Timestamp.UTC(), nil
}

// resetKeys throws away the session with the recipient's phone, so that the next
// attempt fetches fresh keys.
func (c *conn) resetKeys(ctx context.Context, to types.JID) error {
	address := to.SignalAddress().String()
	if err := c.cli.Store.Identities.DeleteIdentity(ctx, address); err != nil {
		return err
	}
	return c.cli.Store.Sessions.DeleteSession(ctx, address)
}

// unsent classifies an error from before the message left.
func unsent(err error) error {
	var gone *whatsmeow.DisconnectedError
	if errors.As(err, &gone) || errors.Is(err, whatsmeow.ErrNotConnected) {
		return network.ErrNotConnected
	}
	return hush("send", err)
}

// reachoutLimit is the vendor's answer to an account that may not start chats.
const reachoutLimit = 463

// rejected reads the vendor's refusal of a message. whatsmeow puts the code only
// into the text.
func rejected(err error) error {
	code, convErr := strconv.Atoi(strings.TrimPrefix(err.Error(), whatsmeow.ErrServerReturnedError.Error()+" "))
	if convErr != nil {
		return &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused the message"}
	}
	if code == reachoutLimit {
		return &network.Rejected{Code: postern.RestrictedSender, Detail: "the network does not let this account write to people who never wrote to it (463)"}
	}
	return &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused the message with code " + strconv.Itoa(code)}
}

func text(body string) *waE2E.Message { return &waE2E.Message{Conversation: new(body)} }

// messageForRetry finds a message again for a recipient who could not read it.
// The chat is compared, so that nobody gets what was written to somebody else.
func (v *visit) messageForRetry(_, to types.JID, id types.MessageID) *waE2E.Message {
	if !v.calls.Enter() {
		return nil
	}
	defer v.calls.Leave()
	ctx, cancel := context.WithTimeout(v.cli.BackgroundEventCtx, updateTimeout)
	defer cancel()
	m, ok := v.host.Outbound(ctx, id)
	if !ok {
		return nil
	}
	p, err := v.resolve(ctx, to, types.EmptyJID)
	if err != nil || !p.names(m.ChatID) {
		return nil
	}
	return text(m.Body)
}
