package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
	"postern/vendorsim"
)

// membersOf are in the group of a device from the beginning to the end, and write in it. They are in no other chat: a
// phone shows only its newest messages, and has to show those that are acted on.
func membersOf(dev device) []string {
	list := make([]string, 4)
	for i := range list {
		list[i] = fmt.Sprintf("+1555999%s%d", dev.number[len(dev.number)-3:], i)
	}
	return list
}

// changers is how many change groups and settings at once, each those of its own devices. As many let the gateway do
// it.
const changers = 4

// changing is what is changed in the group of a device, and in its chats.
type changing struct {
	d   *driver
	dev device
	r   *rand.Rand
	n   int // things that were done

	guests *guests
}

// guests are in a group now, beside its members, in the order in which they came.
type guests struct {
	mu   sync.Mutex // guards list
	list []string
}

func (g *guests) add(who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, who)
}

// newest returns at most three, the newest last.
func (g *guests) newest() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list[max(len(g.list)-3, 0):])
}

// take removes the one who was there first, if there are more than the three newest.
func (g *guests) take() (who string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) <= 3 {
		return "", false
	}
	who, g.list = g.list[0], g.list[1:]
	return who, true
}

// messagesPerChange is how many messages come to their end between two changes of one of the changers.
const messagesPerChange = 16

// change changes groups and settings of devices until ctx is done, once for each few messages that come to their end.
func (d *driver) change(ctx context.Context, list []*changing, one func(*changing, context.Context)) {
	for next := d.done(); len(list) > 0; {
		for _, c := range list {
			next += c.r.Int64N(2 * messagesPerChange)
			if !d.reached(ctx, next) {
				return
			}
			c.n++
			one(c, ctx)
			d.changes.Add(1)
		}
		next = max(next, d.done()-messagesPerChange)
	}
}

// startChanges begins to change groups and settings.
func (d *driver) startChanges(ctx context.Context) {
	for changer := range changers {
		var phones, callers []*changing
		for i, dev := range d.w.devices {
			if i%changers == changer && d.groups[dev.id] != "" {
				there := &guests{}
				phones = append(phones, &changing{d: d, dev: dev, r: d.rand(7, i, 0), guests: there})
				callers = append(callers, &changing{d: d, dev: dev, r: d.rand(8, i, 0), guests: there})
			}
		}
		d.load.Go(func() { d.change(ctx, phones, (*changing).one) })
		d.load.Go(func() { d.change(ctx, callers, (*changing).oneByAPI) })
	}
}

// one changes one thing on a phone. New members come most often, because each brings a key.
func (c *changing) one(ctx context.Context) {
	switch p := c.r.IntN(16); {
	case p < 6:
		c.welcome(ctx)
	case p < 8:
		c.leave()
	case p < 11:
		c.rename()
	case p < 14:
		c.set()
	case p < 15:
		c.read()
	default:
		c.name()
	}
}

// oneByAPI lets the gateway change one thing. That needs a device that is connected, so that it waits for it.
func (c *changing) oneByAPI(ctx context.Context) {
	switch c.r.IntN(4) {
	case 0:
		c.renameByAPI(ctx)
	case 1:
		c.dismissByAPI(ctx)
	case 2:
		c.setByAPI(ctx)
	default:
		c.ofChat(ctx, c.contact(0), "read", map[string]any{}, http.StatusAccepted)
	}
}

func (c *changing) chat() string  { return c.d.groups[c.dev.id] }
func (c *changing) group() string { return strings.TrimPrefix(c.chat(), "group:") }

// note writes a line of the driver's ledger.
func (d *driver) note(line chaos.Call) {
	if err := d.notes.Write(line); err != nil {
		d.w.t.Error(err)
	}
}

// vendor makes a request to the vendor, which must do it.
func (d *driver) vendor(method, path string, in, out any) bool {
	err := d.w.vendor.ask(method, path, in, out)
	if err != nil {
		d.w.t.Error(err)
	}
	return err == nil
}

// byMember lets a member change the group.
func (c *changing) byMember(by string, change chaos.Change, body map[string]any) {
	c.d.note(chaos.Call{Change: &change})
	body["group"], body["by"] = c.group(), by
	if c.d.vendor("POST", "/groups/changes", body, nil) {
		c.d.note(chaos.Call{Changed: &change})
		c.d.see("group " + change.Kind)
	}
}

// welcome lets a member add somebody, who writes with a key that the gateway does not have yet, and writes again after
// the gateway has acknowledged that.
func (c *changing) welcome(ctx context.Context) {
	who := fmt.Sprintf("+1666%s%05d", c.dev.number[len(c.dev.number)-3:], c.n)
	added := chaos.Change{Chat: c.chat(), Kind: "add", What: who}
	c.byMember(membersOf(c.dev)[0], added, map[string]any{"add": []string{who}})
	c.guests.add(who)
	for _, writes := range c.guests.newest() {
		if !c.d.rooms[c.dev.number].enter(ctx) {
			return
		}
		text := fmt.Sprintf("in-%08x-%d-%s", c.r.Uint32(), c.n, filler(c.r))
		c.d.writeInGroup(c.dev, writes, map[string]any{"type": "text", "body": text})
	}
}

// writeInGroup lets a member write in the group of a device.
func (d *driver) writeInGroup(dev device, from string, in map[string]any) {
	in["group"], in["from"] = strings.TrimPrefix(d.groups[dev.id], "group:"), from
	if d.vendor("POST", "/groups/messages", in, nil) {
		d.see("group message")
	}
}

// leave lets the guest who was there first leave.
func (c *changing) leave() {
	if who, ok := c.guests.take(); ok {
		c.byMember(who, chaos.Change{Chat: c.chat(), Kind: "remove", What: who}, map[string]any{"remove": []string{who}})
	}
}

func (c *changing) subject() chaos.Change {
	return chaos.Change{Chat: c.chat(), Kind: "subject", What: fmt.Sprintf("subject %s", filler(c.r))}
}

// rename lets a member give the group another subject.
func (c *changing) rename() {
	change, members := c.subject(), membersOf(c.dev)
	c.byMember(members[c.r.IntN(len(members))], change, map[string]any{"subject": change.What})
}

// whileConnected makes a request about the device until there is an answer, and waits while it is not connected.
func (c *changing) whileConnected(ctx context.Context, method, path string, body map[string]any) (status int) {
	c.d.untilAnswered(func(base string) int {
		status, _ = c.d.ask(base, method, "/v1/devices/"+c.dev.id+path, body, "")
		if status != http.StatusConflict || ctx.Err() != nil {
			return status
		}
		<-time.After(lookAgain)
		return 0
	})
	return status
}

// lookAgain is how long a device may take to be connected before it is asked again.
const lookAgain = 50 * time.Millisecond

// byAPI asks the gateway for a change of the group. Unless it says that it is done, it may be.
func (c *changing) byAPI(ctx context.Context, change chaos.Change, method, path string, body map[string]any) {
	c.d.note(chaos.Call{Change: &change})
	if c.whileConnected(ctx, method, "/groups/"+c.chat()+path, body) == http.StatusOK {
		c.d.note(chaos.Call{Changed: &change})
		c.done("group " + change.Kind)
	}
}

func (c *changing) renameByAPI(ctx context.Context) {
	change := c.subject()
	c.byAPI(ctx, change, http.MethodPatch, "", map[string]any{"subject": change.What})
}

// dismissByAPI lets the account remove a guest, who does nothing any more, whether or not that is done.
func (c *changing) dismissByAPI(ctx context.Context) {
	if who, ok := c.guests.take(); ok {
		c.byAPI(ctx, chaos.Change{Chat: c.chat(), Kind: "remove", What: who}, http.MethodPost, "/participants",
			map[string]any{"remove": []string{who}})
	}
}

// contact is one of three contacts: the first one's chat is read by the API, the second one's on the phone, and the
// third one's never.
func (c *changing) contact(i int) string {
	return fmt.Sprintf("+1555888%s%d", c.dev.number[len(c.dev.number)-3:], i)
}

// anyChat is a chat with one of the contacts, or the group.
func (c *changing) anyChat() string {
	if i := c.r.IntN(4); i < 3 {
		return c.contact(i)
	}
	return c.chat()
}

// set archives or mutes a chat on the phone, or ends that.
func (c *changing) set() {
	body := map[string]any{"account": c.dev.number, "chat": c.anyChat()}
	body[[]string{"archived", "muted"}[c.r.IntN(2)]] = c.r.IntN(2) == 0
	if c.d.vendor("POST", "/chats", body, nil) {
		c.d.see("setting on the phone")
	}
}

// setByAPI lets the gateway archive or mute a chat, or end that.
func (c *changing) setByAPI(ctx context.Context) {
	what := []string{"archive", "mute"}[c.r.IntN(2)]
	field := map[string]string{"archive": "archived", "mute": "muted"}[what]
	c.ofChat(ctx, c.anyChat(), what, map[string]any{field: c.r.IntN(2) == 0}, http.StatusOK)
}

// ofChat lets the gateway do something with a chat.
func (c *changing) ofChat(ctx context.Context, chat, what string, body map[string]any, want int) {
	path := "/chats/" + url.PathEscape(chat) + "/" + what
	if c.whileConnected(ctx, http.MethodPost, path, body) == want {
		c.done(what)
	}
}

// done notes what the account did.
func (c *changing) done(what string) {
	c.d.byAPI.Add(1)
	c.d.see(what + " by the account")
	c.d.see(byAccount)
}

// read marks the chat with the second contact as read on the phone.
func (c *changing) read() {
	c.d.vendor("POST", "/chats", map[string]any{
		"account": c.dev.number, "chat": c.contact(1), "readUntil": time.Now().UTC(),
	}, nil)
}

// name gives a contact another name in the address book of the phone.
func (c *changing) name() {
	n := chaos.Named{Account: c.dev.number, Number: c.contact(c.r.IntN(3)), Name: fmt.Sprintf("Name %d", c.n)}
	if c.d.vendor("POST", "/contacts", n, nil) {
		c.d.note(chaos.Call{Named: &n})
		c.d.see("name in the address book")
	}
}

// starOnPhone stars a received message on the phone.
func (d *driver) starOnPhone(s subject) {
	act := chaos.Act{Message: s.id, Kind: "star", Text: "1", Phone: true}
	d.note(chaos.Call{Act: &act})
	body := map[string]any{"account": s.dev.number, "target": s.networkID, "starred": true}
	if d.vendor("POST", "/stars", body, nil) {
		d.note(chaos.Call{Acted: &act})
		d.see("star on the phone")
	}
}

// groupsToSee are what a run must have met that changes groups and settings. What the account does, of which only some
// has come to its end in a few cycles, is met by all kinds in a long run.
func groupsToSee() []string {
	list := []string{
		"group message", "group add", "group remove", "group subject", "setting on the phone", "name in the address book",
		"star on the phone", byAccount,
	}
	if *cycles > 10 || *seconds > 0 {
		list = append(list, "group subject by the account", "group remove by the account", "archive by the account",
			"mute by the account", "read by the account")
	}
	return list
}

// byAccount is what the account did by the API.
const byAccount = "change by the account"

// readAtLast lets each phone mark the chat with its second contact as read, so that the vendor knows what is unread.
func (w *world) readAtLast() {
	for i, dev := range w.devices {
		(&changing{d: w.driver, dev: dev, r: w.driver.rand(7, i, 1)}).read()
	}
}

// asAtTheVendor adds what the vendor has of groups and settings.
func (w *world) asAtTheVendor(e *chaos.Evidence) {
	w.t.Helper()
	if !w.opts.Changes {
		return
	}
	e.Groups, e.Settings = map[string][]vendorsim.Group{}, map[string]map[string]vendorsim.ChatSettings{}
	for _, dev := range w.devices {
		var groups struct{ Data []vendorsim.Group }
		var chats struct {
			Data map[string]vendorsim.ChatSettings
		}
		query := "?number=" + url.QueryEscape(dev.number)
		if w.driver.vendor("GET", "/groups"+query, nil, &groups) && w.driver.vendor("GET", "/chats"+query, nil, &chats) {
			e.Groups[dev.number], e.Settings[dev.number] = groups.Data, chats.Data
		}
	}
}

// stillSettling is how often in a row groups and settings may differ from the vendor's when all else is at its end.
const stillSettling = 100

const notSettled = "groups or settings are not as at the vendor"

// unsettled looks for groups and settings that are not as at the vendor. What the phone sets is read after its notice
// was acknowledged. What differs for too long is left to the judge.
func (w *world) unsettled() string {
	switch m := w.opts.Mistake; {
	case !w.opts.Changes, w.marking, m == failpoint.LoseChange, m == failpoint.ForgetSetting:
		return ""
	}
	e := chaos.Evidence{Vendor: w.ledger(), Calls: w.calls()}
	w.asAtTheVendor(&e)
	var err error
	if e.State, err = chaos.ReadSettings(w.t.Context(), w.gateway.dir, w.url, w.workspace); err != nil {
		w.t.Error(err)
	}
	if !chaos.Unsettled(e) {
		return ""
	}
	if w.settling++; w.settling > stillSettling {
		return ""
	}
	return notSettled
}

// unreadInGroups looks for messages to groups whose members have asked for another copy.
func (w *world) unreadInGroups() string {
	if !w.opts.Changes {
		return ""
	}
	e := chaos.Evidence{Vendor: w.ledger(), Calls: w.calls()}
	w.asAtTheVendor(&e)
	if chaos.Missed(e) {
		return "a member's phone has asked for a message again"
	}
	return ""
}

// groupsIn says how much happened in groups, and to the settings of chats.
func groupsIn(e chaos.Evidence) string {
	authors, count, asked := map[[2]string]bool{}, map[vendorsim.Direction]int{}, 0
	for _, v := range e.Vendor {
		if v.Group == "" {
			continue
		}
		count[v.Direction]++
		if v.Direction == vendorsim.Inbound {
			authors[[2]string{v.Group, v.Peer}] = true
		}
		if v.AskedAt != nil {
			asked++
		}
	}
	changes := map[string]int{}
	for _, c := range e.Calls {
		if c.Changed != nil {
			changes[c.Changed.Kind]++
		}
	}
	return fmt.Sprintf("%d messages to them, %d in them of %d members with their keys, %d asked for again; changes: %v",
		count[vendorsim.Outbound], count[vendorsim.Inbound], len(authors), asked, changes)
}
