package api

import (
	"context"
	"reflect"
	"strings"
	"time"

	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// messages are the operations on messages.
type messages struct {
	gateway *gateway.Gateway
}

// messageKinds are the kinds of messages that can be sent. A body without a type
// is of the first kind.
func messageKinds() []spec.Kind {
	media := []string{"media"}
	return []spec.Kind{
		{Type: string(postern.KindText), Required: []string{"body"}, Optional: []string{"linkPreview"}},
		{Type: string(postern.KindLocation), Required: []string{"location"}},
		{Type: string(postern.KindContact), Required: []string{"contacts"}},
		{Type: string(postern.KindPoll), Required: []string{"poll"}},
		{Type: string(postern.KindImage), Required: media, Optional: []string{"body", "viewOnce"}},
		{Type: string(postern.KindVideo), Required: media, Optional: []string{"body", "viewOnce", "gif", "round"}},
		{Type: string(postern.KindAudio), Required: media, Optional: []string{"viewOnce"}},
		{Type: string(postern.KindVoice), Required: media, Optional: []string{"viewOnce"}},
		{Type: string(postern.KindDocument), Required: media, Optional: []string{"body"}},
		{Type: string(postern.KindSticker), Required: media},
	}
}

// newMessage is the body of one of the messageKinds.
type newMessage messageMembers

// Schema returns a form for each kind.
func (newMessage) Schema(r huma.Registry) *huma.Schema {
	return spec.OneOf[messageMembers](r, "NewMessage", messageKinds())
}

// messageMembers are the members of all kinds.
type messageMembers struct {
	_                struct{}          `additionalProperties:"false"`
	DeviceID         postern.DeviceID  `json:"deviceId" minLength:"1" doc:"The device that sends the message." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	To               string            `json:"to" minLength:"1" doc:"The recipient: a phone number (+ and 7 to 15 digits; spaces, dots, dashes and brackets between them are ignored), the chatId of an event, status for a status post, or an address of the network, such as 15551234567@s.whatsapp.net." example:"+15551234567"`
	Type             postern.Kind      `json:"type,omitempty" default:"text" doc:"Kind of the message." example:"text"`
	Body             string            `json:"body,omitempty" minLength:"1" doc:"The text, or the caption of an image, video or document: at most 65,536 characters (Unicode code points)." example:"Hello"`
	Media            *newMedia         `json:"media,omitempty" doc:"The file of an image, video, audio, voice, document or sticker message: one that was uploaded, one at a URL, or the bytes themselves."`
	LinkPreview      bool              `json:"linkPreview,omitempty" doc:"Show a preview of the page behind the first link of the text; false by default. The page is fetched once, after the message was accepted, from its https address. If that fails, or takes longer than 6 seconds, the message is sent without a preview." example:"true"`
	ReplyTo          postern.MessageID `json:"replyTo,omitempty" minLength:"1" doc:"Id of the message of this chat to which this one replies." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Metadata         map[string]string `json:"metadata,omitempty" doc:"Your own labels: at most 50, of at most 500 bytes each. They are included in every event about the message."`
	ExpiresIn        int               `json:"expiresIn,omitempty" minimum:"1" maximum:"604800" doc:"Seconds after which the message expires if it could not be sent; one day by default." example:"300"`
	SendAt           string            `json:"sendAt,omitempty" format:"date-time" doc:"When to send the message, at most a year ahead; at once if it is left out or has passed. The device need not be connected now. The message counts towards this month's quota, and expires expiresIn seconds after this time." example:"2026-11-22T08:00:00.000Z"`
	WhenDisconnected string            `json:"whenDisconnected,omitempty" enum:"fail,queue" doc:"What to do while the device is not connected: refuse the message (fail, the default), or queue it." example:"fail"`

	Priority postern.Priority `json:"priority,omitempty" enum:"high,normal,low" doc:"Which messages of the device leave first while several wait; normal by default. Of 10 messages, 6 have high, 3 normal and 1 low priority. The messages of a chat always leave in the order in which they were accepted; those that wait behind or before one with a better priority leave with it." example:"high"`

	postern.Extra
}

// newMedia is the file of a new message, in one of the three forms below.
type newMedia struct {
	ID       postern.MediaID `json:"id"`
	URL      string          `json:"url"`
	Data     []byte          `json:"data"`
	MIMEType string          `json:"mimeType"`
	Filename string          `json:"filename"`
}

// mediaByID is a file that was uploaded or received.
type mediaByID struct {
	_        struct{}        `additionalProperties:"false"`
	ID       postern.MediaID `json:"id" minLength:"1" doc:"Id of a file that was uploaded, or that came with a message." example:"med_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Filename string          `json:"filename,omitempty" minLength:"1" doc:"Name that the recipient sees, at most 200 bytes; by default the one that the file has. A document needs a name." example:"invoice.pdf"`
}

// mediaByURL is a file that the server fetches.
type mediaByURL struct {
	_        struct{} `additionalProperties:"false"`
	URL      string   `json:"url" minLength:"1" doc:"Public https address of the file. It is fetched once, after the message was accepted; if that fails, the message ends with the error MEDIA_FAILED." example:"https://files.example.com/invoice.pdf"`
	Filename string   `json:"filename,omitempty" minLength:"1" doc:"Name that the recipient sees, at most 200 bytes. A document needs a name." example:"invoice.pdf"`
}

// mediaInline is a file within the body of the request.
type mediaInline struct {
	_        struct{} `additionalProperties:"false"`
	Data     []byte   `json:"data" minLength:"1" doc:"The bytes of the file in base64. The limit of 1 MiB for a body leaves about 700 kB; upload larger files." example:"SGVsbG8K"`
	MIMEType string   `json:"mimeType" minLength:"1" maxLength:"255" doc:"Type of the file. The server finds the type in the bytes, and uses that one." example:"text/plain"`
	Filename string   `json:"filename,omitempty" minLength:"1" doc:"Name that the recipient sees, at most 200 bytes. A document needs a name." example:"hello.txt"`
}

// Schema returns the three forms.
func (newMedia) Schema(r huma.Registry) *huma.Schema {
	return formsOf(r, reflect.TypeFor[mediaByID](), reflect.TypeFor[mediaByURL](), reflect.TypeFor[mediaInline]())
}

func formsOf(r huma.Registry, forms ...reflect.Type) *huma.Schema {
	one := &huma.Schema{Type: huma.TypeObject}
	for _, form := range forms {
		one.OneOf = append(one.OneOf, r.Schema(form, true, ""))
	}
	return one
}

func (h messages) send(
	ctx context.Context, q *request, in *struct{ Body newMessage },
) (*created[postern.Message], error) {
	b := in.Body
	at, err := instant("/sendAt", b.SendAt)
	if err != nil {
		return nil, err
	}
	if b.Media != nil {
		if b.Media.Filename, err = safeName("/media/filename", b.Media.Filename); err != nil {
			return nil, err
		}
	}
	return answerCreated(h.gateway.Messages.Send(ctx, q.caller, gateway.NewMessage{
		DeviceID: b.DeviceID, To: b.To, Metadata: b.Metadata,
		Content: postern.Content{Kind: b.Type, Text: b.Body, Extra: b.Extra}, Media: (*gateway.NewMedia)(b.Media),
		ReplyTo: b.ReplyTo, SendAt: at, LinkPreview: b.LinkPreview,
		ExpiresIn: time.Duration(b.ExpiresIn) * time.Second, WhenDisconnected: b.WhenDisconnected,
		Priority: b.Priority,
	}, q.idem))
}

type messageInput struct {
	ID postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h messages) get(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Messages.Get(ctx, q.caller, in.ID))
}

type timelineInput struct {
	ID postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Paging
}

func (h messages) timeline(
	ctx context.Context, q *request, in *timelineInput,
) (*output[List[postern.TimelineEntry]], error) {
	return answerList(h.gateway.Messages.Timeline(ctx, q.caller, in.ID, in.page()))
}

func (h messages) receipts(
	ctx context.Context, q *request, in *timelineInput,
) (*output[List[postern.Receipt]], error) {
	return answerList(h.gateway.Messages.Receipts(ctx, q.caller, in.ID, in.page()))
}

type reactionInput struct {
	ID   postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newReaction
}

type newReaction struct {
	_     struct{} `additionalProperties:"false"`
	Emoji string   `json:"emoji" minLength:"1" maxLength:"64" doc:"Exactly one emoji." example:"👍"`
}

func (h messages) react(ctx context.Context, q *request, in *reactionInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.React(ctx, q.caller, in.ID, in.Body.Emoji))
}

func (h messages) removeReaction(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.React(ctx, q.caller, in.ID, ""))
}

type pinInput struct {
	ID   postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newPin
}

type newPin struct {
	_        struct{} `additionalProperties:"false"`
	Duration int      `json:"duration,omitempty" enum:"86400,604800,2592000" doc:"For how many seconds the apps show the message as pinned: a day, 7 days (the default) or 30 days." example:"86400"`
}

func (h messages) pin(ctx context.Context, q *request, in *pinInput) (*output[postern.Message], error) {
	duration := postern.DefaultPin
	if in.Body != nil && in.Body.Duration != 0 {
		duration = time.Duration(in.Body.Duration) * time.Second
	}
	return answer(h.gateway.Actions.Pin(ctx, q.caller, in.ID, duration))
}

func (h messages) unpin(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Unpin(ctx, q.caller, in.ID))
}

func (h messages) star(ctx context.Context, q *request, in *readInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Star(ctx, q.caller, in.ID))
}

func (h messages) unstar(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Unstar(ctx, q.caller, in.ID))
}

type editInput struct {
	ID   postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newEdit
}

type newEdit struct {
	_      struct{} `additionalProperties:"false"`
	Body   string   `json:"body,omitempty" minLength:"1" doc:"The new text or caption, at most 65,536 characters." example:"Hello again"`
	SendAt string   `json:"sendAt,omitempty" format:"date-time" doc:"The new time of a scheduled message." example:"2026-11-22T09:00:00.000Z"`

	Priority postern.Priority `json:"priority,omitempty" enum:"high,normal,low" doc:"The new priority of a scheduled message." example:"high"`
}

func (h messages) edit(ctx context.Context, q *request, in *editInput) (*output[postern.Message], error) {
	at, err := instant("/sendAt", in.Body.SendAt)
	if err != nil {
		return nil, err
	}
	return answer(h.gateway.Actions.Edit(ctx, q.caller, in.ID, gateway.MessageChange{
		Text: in.Body.Body, SendAt: at, Priority: in.Body.Priority,
	}))
}

func (h messages) cancel(ctx context.Context, q *request, in *readInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Cancel(ctx, q.caller, in.ID))
}

func (h messages) delete(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Delete(ctx, q.caller, in.ID))
}

type voteInput struct {
	ID   postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newVote
}

type newVote struct {
	_       struct{} `additionalProperties:"false"`
	Options []string `json:"options" nullable:"false" maxItems:"1000" doc:"Texts of the chosen options." example:"[\"Online\"]"`
}

func (h messages) vote(ctx context.Context, q *request, in *voteInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.Vote(ctx, q.caller, in.ID, in.Body.Options))
}

type readInput struct {
	ID   postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (h messages) markRead(ctx context.Context, q *request, in *readInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.MarkRead(ctx, q.caller, in.ID))
}

func (h messages) markPlayed(ctx context.Context, q *request, in *readInput) (*output[postern.Message], error) {
	return answer(h.gateway.Actions.MarkPlayed(ctx, q.caller, in.ID))
}

type messagesInput struct {
	Paging
	DeviceID  postern.DeviceID `query:"deviceId" doc:"Only messages of this device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID    string           `query:"chatId" doc:"Only messages of this chat, in any form that to accepts. Write a plus sign as %2B." example:"+15551234567"`
	Type      postern.Kind     `query:"type" enum:"text,image,video,audio,voice,document,sticker,location,contact,poll,liveLocation,event,call,unsupported" doc:"Only messages of this kind."`
	Direction string           `query:"direction" enum:"inbound,outbound" doc:"Only messages of this direction."`
	Status    string           `query:"status" pattern:"^[a-z]+(,[a-z]+)*$" doc:"Only messages in one of these states, separated by commas: scheduled, queued, sending, sent, delivered, read, played, failed, expired, canceled, received." example:"queued,sending"`
	Text      string           `query:"q" maxLength:"200" doc:"Only messages that contain all of these words: in the text, the name of a file, the names of a place, contact or poll, or the values of the metadata. The last word may be the beginning of one. Capital letters and accents make no difference; a text without letters and digits finds nothing. New messages are found after about a second." example:"invoice"`
	Since     string           `query:"since" format:"date-time" doc:"Only messages created at this time or later." example:"2026-11-21T09:00:00.000Z"`
	Archived  bool             `query:"archived" doc:"Only messages of numbers that a device was linked to before. Other lists do not contain them." example:"false"`
	Until     string           `query:"until" format:"date-time" doc:"Only messages created before this time." example:"2026-11-22T09:00:00.000Z"`
}

func (h messages) list(ctx context.Context, q *request, in *messagesInput) (*output[List[postern.Message]], error) {
	since, until, err := span("/query", in.Since, in.Until)
	if err != nil {
		return nil, err
	}
	chat, err := chatFilter(in.ChatID)
	if err != nil {
		return nil, err
	}
	statuses, err := statusFilter(in.Status)
	if err != nil {
		return nil, err
	}
	return answerList(h.gateway.Messages.List(ctx, q.caller, gateway.MessageQuery{
		DeviceID: in.DeviceID, ChatID: chat, Direction: in.Direction, Kind: in.Type, Statuses: statuses, Text: in.Text,
		Since: since, Until: until, Archived: in.Archived, Page: in.page(),
	}))
}

// statusFilter returns the states of a filter; "" selects all.
func statusFilter(s string) (list []string, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		if status := postern.MessageStatus(one); status.Rank() == 0 && !status.IsEnd() {
			return nil, postern.Invalid("/query/status", "expected states of messages, separated by commas")
		}
		list = append(list, one)
	}
	return list, nil
}

// chatFilter normalizes the chatId filter; "" selects all chats.
func chatFilter(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	chat, err := postern.ParseChat(s)
	if err != nil {
		return "", postern.Invalid("/query/chatId", "%v%s", err, plusHint(s))
	}
	return chat, nil
}

// plusHint explains a value of the query in which a plus sign may have become a space.
func plusHint(value string) string {
	if strings.Contains(value, " ") {
		return "; in a query, write a plus sign as %2B, because + stands for a space"
	}
	return ""
}

// span parses the start and the end of a period, whose members are at place; 0
// stands for one that is left out.
func span(place, from, to string) (since, until postern.Time, err error) {
	if since, err = instant(place+"/since", from); err != nil {
		return 0, 0, err
	}
	until, err = instant(place+"/until", to)
	return since, until, err
}

// instant parses a time; "" gives 0.
func instant(place, s string) (t postern.Time, err error) {
	if s == "" {
		return 0, nil
	}
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return 0, postern.Invalid(place, "expected a time in RFC 3339 form, such as 2026-12-01T09:00:00.000Z")
	}
	return max(t, 1), nil // 0 stands for no time, and nothing is that old
}
