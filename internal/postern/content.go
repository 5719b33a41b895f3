package postern

import (
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Kind is the kind of a message. It is the message's "type" in the API, in
// events and in the database.
type Kind string

// The kinds of messages.
const (
	KindText     Kind = "text"
	KindLocation Kind = "location"
	KindContact  Kind = "contact"
	KindPoll     Kind = "poll"
	// The kinds that carry a file.
	KindImage    Kind = "image"
	KindVideo    Kind = "video"
	KindAudio    Kind = "audio"
	KindVoice    Kind = "voice"
	KindDocument Kind = "document"
	KindSticker  Kind = "sticker"
	// KindLiveLocation, KindEvent and KindCall can be received, and not sent.
	KindLiveLocation Kind = "liveLocation"
	KindEvent        Kind = "event"
	KindCall         Kind = "call"
	// KindUnsupported is an inbound message of a kind that Postern does not
	// show. It cannot be sent.
	KindUnsupported Kind = "unsupported"
)

// MaxText bounds the text of a message, in characters: Unicode code points.
const MaxText = 65_536

// Content is what a message says, apart from who wrote it to whom. The same
// value goes from the body of a request to the network, and from the network to
// events and to the database.
type Content struct {
	Kind Kind
	Text string // the text, or the caption of a kind that has one; at most MaxText characters
	// Truncated reports that a part of a received message was longer than its limit and was cut.
	Truncated bool
	Media     *Media // the file, of kinds that carry one
	Extra
	ReceivedOnly
}

// Extra holds the members that only some kinds have, and those that are optional for all
// kinds. Their names are the same in requests, responses, events and the database.
type Extra struct {
	Location *Location `json:"location,omitempty" doc:"The place that a location message shows; absent from other kinds."`
	Contacts []Contact `json:"contacts,omitempty" nullable:"false" doc:"The contacts that a contact message shows: 1 to 20 in a message that is sent. Absent from other kinds."`
	Poll     *Poll     `json:"poll,omitempty" doc:"The question and the options of a poll; absent from other kinds."`

	ViewOnce bool `json:"viewOnce,omitzero" doc:"True if the recipient can open the media only once; otherwise absent." example:"true"`
	GIF      bool `json:"gif,omitzero" doc:"True if a video plays in a loop without sound; otherwise absent." example:"true"`
	Round    bool `json:"round,omitzero" doc:"True if a video is shown as a circle; otherwise absent." example:"true"`

	Mentions  []string `json:"mentions,omitempty" nullable:"false" doc:"At most 1,024 people whom the text mentions: phone numbers, or hidden numbers as in the chatId of an event; in a group also all, for all members. Apps show a name where the text contains @ and the digits. Absent if nobody is mentioned." example:"[\"+15557654321\"]"`
	Forwarded bool     `json:"forwarded,omitzero" doc:"True if the message is marked as forwarded; otherwise absent." example:"true"`
}

// ReceivedOnly holds the members that a request to send a message does not have.
type ReceivedOnly struct {
	LinkPreview  *LinkPreview   `json:"linkPreview,omitempty" doc:"What a text shows of the page behind its first link; absent if it shows nothing."`
	LiveLocation *LiveLocation  `json:"liveLocation,omitempty" doc:"The place that a live location showed first; absent from other kinds. The network does not send its changes to linked devices."`
	Event        *CalendarEvent `json:"event,omitempty" doc:"The event to which a message invites; absent from other kinds."`
	Call         *Call          `json:"call,omitempty" doc:"A call of the contact; absent from other kinds."`
	HDOf         Maybe          `json:"hdOf,omitempty" doc:"The message that shows the same picture or video in lower quality; absent from others. Phones send the better copy a moment later." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	UnknownKind  string         `json:"kind,omitempty" doc:"The network's name for the kind of an unsupported message; absent from other kinds." example:"stickerPack"`
}

// Call is a call to the account. Its message has the id of the call as its network id.
type Call struct {
	Video bool `json:"video" doc:"True for a video call." example:"false"`
	Group bool `json:"group" doc:"True if the contact called others too." example:"false"`
}

// LinkPreview is what a text shows of the page behind its first link.
type LinkPreview struct {
	URL         string `json:"url" minLength:"1" maxLength:"2048" doc:"The link, as it is in the text." example:"https://example.com/offers"`
	Title       string `json:"title,omitempty" maxLength:"300" doc:"Title of the page; absent until the page of a message to send was fetched." example:"Offers"`
	Description string `json:"description,omitempty" maxLength:"1000" doc:"What the page says about itself; absent if it says nothing." example:"What is cheaper this week."`
}

// Of a preview, in characters.
const (
	MaxPreviewTitle       = 300
	MaxPreviewDescription = 1000
)

// IsPlain reports whether the content has a text and nothing else.
func (c Content) IsPlain() bool {
	return !c.Truncated && c.Media == nil && reflect.ValueOf(c.Extra).IsZero() && reflect.ValueOf(c.ReceivedOnly).IsZero()
}

// Bare returns the content without what it says about other messages and people.
func (c Content) Bare() Content {
	c.Mentions, c.Forwarded = nil, false
	return c
}

// Texts returns the texts by which a message is found: its text or caption, the name of its file,
// and those of its place, its contacts and its poll.
func (c Content) Texts() []string {
	list := []string{c.Text}
	if c.Media != nil {
		list = append(list, c.Media.Filename)
	}
	if c.Location != nil {
		list = append(list, c.Location.Name, c.Location.Address)
	}
	for _, one := range c.Contacts {
		list = append(list, one.Name, one.Organization)
		list = append(list, one.PhoneNumbers...)
	}
	if c.Poll != nil {
		list = append(append(list, c.Poll.Question), c.Poll.Options...)
	}
	if c.Event != nil {
		list = append(list, c.Event.Name, c.Event.Description)
	}
	return list
}

// Text returns the content of a text message.
func Text(text string) Content { return Content{Kind: KindText, Text: text} }

// Unsupported returns the content of a message that Postern does not show. kind is the
// network's name for its kind, or "".
func Unsupported(kind string) Content {
	return Content{Kind: KindUnsupported, ReceivedOnly: ReceivedOnly{UnknownKind: kind}}
}

// Checked returns the content as it is sent, with numbers in the form of [ParsePhone].
// Otherwise the error names the member of the request's body that must change.
func (c Content) Checked() (Content, error) {
	if err := c.checkMembers(); err != nil {
		return c, err
	}
	err := c.checkText()
	if err == nil {
		err = c.checkOwn()
	}
	if err == nil {
		c.Contacts, err = checkContacts(c.Contacts)
	}
	if err == nil {
		c.Mentions, err = checkMentions(c.Mentions)
	}
	return c, err
}

// checkMembers refuses the members of other kinds. The API refuses them too, by its schema.
func (c Content) checkMembers() error {
	for _, member := range []struct {
		pointer string
		given   bool
		allowed bool
	}{
		{"/body", c.Text != "", c.Kind == KindText || c.Kind.hasCaption()},
		{"/location", c.Location != nil, c.Kind == KindLocation},
		{"/contacts", len(c.Contacts) > 0, c.Kind == KindContact},
		{"/poll", c.Poll != nil, c.Kind == KindPoll},
		{"/media", c.Media != nil, c.Kind.HasMedia()},
		{"/viewOnce", c.ViewOnce, c.Kind.mayBeViewedOnce()},
		{"/gif", c.GIF, c.Kind == KindVideo},
		{"/round", c.Round, c.Kind == KindVideo},
	} {
		if member.given && !member.allowed {
			return Invalid(member.pointer, "a message of this kind has no such member")
		}
	}
	return nil
}

// CheckChat refuses content that cannot be sent to a chat.
func (c Content) CheckChat(chat string) error {
	switch {
	case IsChannel(chat):
		return c.checkPost()
	case chat == StatusChat:
		return c.checkStatus()
	}
	if i := slices.Index(c.Mentions, MentionAll); i >= 0 && !IsGroup(chat) {
		return Invalid("/mentions/"+strconv.Itoa(i), "only a message to a group can mention all")
	}
	return nil
}

// checkPost refuses content that cannot be posted in a channel.
func (c Content) checkPost() error {
	switch {
	case c.Kind == KindPoll:
		return Invalid("/type", "the network refuses polls in channels; post a text")
	case c.Kind != KindText && c.Kind != KindImage:
		return Invalid("/type", "only texts and images can be posted in a channel so far")
	case c.ViewOnce:
		return Invalid("/viewOnce", "a post in a channel can be viewed more than once")
	case len(c.Mentions) > 0:
		return Invalid("/mentions", "a post in a channel mentions nobody: those who follow it do not see each other")
	case c.Forwarded:
		return Invalid("/forwarded", "a post in a channel cannot be marked as forwarded")
	}
	return nil
}

// checkStatus refuses content that cannot be a status post.
func (c Content) checkStatus() error {
	switch {
	case !slices.Contains([]Kind{KindText, KindImage, KindVideo, KindVoice}, c.Kind):
		return Invalid("/type", "a status post is a text, an image, a video or a voice message")
	case c.ViewOnce:
		return Invalid("/viewOnce", "a status post can be viewed for a day")
	case c.Round:
		return Invalid("/round", "a video in a status post is not round")
	case len(c.Mentions) > 0:
		return Invalid("/mentions", "a status post mentions nobody")
	case c.Forwarded:
		return Invalid("/forwarded", "a status post cannot be marked as forwarded")
	}
	return nil
}

func (c Content) checkText() error {
	switch {
	case c.Kind == KindText && c.Text == "":
		return Invalid("/body", "a text message needs a body")
	case utf8.RuneCountInString(c.Text) > MaxText:
		return Errorf(PayloadTooLarge, "a text may have at most %d characters", MaxText)
	}
	return nil
}

// checkOwn checks what only the kind of the content has.
func (c Content) checkOwn() error {
	switch c.Kind {
	case KindText:
		return nil
	case KindLocation:
		return c.Location.check()
	case KindContact:
		if len(c.Contacts) == 0 {
			return Invalid("/contacts", "a contact message needs at least one contact")
		}
		return nil
	case KindPoll:
		return c.Poll.check()
	case KindImage, KindVideo, KindAudio, KindVoice, KindDocument, KindSticker:
		return c.checkMedia()
	default:
		return Invalid("/type", "a message of this kind cannot be sent")
	}
}

// checkMentions returns the people who are mentioned, in one form.
func checkMentions(list []string) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > MaxMentions {
		return nil, Invalid("/mentions", "a message mentions at most %d people", MaxMentions)
	}
	who := make([]string, len(list))
	for i, s := range list {
		if s == MentionAll {
			who[i] = s
			continue
		}
		chat, err := ParseChat(s)
		if err != nil || !IsDirect(chat) {
			return nil, Invalid("/mentions/"+strconv.Itoa(i), "%v", errNotChat)
		}
		who[i] = chat
	}
	return who, nil
}
