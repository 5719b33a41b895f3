package postern

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
)

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

	Labels []Label `json:"labels" nullable:"false" doc:"The labels that the account has put on the chat, here or on its phone, by name."`

	LatestMessage *Message `json:"latestMessage,omitempty" doc:"The newest message of the chat; absent if none is kept."`

	Note ChatNote `json:"-"` // for the dashboard
}

// ChatNote is what the people of a workspace have noted about a chat. The network knows nothing of it.
type ChatNote struct {
	Assignee UserID // the member who takes care of it; "": nobody
	Email    string // of the assignee
	Text     string // of at most [MaxChatNote] characters
}

// MaxChatNote is the greatest length of a note about a chat.
const MaxChatNote = 2000

// Label is a label of an account, which puts it on chats.
type Label struct {
	ID    string `json:"id" doc:"Id of the label. It is unique among the labels of the device." example:"5"`
	Name  string `json:"name" doc:"Name of the label." example:"New customer"`
	Color int    `json:"color" minimum:"0" maximum:"19" doc:"Number of the label's color in the palette of the network's apps." example:"3"`
}

// LabelChanges is what is known of the labels of an account.
type LabelChanges struct {
	Whole  bool // there are no others
	Labels []LabelEdit
	Chats  []ChatLabel
}

// LabelEdit is what an account has last said of a label.
type LabelEdit struct {
	Label

	Rest    string // what else the network says of it, in the driver's form
	Deleted bool
}

// ChatLabel says whether an account has put a label on a chat.
type ChatLabel struct {
	ChatID, LabelID string
	On              bool
}

// The limits of labels. Apps allow 20 labels with names of 100 characters; nobody limits what a phone writes.
const (
	MaxLabels     = 50 // of an account, made here
	MaxKeptLabels = 2 * MaxLabels
	MaxChatLabels = 50_000 // of an account, kept
	MaxLabelName  = 100    // characters
	MaxLabelID    = 40     // bytes
	LabelColors   = 20
)

// IsLabelID reports whether s can be the id of a label. Ids consist of what needs no escape in an address.
func IsLabelID(s string) bool {
	return s != "" && len(s) <= MaxLabelID && strings.Trim(s, labelIDs) == ""
}

const labelIDs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

// NewLabelID returns the id of a new label: a number, as apps use, and one that neither the phone nor another companion
// chooses at the same time, because they count from 1.
func NewLabelID() string { return strconv.Itoa(1_000_000 + rand.IntN(899_000_000)) }

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
	for _, l := range c.Labels {
		n += labelJSON + escapedByte*len(l.Name)
	}
	if c.LatestMessage != nil {
		n += c.LatestMessage.JSONBound()
	}
	return n
}

// How many bytes the other members of a chat, and of a label, take at most.
const (
	chatJSON  = 1 << 10
	labelJSON = 1 << 7
)

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
