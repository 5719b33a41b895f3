package vendorsim

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// BlockLists are whom accounts have blocked. The network delivers nothing to an account that somebody whom it has blocked
// writes in their direct chat, and does not tell the sender.
type BlockLists struct{ v *core }

// BlockLists returns the block lists of accounts.
func (v *core) BlockLists() BlockLists { return BlockLists{v} }

// Of returns whom a number has blocked, in order.
func (b BlockLists) Of(num string) ([]string, error) {
	n, err := knownNumber(num)
	if err != nil {
		return nil, err
	}
	b.v.mu.Lock()
	defer b.v.mu.Unlock()
	var list []string
	for _, who := range b.v.people.blocked(n) {
		list = append(list, who.String())
	}
	return list, nil
}

// Set lets the phone of a linked account block somebody, or end that. Companions are told that the list has changed.
func (b BlockLists) Set(account, num string, blocked bool) error {
	n, err := b.v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	who, err := knownNumber(num)
	if err != nil {
		return err
	}
	b.v.mu.Lock()
	b.v.people.block(n, who, blocked, nil)
	b.v.mu.Unlock()
	return b.v.flush()
}

// blocked returns whom a number has blocked, in order. The caller holds v.mu.
func (v people) blocked(n number) []number { return slices.Sorted(maps.Keys(v.profiles[n].Blocked)) }

// blocks reports whether a number has blocked another. The caller holds v.mu.
func (v people) blocks(n, other number) bool { return v.profiles[n].Blocked[other] }

// block blocks somebody for a number, or ends that, and tells all companions but one. The caller holds v.mu.
func (v people) block(n, who number, blocked bool, by *companion) {
	v.changeProfile(n, func(p *profile) {
		p.Blocked = maps.Clone(p.Blocked)
		if delete(p.Blocked, who); !blocked {
			return
		}
		if p.Blocked == nil {
			p.Blocked = map[number]bool{}
		}
		p.Blocked[who] = true
	})
	for _, cp := range v.devices.companionsOf(n) {
		if cp != by {
			v.queues.deliverNotice(cp, "account_sync", n.pn(), waBinary.Node{
				Tag: "blocklist", Attrs: waBinary.Attrs{"action": "modify"},
			})
		}
	}
}

// blockList answers a query about the block list of the account, and takes one change of it. The network names people by
// their hidden addresses there.
func (v people) blockList(c *conn, n *waBinary.Node, kind string) {
	own := c.companion.account.number
	v.mu.Lock()
	if kind == "set" {
		who, ok := blockItem(n)
		if !ok || who == own {
			v.mu.Unlock()
			c.replyError(n, http.StatusBadRequest, "bad-request")
			return
		}
		item := n.GetChildByTag("item")
		v.block(own, who, attr(&item, "action") == "block", c.companion)
	}
	list := v.blocked(own)
	v.mu.Unlock()
	items := make([]waBinary.Node, len(list))
	for i, who := range list {
		items[i] = waBinary.Node{Tag: "item", Attrs: waBinary.Attrs{"jid": who.lid()}}
	}
	c.replyDurably(n, waBinary.Node{
		Tag: "list", Attrs: waBinary.Attrs{"dhash": strconv.Itoa(len(list))}, Content: items,
	})
}

// blockItem returns whom a change of a block list is about, whom it must name by the hidden address.
func blockItem(n *waBinary.Node) (number, bool) {
	item := n.GetChildByTag("item")
	jid, ok := attrJID(&item, "jid")
	if !ok || jid.Server != types.HiddenUserServer {
		return "", false
	}
	who, ok := numberOf(jid)
	return who, ok && who.exists()
}
