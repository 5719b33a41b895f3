package vendorsim

import (
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Content is the content of a message. Only this file, card.go and mediawire.go know the network's
// form of each kind of content: a kind has one case in wire and one in partOf.
type Content struct {
	Type string `json:"type"` // TypeText, another type below, or a kind that phones only receive
	Body string `json:"body"` // the text, or the caption of a kind that has one
	// Location is the place of a TypeLocation.
	Location *Location `json:"location,omitempty"`
	// Contacts are the contacts of a TypeContact.
	Contacts []Contact `json:"contacts,omitempty"`
	// Poll is the question of a TypePoll.
	Poll *Poll `json:"poll,omitempty"`
	// Media is the file of a message that has one.
	Media *Media `json:"media,omitempty"`
	// LinkPreview is what a text shows of a link; nil if it shows nothing.
	LinkPreview *LinkPreview `json:"linkPreview,omitempty"`
	// Mentions are the people whom the message mentions as phones show it, or MentionAll; Forwarded marks it as forwarded.
	Mentions  []string `json:"mentions,omitempty"`
	Forwarded bool     `json:"forwarded,omitempty"`
	// Target is the id on the network of the message that an action concerns, such as a TypeReaction.
	Target string `json:"target,omitempty"`
	// Choices are the options for which a TypeVote votes.
	Choices []string `json:"choices,omitempty"`
	// Seconds are how long a TypePin or a TypeTimer lasts; 0 ends it.
	Seconds int `json:"seconds,omitempty"`
	// Sealed is true for a TypeEdit that is encrypted with the secret of its Target.
	Sealed bool `json:"sealed,omitempty"`
	// Unreadable is true for what a companion has sealed in a way that the phone cannot open.
	Unreadable bool `json:"unreadable,omitempty"`
	// Secret is true for a message with a secret, which sealed edits of it need. A poll always has one.
	Secret bool `json:"secret,omitempty"`
	// Expires are the seconds after which the message disappears; 0 is never.
	Expires int `json:"expires,omitempty"`
	// Invite is the invitation of a TypeInvite.
	Invite *Invite `json:"invite,omitempty"`
	// ReplyTo is the id on the network of the message to which this one replies.
	ReplyTo string `json:"replyTo,omitempty"`
	// List is the id of the broadcast list through which a phone sends the message; "" if it is sent directly.
	List string `json:"list,omitempty"`

	// Raw is the message in the network's form, an encoded waE2E.Message. A phone writes it as it
	// is, whatever the other fields say. Of a message that a phone read it is what was decrypted,
	// unless that is only a text.
	Raw []byte `json:"raw,omitempty"`
}

// The types of messages, beside TypeText.
const (
	TypeLocation = "location"
	TypeContact  = "contact"
	TypePoll     = "poll"
	// TypeTimer sets the timer of the chat's disappearing messages to Seconds; 0 turns it off.
	TypeTimer = "timer"
	// TypeInvite invites somebody to a group who does not let others add them.
	TypeInvite = "groupInvite"
)

// Invite is an invitation to a group, for one person.
type Invite struct {
	Group string `json:"group"` // its id
	Name  string `json:"name"`
	Code  string `json:"code"`
}

// Location is a place; degrees north and east are positive.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Name      string  `json:"name,omitempty"`
	Address   string  `json:"address,omitempty"`
	URL       string  `json:"url,omitempty"`
}

// Contact is a person or a company with phone numbers.
type Contact struct {
	Name         string   `json:"name"`
	PhoneNumbers []string `json:"phoneNumbers"`
	Organization string   `json:"organization,omitempty"`
}

// Poll is a question with options.
type Poll struct {
	Question      string   `json:"question"`
	Options       []string `json:"options"`
	MaxSelections int      `json:"maxSelections,omitempty"`
}

// LinkPreview is the page behind a link, as the writer's app shows it.
type LinkPreview struct {
	URL         string `json:"url"` // as it is in the text
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Picture     []byte `json:"picture,omitempty"` // JPEG
}

// previewOf returns the preview of a text, nil if it has none.
func previewOf(m *waE2E.ExtendedTextMessage) *LinkPreview {
	if m.MatchedText == nil {
		return nil
	}
	return &LinkPreview{m.GetMatchedText(), m.GetTitle(), m.GetDescription(), m.GetJPEGThumbnail()}
}

// written returns content that a phone writes, with its network form.
func (c Content) written(msg *waE2E.Message) (Content, error) {
	if c.Secret && msg.MessageContextInfo == nil {
		msg.MessageContextInfo = &waE2E.MessageContextInfo{MessageSecret: newSecret()}
	}
	c.Secret = msg.GetMessageContextInfo().GetMessageSecret() != nil
	raw, err := proto.Marshal(msg)
	if err != nil {
		return c, fmt.Errorf("encode a message: %w", err)
	}
	c.Raw = raw
	return c, nil
}

// message returns the network's form of content that was written.
func (c Content) message() *waE2E.Message {
	m := &waE2E.Message{}
	if len(c.Raw) == 0 || proto.Unmarshal(c.Raw, m) != nil { // a text of an older journal
		return &waE2E.Message{Conversation: &c.Body}
	}
	return m
}

// check refuses content that phones cannot write: of an unknown type, or without what its type has.
func (c Content) check() error {
	complete := isAction(c.Type)
	switch c.Type {
	case "", TypeText, TypeTimer:
		complete = c.Media == nil
	case TypeImage, TypeVideo, TypeAudio, TypeVoice, TypeDocument, TypeSticker:
		complete = c.Media != nil
	case TypeLocation:
		complete = c.Location != nil
	case TypeContact:
		complete = len(c.Contacts) > 0
	case TypePoll:
		complete = c.Poll != nil
	case TypeInvite:
		complete = c.Invite != nil
	}
	if !complete {
		return fmt.Errorf("%w: %q, or not without more members", ErrUnknownType, c.Type)
	}
	return nil
}

// wire returns the network's form of what a phone writes.
func (c Content) wire(info *waE2E.ContextInfo) *waE2E.Message {
	switch {
	case classOf(c.Type) != "":
		return mediaToWire(c, info)
	case c.Location != nil:
		l := c.Location
		return &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: &l.Latitude, DegreesLongitude: &l.Longitude, Name: &l.Name, Address: &l.Address,
			URL: &l.URL, ContextInfo: info,
		}}
	case len(c.Contacts) > 0:
		return contactsToWire(c.Contacts, info)
	case c.Poll != nil:
		return pollToWire(*c.Poll, info)
	case c.Invite != nil:
		return &waE2E.Message{GroupInviteMessage: &waE2E.GroupInviteMessage{
			GroupJID: new(c.Invite.Group + "@g.us"), GroupName: &c.Invite.Name, InviteCode: &c.Invite.Code,
		}}
	case c.Type == TypeTimer:
		return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type:                      waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(),
			EphemeralExpiration:       new(uint32(c.Seconds)), //nolint:gosec // some months
			EphemeralSettingTimestamp: timestamp(),
		}}
	case info != nil || c.LinkPreview != nil:
		return &waE2E.Message{ExtendedTextMessage: c.extended(info)}
	}
	return &waE2E.Message{Conversation: &c.Body}
}

// extended returns the network's form of a text with more than its characters.
func (c Content) extended(info *waE2E.ContextInfo) *waE2E.ExtendedTextMessage {
	m := &waE2E.ExtendedTextMessage{Text: &c.Body, ContextInfo: info}
	if p := c.LinkPreview; p != nil {
		m.MatchedText, m.Title, m.Description, m.JPEGThumbnail = &p.URL, &p.Title, &p.Description, p.Picture
	}
	return m
}

// context returns what the content says about other messages and people, or nil if that is nothing.
func (c Content) context(author string) *waE2E.ContextInfo {
	if c.ReplyTo == "" && !c.Forwarded && len(c.Mentions) == 0 && c.Expires == 0 {
		return nil
	}
	info := &waE2E.ContextInfo{}
	if c.Expires != 0 {
		info.Expiration = new(uint32(c.Expires)) //nolint:gosec // some months
	}
	if c.ReplyTo != "" {
		info.StanzaID, info.Participant = &c.ReplyTo, &author
		info.QuotedMessage = &waE2E.Message{Conversation: new("")}
	}
	if c.Forwarded {
		info.IsForwarded, info.ForwardingScore = new(true), new(uint32(1))
	}
	for _, who := range c.Mentions {
		n, err := knownNumber(who)
		switch {
		case who == MentionAll:
			info.NonJIDMentions = new(uint32(1))
		case err == nil:
			info.MentionedJID = append(info.MentionedJID, n.pn().String())
		}
	}
	return info
}

// contentOf returns the content of a decrypted message. A kind that the simulator does not tell
// apart is named by kind, the type of the message's node.
func contentOf(msg *waE2E.Message, kind string) Content {
	if sent := msg.GetDeviceSentMessage().GetMessage(); sent != nil {
		msg = sent
	}
	inner, viewOnce := unwrapped(msg)
	c := partOf(inner, kind)
	if viewOnce && c.Media != nil {
		c.Media.ViewOnce = true
	}
	c.Secret = msg.GetMessageContextInfo().GetMessageSecret() != nil
	if msg.Conversation == nil || c.Secret {
		c.Raw, _ = proto.Marshal(msg) // it was just decoded, so it can be encoded
	}
	return c
}

func partOf(msg *waE2E.Message, kind string) Content {
	switch {
	case msg.Conversation != nil:
		return Content{Type: TypeText, Body: msg.GetConversation()}
	case msg.ExtendedTextMessage != nil:
		return Content{
			Type: TypeText, Body: msg.GetExtendedTextMessage().GetText(), LinkPreview: previewOf(msg.ExtendedTextMessage),
		}.
			with(msg.ExtendedTextMessage.GetContextInfo())
	case msg.LocationMessage != nil:
		l := msg.GetLocationMessage()
		return Content{Type: TypeLocation, Location: &Location{
			l.GetDegreesLatitude(), l.GetDegreesLongitude(), l.GetName(), l.GetAddress(), l.GetURL(),
		}}.with(l.GetContextInfo())
	case msg.ContactMessage != nil:
		return contactsOf(msg.ContactMessage).with(msg.ContactMessage.GetContextInfo())
	case msg.ContactsArrayMessage != nil:
		return contactsOf(msg.ContactsArrayMessage.GetContacts()...).with(msg.ContactsArrayMessage.GetContextInfo())
	case msg.PollCreationMessage != nil:
		return pollOf(msg.PollCreationMessage).with(msg.PollCreationMessage.GetContextInfo())
	}
	return otherOf(msg, kind)
}

// otherOf returns the content of a message with a file, or of a kind that phones do not write yet.
func otherOf(msg *waE2E.Message, kind string) Content {
	if c, ok := mediaOf(msg); ok {
		return c
	}
	if c, ok := actionOf(msg); ok {
		return c
	}
	if i := msg.GetGroupInviteMessage(); i != nil {
		id, _, _ := strings.Cut(i.GetGroupJID(), "@")
		return Content{Type: TypeInvite, Invite: &Invite{id, i.GetGroupName(), i.GetInviteCode()}}
	}
	switch p := msg.GetProtocolMessage(); {
	case p != nil && p.GetType() == waE2E.ProtocolMessage_EPHEMERAL_SETTING:
		return Content{Type: TypeTimer, Seconds: int(p.GetEphemeralExpiration())}
	case p != nil:
		return Content{Type: "protocol", Body: strings.ToLower(p.GetType().String())}
	}
	return Content{Type: kind, Body: ""}
}

// with adds what a message says about other messages and people.
func (c Content) with(info *waE2E.ContextInfo) Content {
	c.ReplyTo, c.Forwarded = info.GetStanzaID(), info.GetIsForwarded()
	c.Expires = int(info.GetExpiration())
	c.mention(info, types.DefaultUserServer)
	return c
}
