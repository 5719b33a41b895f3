package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// action returns the network's form of an action on a message.
func (c *conn) action(ctx context.Context, to types.JID, m network.Outbound) (*waE2E.Message, error) {
	id := m.Target.NetworkID
	switch m.Content.Kind {
	case postern.KindReaction:
		return c.cli.BuildReaction(to, c.author(to, m.Target), id, m.Content.Text), nil
	case postern.KindRevoke:
		if m.Target.FromMe {
			return c.cli.BuildRevoke(to, types.EmptyJID, id), nil
		}
		return c.cli.BuildRevoke(to, c.member(ctx, to, m.Target), id), nil
	case postern.KindEdit:
		edited := postern.Text("")
		if m.File != nil { // a caption is edited by sending the whole message
			edited = m.Target.Content
		}
		edited.Text, edited.Mentions = m.Content.Text, m.Content.Mentions
		msg, err := content.ToWire(content.Outgoing{Content: content.Renamed(edited, c.naming(ctx, to)), File: m.File})
		return c.cli.BuildEdit(to, id, msg), err
	case postern.KindVote:
		return c.vote(ctx, to, m)
	case postern.KindPin:
		return content.PinToWire(c.cli.BuildMessageKey(to, c.author(to, m.Target), id), m.Content, time.Now()), nil
	default:
		return nil, &network.Rejected{Code: postern.NetworkRejected, Detail: "this kind of action cannot be sent"}
	}
}

// author returns the network's name of who wrote a message of a chat.
func (c *conn) author(to types.JID, m *network.Quote) types.JID {
	switch {
	case m.FromMe:
		return c.cli.Store.GetLID().ToNonAD()
	case to.Server != types.GroupServer && to != types.StatusBroadcastJID:
		return to
	}
	if lid, ok := strings.CutPrefix(m.Author, "lid:"); ok {
		return types.NewJID(lid, types.HiddenUserServer)
	}
	return types.NewJID(strings.TrimPrefix(m.Author, "+"), types.DefaultUserServer)
}

// naming returns what gives people the names that a chat uses: in most groups, apps know members only by their hidden
// numbers. If one of these is not known, the group is read once: whatsmeow may have its members in memory before it has
// stored their hidden numbers.
func (c *conn) naming(ctx context.Context, to types.JID) func(who string) string {
	hidden := sync.OnceValue(func() bool {
		//nolint:staticcheck // marked as dangerous; the send that follows reads the same
		group, err := c.cli.DangerousInternals().GetCachedGroupData(ctx, to)
		return err == nil && group.AddressingMode == types.AddressingModeLID
	})
	read := sync.OnceValue(func() error {
		_, err := c.cli.GetGroupInfo(ctx, to)
		return err
	})
	return func(who string) string {
		if !strings.HasPrefix(who, "+") || to.Server != types.GroupServer || !hidden() {
			return who
		}
		lid := c.hiddenOf(ctx, who)
		if lid == "" && read() == nil {
			lid = c.hiddenOf(ctx, who)
		}
		return cmp.Or(lid, who)
	}
}

// hiddenOf returns the hidden number of a person; "" if it is not known.
func (c *conn) hiddenOf(ctx context.Context, number string) string {
	pn := types.NewJID(strings.TrimPrefix(number, "+"), types.DefaultUserServer)
	lid, err := c.cli.Store.LIDs.GetLIDForPN(ctx, pn)
	if err != nil || lid.IsEmpty() {
		return ""
	}
	return postern.ChatOfLID(lid.User)
}

// member returns the name by which a group knows who wrote a message of it.
func (c *conn) member(ctx context.Context, to types.JID, m *network.Quote) types.JID {
	author := c.author(to, m)
	if author.Server != types.DefaultUserServer {
		return author
	}
	name := c.naming(ctx, to)("+" + author.User)
	return c.author(to, &network.Quote{Author: name})
}

// vote seals a vote with the secret of its poll.
func (c *conn) vote(ctx context.Context, to types.JID, m network.Outbound) (*waE2E.Message, error) {
	poll := &types.MessageInfo{ID: m.Target.NetworkID, MessageSource: types.MessageSource{
		Chat: to, Sender: c.author(to, m.Target), IsFromMe: m.Target.FromMe, IsGroup: to.Server == types.GroupServer,
	}}
	msg, err := c.cli.BuildPollVote(ctx, poll, m.Content.Poll.Options)
	switch {
	case errors.Is(err, whatsmeow.ErrOriginalMessageSecretNotFound):
		const detail = "the secret of the poll is not known, so nobody could read the vote"
		return nil, &network.Rejected{Code: postern.EncryptionFailed, Detail: detail}
	case err != nil:
		return nil, redact("vote", err)
	}
	return msg, nil
}

// star stars a message for the account itself, or takes its star away. What may pass is tried again;
// after starTries tries it is a refusal.
func (s *session) star(ctx context.Context, c *conn, to types.JID, m network.Outbound) (time.Time, error) {
	name := s.account.String() + " " + m.NetworkID
	var withheld error
	author := to
	if !m.Target.FromMe {
		author = c.author(to, m.Target)
	}
	err := c.state.Star(ctx, state.Star{
		Chat: to, Author: author, ID: m.Target.NetworkID, FromMe: m.Target.FromMe, On: m.Content.IsStar(), At: m.At,
		Leave: func() error { withheld = m.MayLeave(); return withheld },
	})
	if err == nil {
		s.driver.stars.forget(name)
		return time.Now().UTC(), nil
	}
	if withheld != nil {
		return time.Time{}, withheld
	}
	if why := unstarred(err); why != nil && s.driver.stars.count(name) >= starTries {
		s.driver.stars.forget(name)
		return time.Time{}, why
	}
	if errors.Is(err, whatsmeow.ErrNotConnected) {
		return time.Time{}, network.ErrNotConnected
	}
	return time.Time{}, redact("star", err)
}

// unstarred explains why a star could not be set; nil if the reason lies with the connection.
func unstarred(err error) *network.Rejected {
	switch {
	case errors.Is(err, state.ErrNoKey):
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: "the account's phone has not shared the key " +
			"with which stars are encrypted; open the app on the phone, and try again"}
	case errors.Is(err, state.ErrUnreadable):
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: "what the network has stored of the account's " +
			"stars is damaged"}
	case errors.Is(err, state.ErrRefused), isErr[*whatsmeow.IQError](err):
		return &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused the star"}
	}
	return nil
}

// patches returns the network's form of what is set for a chat.
func (c *conn) patches(to types.JID, change network.ChatChange) (list []appstate.PatchInfo) {
	if change.Archived != nil {
		var last *waCommon.MessageKey
		if change.Last != nil {
			last = c.cli.BuildMessageKey(to, c.author(to, change.Last), change.Last.NetworkID)
		}
		list = append(list, appstate.BuildArchive(to, *change.Archived, change.LastAt, last))
	}
	if until := change.MutedUntil; until != nil {
		var end *int64
		if *until > 0 {
			end = new(int64(*until))
		}
		list = append(list, appstate.BuildMuteAbs(to, *until != 0, end))
	}
	if change.LabelID != "" {
		list = append(list, appstate.BuildLabelChat(to, change.LabelID, change.Labeled))
	}
	return list
}

// refusedChange returns the error of a change of the account's settings.
func refusedChange(err error) error {
	switch {
	case errors.Is(err, state.ErrNoKey):
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: "the account's phone has not shared the key " +
			"with which its settings are encrypted; open the app on the phone, and try again"}
	case errors.Is(err, state.ErrUnreadable):
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: "what the network has stored of the account's " +
			"settings is damaged"}
	case errors.Is(err, state.ErrRefused):
		return &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused the change"}
	case errors.Is(err, whatsmeow.ErrNotConnected):
		return network.ErrNotConnected
	}
	return redact("change a setting", err)
}

// confirm tells the sender of a message that it was read or played, and those of others that it was read. The network
// does not answer.
func (c *conn) confirm(
	ctx context.Context, to types.JID, m network.Outbound, how types.ReceiptType,
) (time.Time, error) {
	if err := m.MayLeave(); err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	for author, ids := range c.confirmed(to, m) {
		for part := range slices.Chunk(ids, receiptIDs) {
			if err := c.cli.MarkRead(ctx, part, now, to, author, how); err != nil {
				return time.Time{}, unsent("send", err)
			}
		}
	}
	return now.UTC(), nil
}

// receiptIDs is how many messages one receipt names.
const receiptIDs = 256

// confirmed returns the messages that an action confirms, by their authors.
func (c *conn) confirmed(to types.JID, m network.Outbound) map[types.JID][]types.MessageID {
	by := c.author(to, m.Target)
	list := map[types.JID][]types.MessageID{by: {m.Target.NetworkID}}
	for _, one := range m.Content.ReadMarks() {
		by := c.author(to, &network.Quote{NetworkID: one.NetworkID, Author: one.Author})
		list[by] = append(list[by], one.NetworkID)
	}
	return list
}
