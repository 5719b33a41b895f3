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
	chat := m.other(n).lid()
	if err := v.states.change(ctx, n, appstate.BuildStar(chat, chat, target, m.writtenBy(n), starred)); err != nil {
		return err
	}
	return v.flush()
}

// show shows on the phone of a number what a patch changes. Only stars can be seen. The caller holds
// v.mu.
func (v states) show(n number, mutations []appstate.Mutation) {
	for _, m := range mutations {
		if len(m.Index) != 5 || m.Index[0] != appstate.IndexStar {
			continue
		}
		target := v.records.shown(n, m.Index[2])
		if target == nil || !target.named(n, m.Index[1], m.Index[3]) {
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
		if err != nil || !ok {
			continue
		}
		c := Content{Type: TypeStar, Target: m.Index[2]}
		if m.Action.GetStarAction().GetStarred() {
			c.Body = "1"
		}
		e, _ := v.records.enter(Entry{
			Account: n.String(), Peer: peer.String(), Direction: Outbound, Content: c,
			NetworkID: fmt.Sprintf("star %s %d", c.Target, m.Action.GetTimestamp()),
		})
		first(&e.AckedAt)
		v.records.saveEntry(e)
	}
}

// named reports whether a star on the phone of own names the chat and the direction of the message.
func (m *Shown) named(own number, chat, fromMe string) bool {
	jid, err := types.ParseJID(chat)
	if err != nil {
		return false
	}
	n, ok := numberOf(jid)
	return ok && n == m.other(own) && (fromMe == "1") == m.writtenBy(own)
}
