package chaos

import "slices"

// groups compares the groups, and what was reported of them, with those of the vendor.
func (j *judging) groups() {
	j.changes()
	j.standings()
	j.missed()
	j.senderKeys()
}

// changes checks that each change of a group is reported at least once, and that no event reports a change that was
// never made.
func (j *judging) changes() {
	asked, reported := map[Change]bool{}, map[Change]bool{}
	for _, e := range j.State.Events {
		for _, c := range e.changes() {
			reported[c] = true
		}
	}
	for _, c := range j.Calls {
		if c.Change != nil {
			asked[*c.Change] = true
		}
		if c.Changed != nil && !reported[*c.Changed] {
			j.report(ChangeLost, c.Changed.Chat, "no event reports %s %s", c.Changed.Kind, c.Changed.What)
		}
	}
	for c := range reported {
		if !asked[c] {
			j.report(ChangeInvented, c.Chat, "nobody asked for %s %s", c.Kind, c.What)
		}
	}
}

// changes returns what an event says has changed in a group.
func (e Event) changes() (list []Change) {
	g := e.Says.Group
	switch e.Type {
	case "group.updated":
		for _, name := range g.Changed {
			list = append(list, Change{g.ChatID, name, map[bool]string{true: g.Subject}[name == "subject"]})
		}
	case "group.participants":
		for _, p := range g.Participants {
			list = append(list, Change{g.ChatID, g.Action, p.name()})
		}
	case "group.left":
		list = append(list, Change{g.ChatID, "left", ""})
	}
	return list
}

// standings checks that each group is as the vendor has it.
func (j *judging) standings() {
	for device, account := range j.State.Devices {
		for _, v := range j.Groups[account] {
			chat := "group:" + v.ID
			i := slices.IndexFunc(j.State.Groups, func(g Group) bool { return g.Device == device && g.Chat == chat })
			if i < 0 {
				j.report(GroupOff, chat, "the device %s does not have it", device)
				continue
			}
			members := slices.Sorted(slices.Values(v.Members))
			if g := j.State.Groups[i]; g.Subject != v.Subject || !slices.Equal(g.Members, members) {
				j.report(GroupOff, chat, "it is %q of %v, and at the vendor %q of %v", g.Subject, g.Members, v.Subject, members)
			}
		}
	}
}

// missed checks that the phones of all members of a group have each message to it. Somebody who has left it may have
// asked for another copy in vain.
func (j *judging) missed() {
	gone, members := map[[2]string]bool{}, map[[2]string]bool{}
	for _, c := range j.Calls {
		if c.Change != nil && c.Change.Kind == "remove" {
			gone[[2]string{c.Change.Chat, c.Change.What}] = true
		}
	}
	for _, list := range j.Groups {
		for _, g := range list {
			for _, who := range g.Members {
				members[[2]string{g.ID, who}] = !gone[[2]string{"group:" + g.ID, who}]
			}
		}
	}
	for _, v := range j.Vendor {
		for _, who := range v.Missing {
			if members[[2]string{v.Group, who}] {
				j.report(MemberMissed, v.NetworkID, "%s cannot read it in %s", who, v.Group)
			}
		}
	}
}

// senderKeys checks that the gateway can decrypt what a member writes to a group after it has acknowledged a message
// of that member, with which came the key. The vendor may have damaged a message, or changed its place.
func (j *judging) senderKeys() {
	type author struct{ account, group, number string }
	acked := map[author]Entry{} // the message that was acknowledged first
	for _, v := range j.Vendor {
		if v.Direction != "inbound" || v.Group == "" {
			continue
		}
		at := author{v.Account, v.Group, v.Peer}
		first, has := acked[at]
		if has && v.AskedAt != nil && !v.Disturbed && first.AckedAt.Before(*v.AskedAt) {
			j.report(KeyLost, v.NetworkID, "of %s to %s in %s; %s was acknowledged before", v.Peer, v.Account, v.Group,
				first.NetworkID)
		}
		if v.AckedAt != nil && v.Refused == 0 && (!has || v.AckedAt.Before(*first.AckedAt)) {
			acked[at] = v
		}
	}
}

// settings compares what is set for chats, what is unread in them and the address books with those of the phones.
func (j *judging) settings() {
	if j.Settings == nil {
		return
	}
	unread, known := j.unread(), map[networked]bool{} // by account and chat
	for _, v := range j.Vendor {
		known[networked{v.Account, chatOf(v)}] = true
	}
	for _, c := range j.State.Chats {
		at := networked{j.State.Devices[c.Device], c.ID}
		if !known[at] { // nobody has written in it, so that it may have another name
			continue
		}
		delete(known, at)
		want := j.Settings[at.account][at.id]
		if c.Archived != want.Archived || c.Muted != want.Muted {
			j.report(SettingOff, at.account, "%s is archived: %t, muted: %t, and on the phone %t, %t", at.id, c.Archived,
				c.Muted, want.Archived, want.Muted)
		}
		if c.Unread != unread[at] {
			j.report(UnreadOff, at.account, "%s has %d unread messages, and on the phone %d", at.id, c.Unread, unread[at])
		}
	}
	for account, chats := range j.Settings {
		for chat, set := range chats {
			if known[networked{account, chat}] && (set.Archived || set.Muted) {
				j.report(SettingOff, account, "%s is not there, and on the phone %+v", chat, set)
			}
		}
	}
	j.names()
}

// unread counts the messages of each chat of an account that it has read nowhere.
func (j *judging) unread() map[networked]int {
	count := map[networked]int{}
	for _, v := range j.Vendor {
		at := networked{v.Account, chatOf(v)}
		until := j.Settings[at.account][at.id].ReadUntil
		if v.Direction == "inbound" && !isAction(v.Type) && v.ReadAt == nil && v.ArrivedAt.Unix() > until.Unix() {
			count[at]++
		}
	}
	return count
}

// names checks that the address books have the newest names.
func (j *judging) names() {
	newest := map[networked]string{}
	for _, c := range j.Calls {
		if n := c.Named; n != nil {
			newest[networked{n.Account, n.Number}] = n.Name
		}
	}
	for device, account := range j.State.Devices {
		for at, name := range newest {
			if got := j.State.Book[Entered{device, at.id}]; at.account == account && got != name {
				j.report(NameOff, account, "%s is called %q, and on the phone %q", at.id, got, name)
			}
		}
	}
}

// Missed reports whether the phone of a member waits for another copy of a message.
func Missed(e Evidence) bool {
	j := &judging{Evidence: e}
	j.missed()
	return len(j.findings) > 0
}

// Unsettled reports whether groups or settings are not those of the vendor yet.
func Unsettled(e Evidence) bool {
	j := newJudging(e)
	j.standings()
	j.settings()
	return len(j.findings) > 0
}
