package vendorsim

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
)

// Star stars a message on the phone of a linked account, or takes the star away. target is the id of
// the message on the network. A star is part of the account's app state: its companions are told, and
// nobody else is.
func (v *Vendor) Star(ctx context.Context, account, target string, starred bool) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	m, err := v.messages.targetOf(n, target)
	if err != nil {
		return err
	}
	chat := m.chat(n)
	author := chat // which stands for both people of a direct chat, and for the account itself
	if m.Group != "" && !m.writtenBy(n) {
		author = number(m.From[1:]).lid()
	}
	if err := v.states.change(ctx, n, appstate.BuildStar(chat, author, target, m.writtenBy(n), starred)); err != nil {
		return err
	}
	return v.flush()
}

// chat is the address of the chat in which the phone of a number shows the message.
func (m Shown) chat(n number) types.JID {
	if m.Group != "" {
		return groupAddress(m.Group)
	}
	return m.other(n).lid()
}

// show shows on the phone of a number what a patch changes. Only stars and the name can be seen. The caller holds
// v.mu.
func (v states) show(n number, mutations []appstate.Mutation) {
	for _, m := range mutations {
		if len(m.Index) == 1 && m.Index[0] == appstate.IndexSettingPushName {
			v.people.rename(n, m.Action.GetPushNameSetting().GetName())
		}
		if len(m.Index) != 5 || m.Index[0] != appstate.IndexStar {
			continue
		}
		target := v.records.shown(n, m.Index[2])
		if target == nil || !target.named(n, m.Index) {
			continue
		}
		target.Starred = m.Action.GetStarAction().GetStarred()
		v.records.save(n, target)
	}
}

// book adds the stars that a companion has changed to the ledger. A star has no id on the network; in
// the ledger it is named by the message and the time in the patch, which a repetition has too. The
// caller holds v.mu.
func (v states) book(n number, mutations []appstate.Mutation) {
	for _, m := range mutations {
		if len(m.Index) != 5 || m.Index[0] != appstate.IndexStar {
			continue
		}
		jid, err := types.ParseJID(m.Index[1])
		peer, ok := numberOf(jid)
		group := jid.Server == types.GroupServer
		if err != nil || !ok && !group {
			continue
		}
		c := Content{Type: TypeStar, Target: m.Index[2]}
		if m.Action.GetStarAction().GetStarred() {
			c.Body = "1"
		}
		star := Entry{
			Account: n.String(), Peer: peer.String(), Direction: Outbound, Content: c,
			NetworkID: fmt.Sprintf("star %s %d", c.Target, m.Action.GetTimestamp()),
		}
		if group {
			star.Peer, star.Group = "", jid.User
		}
		e, _ := v.records.enter(star)
		first(&e.AckedAt)
		v.records.saveEntry(e)
	}
}

// named reports whether the index of a star on the phone of own names the chat, the direction and, in a group, the
// author of the message.
func (m *Shown) named(own number, index []string) bool {
	chat, err := types.ParseJID(index[1])
	if err != nil || (index[3] == "1") != m.writtenBy(own) {
		return false
	}
	if m.Group == "" {
		n, ok := numberOf(chat)
		return ok && n == m.other(own)
	}
	author := "0"
	if !m.writtenBy(own) {
		author = number(m.From[1:]).lid().String()
	}
	return chat == m.chat(own) && index[4] == author
}
