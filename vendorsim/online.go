package vendorsim

import (
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// FaultReplay sends the companion once more, after the next login and before it is up to date, what it was told last of
// who types and who is online.
const FaultReplay Fault = "replay"

// Online is what phones show others at the moment. The network tells a companion of it while that is available itself,
// and of whether a number is online only after it has subscribed to the number. Nothing of it is kept.
type Online struct{ *core }

// Online returns what phones show others at the moment.
func (c *core) Online() Online { return Online{c} }

// Seen is whether somebody is online, as others see it.
type Seen struct {
	Online bool      `json:"online"`
	Last   time.Time `json:"last"` // when the number was online last; zero: it does not show that
}

// maxReplayed is how many of the newest updates the network may repeat.
const maxReplayed = 16

// Type lets the phone of a number show an account that it types ([MomentTyping], [MomentRecording] or [MomentPaused]): in
// the direct chat, or in a group with an id.
func (o Online) Type(account, from, group string, kind MomentKind) error {
	to, err := o.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	who, err := knownNumber(from)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	attrs := o.direct(who)
	if group != "" {
		g, ok := o.groups[group]
		switch {
		case !ok:
			return ErrUnknownGroup
		case !g.has(who) || !g.has(to):
			return ErrNotMember
		}
		attrs = o.inGroup(g, who)
	}
	o.show(to, waBinary.Node{Tag: "chatstate", Attrs: attrs, Content: []waBinary.Node{kind.node()}},
		func(cp *companion) bool { return cp.available })
	return nil
}

func (o Online) direct(who number) waBinary.Attrs {
	attrs := waBinary.Attrs{"from": who.lid()}
	if !o.hidden(who) {
		attrs["sender_pn"] = who.pn()
	}
	return attrs
}

func (o Online) inGroup(g *group, who number) waBinary.Attrs {
	attrs := waBinary.Attrs{
		"from": g.jid(), "participant": who.lid(), "addressing_mode": string(types.AddressingModeLID),
	}
	if !o.hidden(who) {
		attrs["participant_pn"] = who.pn()
	}
	return attrs
}

// hidden reports whether the network hides a number. The caller holds o.mu.
func (o Online) hidden(n number) bool { return o.persons[n].hidden }

func (k MomentKind) node() waBinary.Node {
	switch k {
	case MomentRecording:
		return waBinary.Node{Tag: "composing", Attrs: waBinary.Attrs{"media": "audio"}}
	case MomentPaused:
		return waBinary.Node{Tag: "paused"}
	default:
		return waBinary.Node{Tag: "composing"}
	}
}

// Appear lets a number come online, or leave, and tells the companions that have subscribed to it.
func (o Online) Appear(from string, s Seen) error {
	who, err := knownNumber(from)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[who] = s
	for n := range o.accounts {
		o.show(n, s.node(who), func(cp *companion) bool { return cp.available && slices.Contains(cp.subscribed, who) })
	}
	return nil
}

func (s Seen) node(who number) waBinary.Node {
	attrs := waBinary.Attrs{"from": who.lid()}
	switch {
	case s.Online:
	case s.Last.IsZero():
		attrs["type"], attrs["last"] = "unavailable", "deny"
	default:
		attrs["type"], attrs["last"] = "unavailable", s.Last.Unix()
	}
	return waBinary.Node{Tag: "presence", Attrs: attrs}
}

// show sends an update to the companions of an account that are online and want it. The caller holds o.mu.
func (o Online) show(to number, n waBinary.Node, wants func(*companion) bool) {
	for _, cp := range o.devices.companionsOf(to) {
		if cp.conn == nil || !wants(cp) {
			continue
		}
		if len(cp.shown) == maxReplayed {
			cp.shown = slices.Delete(cp.shown, 0, 1)
		}
		cp.shown = append(cp.shown, n)
		cp.conn.send(n)
	}
}

// begin forgets at a login what the companion wanted of others, and repeats what it was told if that is a fault. The
// caller holds o.mu.
func (o Online) begin(cp *companion) {
	cp.available, cp.subscribed = false, nil
	if o.faults.takeFault(cp.account, FaultReplay) {
		for _, n := range cp.shown {
			cp.conn.send(n)
		}
	}
}

// sawPresence takes what a companion shows of itself, with its name, and to whom it subscribes.
func (o Online) sawPresence(c *conn, n *waBinary.Node) {
	kind := attr(n, "type")
	switch kind {
	case "subscribe":
		o.subscribe(c, n)
		return
	case "available":
		o.sockets.note(c, n, Moment{Kind: MomentAvailable})
	case "unavailable":
		o.sockets.note(c, n, Moment{Kind: MomentUnavailable})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c.companion.available = kind == "available"
	o.people.rename(c.companion.account.number, attr(n, "name"))
}

// subscribe tells a companion whether a number is online, now and at each change.
func (o Online) subscribe(c *conn, n *waBinary.Node) {
	to, _ := attrJID(n, "to")
	who, ok := numberOf(to)
	if who = who.registered(); !ok || !who.exists() {
		return
	}
	o.sockets.note(c, n, Moment{Kind: MomentSubscribed})
	o.mu.Lock()
	defer o.mu.Unlock()
	cp := c.companion
	if !slices.Contains(cp.subscribed, who) {
		cp.subscribed = append(cp.subscribed, who)
	}
	if s, known := o.seen[who]; known && cp.available {
		o.show(cp.account.number, s.node(who), func(other *companion) bool { return other == cp })
	}
}
