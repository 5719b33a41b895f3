package vendorsim

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// handleIQ answers a query of a client. Queries that the simulator does not know get an empty
// result, which is enough for most of those that whatsmeow sends.
func (v queries) handleIQ(c *conn, n *waBinary.Node) {
	switch kind := attr(n, "type"); kind {
	case "result", "error":
		v.links.finishPairing(c, n)
	case "get", "set":
		switch {
		case v.sockets.live(c):
			v.answerIQ(c, n, attr(n, "xmlns"), kind)
		case firstTag(n) == codeTag:
			v.codes.linkByCode(c, n)
		case isPasskeyTag(firstTag(n)):
			v.passkeyLinks.query(c, n)
		}
	}
}

func (v queries) answerIQ(c *conn, n *waBinary.Node, xmlns, kind string) {
	switch subject := firstTag(n); {
	case xmlns == "encrypt" && kind == "set" && subject == "registration":
		v.prekeys.uploadKeys(c, n)
	case xmlns == "encrypt" && subject == "count":
		v.prekeys.countKeys(c, n)
	case xmlns == "encrypt" && subject == "key":
		v.prekeys.fetchKeys(c, n)
	case xmlns == "w:g2":
		v.groupChats.answer(c, n, kind)
	case xmlns == "w:profile:picture":
		v.pictures(c, n, kind)
	case xmlns == "w:mex":
		v.mex(c, n)
	case xmlns == "status" && kind == "get" && subject == "privacy":
		v.statusPosts.privacy(c, n)
	case xmlns == "blocklist":
		v.people.blockList(c, n, kind)
	case xmlns == "usync":
		v.directory.usync(c, n)
	case xmlns == "md" && subject == "remove-companion-device":
		v.logout(c, n)
	case xmlns == "w:sync:app:state":
		v.states.sync(v.ctx, c, n)
	case xmlns == "w:m":
		c.reply(n, v.mediaHost.servers(c))
	case xmlns == "privacy" && kind == "get":
		c.reply(n, privacySettings())
	default:
		c.reply(n)
	}
}

// logout removes the companion that sent the query.
func (v queries) logout(c *conn, n *waBinary.Node) {
	cp := c.companion
	v.mu.Lock()
	cp.conn = nil // the companion asked for it and needs no notice
	v.devices.removeCompanion(cp)
	v.mu.Unlock()
	c.reply(n)
	c.finish(linger)
	v.log.Info("companion logged out", "account", cp.account.number, "device", cp.saved.Device)
	v.devices.tellDevices(cp.account.number)
}

func privacySettings() waBinary.Node {
	names := []string{"groupadd", "last", "status", "profile", "readreceipts", "online", "calladd"}
	categories := make([]waBinary.Node, len(names))
	for i, name := range names {
		categories[i] = waBinary.Node{Tag: "category", Attrs: waBinary.Attrs{"name": name, "value": "all"}}
	}
	return waBinary.Node{Tag: "privacy", Content: categories}
}

// replyError answers an iq with an error.
func (c *conn) replyError(to *waBinary.Node, code int, text string) {
	c.send(waBinary.Node{
		Tag:     "iq",
		Attrs:   waBinary.Attrs{"from": types.ServerJID, "type": "error", "id": attr(to, "id")},
		Content: []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": code, "text": text}}},
	})
}
