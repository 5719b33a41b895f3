package vendorsim

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// handleIQ answers a client's query. One that the simulator does not know gets an empty result,
// which is enough for most of what whatsmeow asks.
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
	case xmlns == "usync":
		v.directory.usync(c, n)
	case xmlns == "md" && subject == "remove-companion-device":
		v.logout(c, n)
	case xmlns == "w:m":
		c.reply(n, mediaServers())
	case xmlns == "privacy" && kind == "get":
		c.reply(n, privacySettings())
	default:
		c.reply(n)
	}
}

// logout removes the companion that asks for it.
func (v queries) logout(c *conn, n *waBinary.Node) {
	cp := c.companion
	v.mu.Lock()
	cp.conn = nil // it asked for it, and need not be told
	v.devices.removeCompanion(cp)
	v.mu.Unlock()
	c.reply(n)
	c.finish(linger)
	v.log.Info("companion logged out", "account", cp.account.number, "device", cp.saved.Device)
	v.devices.tellDevices(cp.account.number)
}

func mediaServers() waBinary.Node {
	return waBinary.Node{
		Tag:     "media_conn",
		Attrs:   waBinary.Attrs{"auth": "simulated", "ttl": 3600, "auth_ttl": 3600, "max_buckets": 12},
		Content: []waBinary.Node{{Tag: "host", Attrs: waBinary.Attrs{"hostname": "mmg.whatsapp.net"}}},
	}
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

// usync answers which of the asked numbers exist, their hidden addresses and their devices.
func (v directory) usync(c *conn, n *waBinary.Node) {
	query := n.GetChildByTag("usync")
	list := query.GetChildByTag("list")
	wantsLID := attrOf(query.GetChildByTag("query", "contact"), "addressing_mode") == "lid"
	var users []waBinary.Node
	for _, u := range list.GetChildren() {
		if jid, ok := attrJID(&u, "jid"); ok {
			users = append(users, v.userByAddress(jid))
		} else if contact := content(u.GetChildByTag("contact")); contact != nil {
			users = append(users, v.userByContact(contact, wantsLID))
		}
	}
	c.reply(n, waBinary.Node{
		Tag:     "usync",
		Attrs:   waBinary.Attrs{"sid": attr(&query, "sid"), "mode": attr(&query, "mode"), "context": attr(&query, "context")},
		Content: []waBinary.Node{{Tag: "list", Content: users}},
	})
}

func attrOf(n waBinary.Node, key string) string { return attr(&n, key) }

func (v directory) userByAddress(jid types.JID) waBinary.Node {
	user := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": jid.ToNonAD()}}
	n, ok := numberOf(jid)
	user.Content = v.userDetails(n, ok && n.exists(), nil)
	return user
}

// userByContact looks a number up as typed, "+15550001111@c.us".
func (v directory) userByContact(contact []byte, wantsLID bool) waBinary.Node {
	typed := string(contact)
	for i, r := range typed {
		if r == '@' {
			typed = typed[:i]
			break
		}
	}
	n, err := parseNumber(typed)
	if err != nil {
		return waBinary.Node{
			Tag:     "user",
			Attrs:   waBinary.Attrs{"jid": types.NewJID("0", types.DefaultUserServer)},
			Content: v.userDetails(n, false, contact),
		}
	}
	attrs := waBinary.Attrs{"jid": n.pn()}
	if wantsLID && n.exists() {
		attrs = waBinary.Attrs{"jid": n.lid(), "pn_jid": n.pn()}
	}
	return waBinary.Node{Tag: "user", Attrs: attrs, Content: v.userDetails(n, n.exists(), contact)}
}

func (v directory) userDetails(n number, exists bool, contact []byte) []waBinary.Node {
	if !exists {
		return []waBinary.Node{{Tag: "contact", Attrs: waBinary.Attrs{"type": "out"}, Content: contact}}
	}
	return []waBinary.Node{
		{Tag: "contact", Attrs: waBinary.Attrs{"type": "in"}, Content: contact},
		{Tag: "lid", Attrs: waBinary.Attrs{"val": n.lid()}},
		{Tag: "devices", Content: []waBinary.Node{{Tag: "device-list", Content: v.deviceNodes(n)}}},
	}
}

func (v directory) deviceNodes(n number) []waBinary.Node {
	nodes := []waBinary.Node{{Tag: "device", Attrs: waBinary.Attrs{"id": 0}}}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, cp := range v.devices.companionsOf(n) {
		nodes = append(nodes, waBinary.Node{Tag: "device", Attrs: waBinary.Attrs{"id": int(cp.saved.Device)}})
	}
	return nodes
}
