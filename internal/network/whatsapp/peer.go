package whatsapp

import (
	"context"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// peer is the other person in a direct chat. Either name may be "".
type peer struct {
	number string // digits
	lid    string // digits
}

// peer returns the other person in a direct chat.
func (c *conn) peer(ctx context.Context, src types.MessageSource) (peer, error) {
	if src.IsFromMe {
		return c.resolve(ctx, src.Chat, src.RecipientAlt)
	}
	return c.resolve(ctx, src.Sender, src.SenderAlt)
}

// place is where a message belongs: the chat, and the other person of a direct chat, or the sender in a group or of a
// status post. Nobody is named in a channel.
type place struct {
	chat string
	who  peer
}

// place returns where a message belongs. known is false if the network does not say from whom it is.
func (c *conn) place(ctx context.Context, src types.MessageSource) (at place, known bool, err error) {
	if isOfChannel(src) {
		at.chat, known = namedChat(src.Chat)
		return at, known, nil
	}
	if !isOfGroup(src) && !isStatus(src) {
		at.who, err = c.peer(ctx, src)
		at.chat = at.who.chat()
		return at, !at.who.isEmpty(), err
	}
	at.who, err = c.resolve(ctx, src.Sender, src.SenderAlt)
	if at.chat, known = postern.StatusChat, true; !isStatus(src) {
		at.chat, known = namedChat(src.Chat)
	}
	return at, known && (src.IsFromMe || !at.who.isEmpty()), err
}

// chatOf returns the chat with an address: of a group or of a person. known is false for other addresses.
func (c *conn) chatOf(ctx context.Context, address types.JID) (chat string, known bool, err error) {
	if address.Server == types.GroupServer {
		chat, known = namedChat(address)
		return chat, known, nil
	}
	p, err := c.resolve(ctx, address, types.EmptyJID)
	return p.chat(), !p.isEmpty(), err
}

// to is the number to which a message of the account itself went; "" in a group.
func (at *place) to() string {
	if postern.IsDirect(at.chat) {
		return at.who.phone()
	}
	return ""
}

// sender is the network's most stable name for who wrote a message. A channel writes itself.
func (at *place) sender() string {
	if postern.IsChannel(at.chat) {
		return at.chat
	}
	return at.who.sender()
}

// namedChat returns the chat of a group or a channel; ok is false if its name cannot be one.
func namedChat(address types.JID) (chat string, ok bool) {
	chat, err := postern.ParseChat(address.ToNonAD().String())
	return chat, err == nil
}

// resolve returns a person's two names, as far as they are known.
func (c *conn) resolve(ctx context.Context, jid, alt types.JID) (peer, error) {
	var p peer
	p.add(jid)
	p.add(alt)
	lids := c.cli.Store.LIDs
	if p.number == "" && p.lid != "" {
		pn, err := lids.GetPNForLID(ctx, types.NewJID(p.lid, types.HiddenUserServer))
		if err != nil {
			return peer{}, redact("find a number", err)
		}
		p.add(pn)
	}
	if p.lid == "" && p.number != "" {
		lid, err := lids.GetLIDForPN(ctx, types.NewJID(p.number, types.DefaultUserServer))
		if err != nil {
			return peer{}, redact("find a LID", err)
		}
		p.add(lid)
	}
	return p, nil
}

// identified tells the host in the background of people whose number and LID belong together: the caller holds what the
// host may wait for. A host that cannot store it learns it from their next message.
func (c *conn) identified(people []store.LIDMapping) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range people {
		c.seen = append(c.seen, postern.Seen{Number: "+" + m.PN.User, LID: postern.ChatOfLID(m.LID.User)})
	}
	if !c.told && c.calls.Enter() {
		c.told = true
		go c.tellSeen(context.Background()) // that of the caller may carry the keys of a message
	}
}

// mostSeen is how many people the host is told of at a time, so that messages need not wait for a whole group.
const mostSeen = 500

func (c *conn) tellSeen(ctx context.Context) {
	for {
		c.mu.Lock()
		n := min(len(c.seen), mostSeen)
		list := c.seen[:n]
		if c.seen, c.told = c.seen[n:], n > 0; len(c.seen) == 0 {
			c.seen = nil // not the array of a large group
		}
		c.mu.Unlock()
		if len(list) == 0 {
			c.calls.Leave()
			return
		}
		if err := c.update(ctx, network.Identified{People: list}); err != nil {
			c.log.DebugContext(ctx, "the host did not store who is who", "error", err)
		}
		if c.calls.Leave(); !c.calls.Enter() { // the connection is ending, and need not wait for the rest
			return
		}
	}
}

func (p *peer) add(jid types.JID) {
	switch {
	case !isDigits(jid.User):
	case jid.Server == types.DefaultUserServer && p.number == "":
		p.number = jid.User
	case jid.Server == types.HiddenUserServer && p.lid == "":
		p.lid = jid.User
	}
}

func (p *peer) isEmpty() bool { return p.number == "" && p.lid == "" }

// phone is the number with its "+", or "" while it is hidden.
func (p *peer) phone() string {
	if p.number == "" {
		return ""
	}
	return "+" + p.number
}

// address returns the network's name of the person: the LID, unless it is unknown.
func (p *peer) address() types.JID {
	if p.lid == "" {
		return types.NewJID(p.number, types.DefaultUserServer)
	}
	return types.NewJID(p.lid, types.HiddenUserServer)
}

func (p *peer) chat() string {
	if p.number == "" {
		return postern.ChatOfLID(p.lid)
	}
	return postern.ChatOfNumber(p.phone())
}

// chats returns the names of the chat, one for each name of the person.
func (p *peer) chats() (names []string) {
	if p.number != "" {
		names = append(names, postern.ChatOfNumber(p.phone()))
	}
	if p.lid != "" {
		names = append(names, postern.ChatOfLID(p.lid))
	}
	return names
}

// sender is the most stable name: a LID stays when the number changes.
func (p *peer) sender() string {
	if p.lid == "" {
		return p.phone()
	}
	return postern.ChatOfLID(p.lid)
}

// names reports whether a chat id is this person's.
func (p *peer) names(chat string) bool {
	return p.number != "" && chat == p.phone() || p.lid != "" && chat == postern.ChatOfLID(p.lid)
}

// isDigits reports whether s can be a number or a LID. "0" is the vendor itself.
func isDigits(s string) bool {
	if s == "" || len(s) > maxDigits || s == "0" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
