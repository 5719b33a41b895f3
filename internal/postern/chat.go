package postern

import "encoding/json"

// Chat is a conversation of a device.
type Chat struct {
	DeviceID    DeviceID `json:"deviceId" doc:"The device that has the chat." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID      string   `json:"chatId" doc:"The chat; usable as \"to\"." example:"+15551234567"`
	Kind        string   `json:"kind" enum:"direct,group,channel,status" doc:"direct: with one person. status: the status posts of the account and its contacts." example:"direct"`
	Name        Maybe    `json:"name" nullable:"true" doc:"The name of the group or channel, or of the person: in the address book of the account's phone, or else the one that the person has chosen on the network; null if it is not known." example:"Ada"`
	UnreadCount int      `json:"unreadCount" minimum:"0" doc:"How many messages were received after the last one that was read: here, on the phone, or on another linked device. Calls and status posts do not count." example:"2"`
	Archived    bool     `json:"archived" doc:"Whether the account has archived the chat, here or on its phone." example:"false"`
	Muted       bool     `json:"muted" doc:"Whether the phone is silent about new messages of the chat. Postern reports them as usual." example:"false"`
	MutedUntil  Time     `json:"mutedUntil" format:"date-time" nullable:"true" doc:"Until when the chat is muted; null if it is not muted, or for ever." example:"2026-11-22T09:00:00.000Z"`

	LatestMessage *Message `json:"latestMessage,omitempty" doc:"The newest message of the chat; absent if none is kept."`
}

// Channel is a chat in which few people post and everybody may read.
type Channel struct {
	ChatID      string `json:"chatId" doc:"The chat of the channel; usable as \"to\" by its administrators." example:"channel:120363041234567890"`
	Name        string `json:"name" doc:"Name of the channel." example:"Opening hours"`
	Description string `json:"description" doc:"Text about the channel." example:"When our shops are open"`
	Followers   int    `json:"followers" minimum:"0" doc:"How many follow the channel, as the network counts them." example:"250"`
	Verified    bool   `json:"verified" doc:"Whether the network has verified to whom the channel belongs." example:"false"`
	Role        string `json:"role" enum:"guest,follower,admin,owner" doc:"What the account is in the channel. A guest gets no posts; administrators and the owner may post." example:"follower"`
	URL         Maybe  `json:"url" nullable:"true" doc:"Address of the channel on the web, by which others find it; null if it has none." example:"https://chat.example.com/channel/0029VaJt3mHkq0s7c9oWf2"`
	CreatedAt   Time   `json:"createdAt" format:"date-time" nullable:"true" doc:"When the channel was created, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
}

// What an account is in a channel.
const (
	ChannelGuest    = "guest"
	ChannelFollower = "follower"
	ChannelAdmin    = "admin"
	ChannelOwner    = "owner"
)

// The kinds of chats.
const (
	DirectChat  = "direct"
	GroupChat   = "group"
	ChannelChat = "channel"
	StatusChat  = "status"
)

// KindOfChat returns the kind of a chat.
func KindOfChat(chat string) string {
	switch {
	case IsGroup(chat):
		return GroupChat
	case IsChannel(chat):
		return ChannelChat
	case chat == StatusChat:
		return StatusChat
	}
	return DirectChat
}

// MutedForEver is when the mute of a chat ends that has no end.
const MutedForEver = Time(-1)

// Mute tells in a chat whether it is muted at a time, and until when. until is 0 if it is not muted.
func (c *Chat) Mute(until, now Time) {
	c.Muted, c.MutedUntil = until == MutedForEver || until > now, 0
	if until > now {
		c.MutedUntil = until
	}
}

// JSONBound is [Message.JSONBound] for a chat.
func (c Chat) JSONBound() int {
	n := chatJSON + escapedByte*(len(c.Name)+len(c.ChatID))
	if c.LatestMessage != nil {
		n += c.LatestMessage.JSONBound()
	}
	return n
}

// chatJSON is how many bytes the other members of a chat take at most.
const chatJSON = 1 << 10

// MaxReadMarks is how many senders' messages one action marks as read. Apps mark as many.
const MaxReadMarks = 1000

// ReadMark names a message that is marked as read.
type ReadMark struct {
	NetworkID string `json:"id"`
	Author    string `json:"by"` // "lid:" and digits, or a number
}

// ReadOf returns the content of an action that marks a message as read, and others of its chat with it.
func ReadOf(others []ReadMark) Content {
	c := Content{Kind: KindRead}
	if len(others) > 0 {
		raw, err := json.Marshal(others)
		if err != nil {
			panic(err) // it consists of texts
		}
		c.Text = string(raw)
	}
	return c
}

// ReadMarks returns the other messages that an action marks as read.
func (c Content) ReadMarks() (others []ReadMark) {
	if c.Kind != KindRead || c.Text == "" {
		return nil
	}
	if json.Unmarshal([]byte(c.Text), &others) != nil {
		return nil
	}
	return others
}
