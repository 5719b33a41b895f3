package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

// subject is a message on which both ends of its chat may act.
type subject struct {
	dev       device
	id        string
	networkID string
	peer      string // the number at the other end
	text      string
	inbound   bool
	poll      bool
}

// told is what the receiver was told of: the part of an event that the driver needs.
type told struct {
	EventID, Type, DeviceID, Challenge string
	Message                            struct {
		ID, Body, NetworkID, To string
		Poll                    struct{ Question string }
		Reaction                struct{ Emoji string }
		Vote                    struct{ Options []string }
	}
}

// text is what the event says: the text of its message, or what an action says.
func (e told) text() string {
	switch m := e.Message; e.Type {
	case "message.reaction":
		return m.Reaction.Emoji
	case "poll.vote":
		return strings.Join(m.Vote.Options, ",")
	case "message.deleted":
		return ""
	default:
		return m.Body + m.Poll.Question
	}
}

// fact names what happened to a message.
func fact(kind, message, text string) string { return kind + " " + message + " " + text }

// fact returns a channel that is closed when the receiver is told of a fact.
func (d *driver) fact(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.facts[name] == nil {
		d.facts[name] = make(chan struct{})
	}
	return d.facts[name]
}

// tell closes the channel of a fact, which may happen again.
func (d *driver) tell(name string) {
	c := d.fact(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// arrived notes what the receiver was told of, and offers messages to the actors.
func (d *driver) arrived(e told) {
	s := subject{id: e.Message.ID, text: e.text()}
	s.poll = e.Message.Poll.Question != ""
	switch e.Type {
	case "message.delivered": // what was sent may still be asked for again
		s.networkID, s.peer = e.Message.NetworkID, e.Message.To
		if s.peer == echo || s.peer == "" || e.Message.Body == "" && !s.poll {
			return // the actors' contacts are not in the group
		}
	case "message.received":
		d.mu.Lock()
		wrote := d.wrote[s.text]
		d.mu.Unlock()
		if wrote.networkID == "" {
			return // an echo
		}
		s.networkID, s.peer, s.inbound = wrote.networkID, wrote.peer, true
	case "message.reaction", "message.edited", "message.deleted", "poll.vote":
		d.tell(fact(e.Type, s.id, s.text))
		return
	default:
		return // also what is told while the devices are being linked
	}
	s.dev = device{e.DeviceID, d.w.numbers[e.DeviceID]}
	of := s.dev.id
	if s.inbound {
		of = s.dev.number
	}
	select {
	case d.subjects[of] <- s:
	default: // enough is under way
	}
}

// act acts on messages that a device has sent or received until ctx is done.
func (d *driver) act(ctx context.Context, of <-chan subject, r *rand.Rand) {
	for {
		select {
		case s := <-of:
			if !d.w.opts.loses() && d.w.opts.Mistake != failpoint.KeepTwice { // one that is lost or not alone proves nothing
				d.actOn(ctx, s, r.IntN(2) == 0, r.IntN(2) == 0)
			}
		case <-ctx.Done():
			return
		}
	}
}

// actOn lets one end of a chat act on a message. The gateway does not wait for one action before it
// accepts the next; a contact does, because the vendor may change the order of what it delivers.
func (d *driver) actOn(ctx context.Context, s subject, own, end bool) {
	var list []chaos.Act
	add := func(kind, text string) { list = append(list, chaos.Act{Message: s.id, Kind: kind, Text: text}) }
	switch {
	case s.poll:
		add("vote", choices[0])
		add("vote", choices[1])
	case s.inbound == own:
		add("reaction", "👍")
		add("reaction", "🎉")
		if own && d.w.opts.Mistake == "" {
			add("star", "1")
		}
	default:
		add("edit", s.text+"~1")
		add("edit", s.text+"~2")
		if own {
			add("reaction", "👍")
		}
		if own && d.w.opts.Mistake == "" {
			add("star", "1")
		}
		if end && d.w.opts.Mistake != failpoint.SendNewestFirst { // an edit after it has no effect
			add("revoke", "")
		}
	}
	for _, a := range list {
		if ctx.Err() != nil {
			return
		}
		if own {
			d.request(a, s)
		} else if !d.contact(ctx, a, s) {
			return
		}
	}
	if !own && s.inbound && !end && d.w.opts.Changes { // a message that may be deleted shows no star
		d.starOnPhone(s)
	}
}

// actors is how many act at once on the messages that a device sends, and on those that it receives.
const actors = 2

// choices are the options of every poll.
var choices = []string{"yes", "no"}

// request asks the gateway to act until it gives a final answer.
func (d *driver) request(a chaos.Act, s subject) {
	method, path, body := http.MethodPut, "/reaction", map[string]any{"emoji": a.Text}
	switch a.Kind {
	case "edit":
		method, path, body = http.MethodPatch, "", map[string]any{"body": a.Text}
	case "revoke":
		method, path, body = http.MethodDelete, "", nil
	case "star":
		path, body = "/star", nil
	case "vote":
		method, path, body = http.MethodPost, "/votes", map[string]any{"options": []string{a.Text}}
	}
	d.untilAnswered(func(url string) int {
		if err := d.notes.Write(chaos.Call{Act: &a}); err != nil {
			d.w.t.Error(err)
		}
		status, _ := d.ask(url, method, "/v1/messages/"+s.id+path, body, "")
		if status == http.StatusAccepted {
			d.see("outbound " + a.Kind)
			if err := d.notes.Write(chaos.Call{Acted: &a}); err != nil {
				d.w.t.Error(err)
			}
		}
		return status
	})
}

// contact lets the phone at the other end act, and waits until the receiver was told.
func (d *driver) contact(ctx context.Context, a chaos.Act, s subject) bool {
	path := map[string]string{"reaction": "/reactions", "edit": "/edits", "revoke": "/revokes", "vote": "/votes"}[a.Kind]
	in := map[string]any{
		"account": s.dev.number, "by": s.peer, "target": s.networkID, "emoji": a.Text, "body": a.Text,
		"choices": []string{a.Text},
	}
	if err := d.w.vendor.ask("POST", path, in, nil); err != nil {
		d.w.t.Error(fmt.Errorf("the contact's %s: %w", a.Kind, err))
		return false
	}
	select {
	case <-d.fact(fact(chaos.EventOf(a.Kind), s.id, a.Text)):
		d.see("inbound " + a.Kind)
		return true
	case <-ctx.Done():
		return false
	}
}

// see notes that an action of a direction and kind was accepted or arrived.
func (d *driver) see(act string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[act] = true
}

func (d *driver) hasSeen(act string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[act]
}
