package vendorsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// ErrUnknownChannel is returned for a channel that does not exist.
var ErrUnknownChannel = errors.New("no such channel")

// Channel is a chat in which few people post and everybody may read. The vendor calls it a newsletter. Its posts are
// not encrypted, and nobody sees who has written them.
type Channel struct {
	ID          string    `json:"id"` // digits; its address is ID@newsletter
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Invite      string    `json:"invite"`    // the end of its address on the web
	Admins      []string  `json:"admins"`    // numbers; the first one is the owner
	Followers   []string  `json:"followers"` // numbers that are no administrators
	Created     time.Time `json:"created"`
}

// channel is a channel as the vendor keeps it. Its fields are guarded by core.mu.
type channel struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Invite      string    `json:"invite"`
	Admins      []number  `json:"admins"`
	Followers   []number  `json:"followers,omitempty"`
	Created     time.Time `json:"created"`
	Last        int       `json:"last"` // the number of the newest post
}

func (ch *channel) jid() types.JID { return types.NewJID(ch.ID, types.NewsletterServer) }

func (ch *channel) isAdmin(n number) bool { return slices.Contains(ch.Admins, n) }

// follows reports whether a number gets the posts.
func (ch *channel) follows(n number) bool { return ch.isAdmin(n) || slices.Contains(ch.Followers, n) }

func (ch *channel) view() Channel {
	return Channel{
		ch.ID, ch.Name, ch.Description, ch.Invite, numbersOf(ch.Admins), numbersOf(ch.Followers), ch.Created,
	}
}

// Channels are the channels of the network, and what phones do with them.
type Channels struct{ v *core }

// Channels returns the channels of the network.
func (v *core) Channels() Channels { return Channels{v} }

// Create creates a channel, which belongs to a number.
func (c Channels) Create(owner, name, description string) (Channel, error) {
	n, err := knownNumber(owner)
	if err != nil {
		return Channel{}, err
	}
	ch := &channel{
		ID: newGroupID(), Name: name, Description: description, Invite: newInvite(), Admins: []number{n}, Created: now(),
	}
	c.v.mu.Lock()
	c.v.channelsByID[ch.ID] = ch
	c.v.channels.save(ch)
	view := ch.view()
	c.v.mu.Unlock()
	return view, c.v.flush()
}

// Get returns a channel.
func (c Channels) Get(id string) (Channel, error) {
	c.v.mu.Lock()
	defer c.v.mu.Unlock()
	ch, err := c.v.channels.find(id)
	if err != nil {
		return Channel{}, err
	}
	return ch.view(), nil
}

// Follow lets the owner of a number follow a channel on the phone. Its companions are told.
func (c Channels) Follow(id, num string) error {
	return c.change(id, num, func(ch *channel, n number) { c.v.channels.follow(ch, n, nil) })
}

// Unfollow lets the owner of a number leave a channel on the phone. Its companions are told.
func (c Channels) Unfollow(id, num string) error {
	return c.change(id, num, func(ch *channel, n number) { c.v.channels.unfollow(ch, n, nil) })
}

// Promote makes a number an administrator of a channel.
func (c Channels) Promote(id, num string) error {
	return c.change(id, num, func(ch *channel, n number) {
		if ch.isAdmin(n) {
			return
		}
		ch.Followers = slices.DeleteFunc(ch.Followers, func(o number) bool { return o == n })
		ch.Admins = append(ch.Admins, n)
		c.v.channels.save(ch)
	})
}

func (c Channels) change(id, num string, do func(*channel, number)) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	c.v.mu.Lock()
	ch, err := c.v.channels.find(id)
	if err == nil {
		do(ch, n)
	}
	c.v.mu.Unlock()
	if err != nil {
		return err
	}
	return c.v.flush()
}

// Post writes in a channel from the phone of an administrator, and returns the id of the post on the network.
func (c Channels) Post(id, from string, what Content) (networkID string, err error) {
	n, err := knownNumber(from)
	if err != nil {
		return "", err
	}
	return c.v.channels.write(id, n, what)
}

// Edit replaces the text of a post.
func (c Channels) Edit(id, from, networkID, body string) error {
	n, err := knownNumber(from)
	if err != nil {
		return err
	}
	if err := c.v.channels.edit(id, n, networkID, body); err != nil {
		return err
	}
	return c.v.flush()
}

// save stores a channel. The caller holds v.mu.
func (v channels) save(ch *channel) {
	v.put("channel/"+ch.ID, ch)
	v.notify()
}

func (v restorer) restoreChannel(_ []string, raw []byte) error {
	ch := &channel{}
	if err := json.Unmarshal(raw, ch); err != nil {
		return err
	}
	v.channelsByID[ch.ID] = ch
	return nil
}

// find returns a channel. The caller holds v.mu.
func (v channels) find(id string) (*channel, error) {
	ch := v.channelsByID[id]
	if ch == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownChannel, id)
	}
	return ch, nil
}

// follow lets a number follow a channel. Its companions are told, except the one that did it. The caller holds v.mu.
func (v channels) follow(ch *channel, n number, by *companion) {
	if ch.follows(n) {
		return
	}
	ch.Followers = append(ch.Followers, n)
	v.save(ch)
	v.tell(n, by, "NotificationNewsletterJoin", map[string]any{"xwa2_notify_newsletter_on_join": ch.describe(n)})
}

// unfollow ends that a number follows a channel, which its owner cannot. The caller holds v.mu.
func (v channels) unfollow(ch *channel, n number, by *companion) {
	if !ch.follows(n) || ch.Admins[0] == n {
		return
	}
	isOther := func(o number) bool { return o == n }
	ch.Followers, ch.Admins = slices.DeleteFunc(ch.Followers, isOther), slices.DeleteFunc(ch.Admins, isOther)
	v.save(ch)
	v.tell(n, by, "NotificationNewsletterLeave", map[string]any{
		"xwa2_notify_newsletter_on_leave": map[string]any{"id": ch.jid(), "role": "GUEST"},
	})
}

// tell tells the companions of a number, except one, what has changed. The caller holds v.mu.
func (v channels) tell(n number, except *companion, name string, what map[string]any) {
	raw, err := json.Marshal(map[string]any{"data": what})
	if err != nil { // it consists of texts
		v.log.Error("encode a notice", "error", err)
		return
	}
	for _, cp := range v.devices.companionsOf(n) {
		if cp != except {
			v.queues.deliverNotice(cp, "mex", types.ServerJID, waBinary.Node{
				Tag: "update", Attrs: waBinary.Attrs{"op_name": name}, Content: raw,
			})
		}
	}
}
