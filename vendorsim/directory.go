package vendorsim

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// usync answers a query for users: whether each one exists, its hidden address and its devices.
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
		Tag: "usync",
		Attrs: waBinary.Attrs{
			"sid": attr(&query, "sid"), "mode": attr(&query, "mode"),
			"context": attr(&query, "context"),
		},
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

// userByContact looks up a number as a person typed it, such as "+15550001111@c.us".
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
	n = n.registered()
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
	details := []waBinary.Node{
		{Tag: "contact", Attrs: waBinary.Attrs{"type": "in"}, Content: contact},
		{Tag: "lid", Attrs: waBinary.Attrs{"val": n.lid()}},
		{Tag: "devices", Content: []waBinary.Node{{Tag: "device-list", Content: v.deviceNodes(n)}}},
	}
	details = append(details, v.people.details(n)...)
	if name := v.people.business(n); name != "" {
		details = append(details, waBinary.Node{Tag: "business", Content: []waBinary.Node{certificate(name)}})
	}
	return details
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
