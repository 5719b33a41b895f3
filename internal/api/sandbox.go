package api

import (
	"context"
	"reflect"
	"slices"

	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// sandbox are the operations on simulated phones.
type sandbox struct {
	gateway *gateway.Gateway
}

type scanInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newScan
}

type newScan struct {
	_           struct{} `additionalProperties:"false"`
	PhoneNumber string   `json:"phoneNumber,omitempty" minLength:"1" doc:"Number of the phone; by default the one that the attempt names, or one made up for the device." example:"+15550001111"`
	Code        string   `json:"code,omitempty" minLength:"1" doc:"The code that is scanned or entered; by default the one that the attempt shows." example:"7KQ2-M4XB"`
}

// Scan is the phone that scanned.
type Scan struct {
	PhoneNumber string `json:"phoneNumber" doc:"Number of the phone." example:"+15550001111"`
}

func (h sandbox) scan(ctx context.Context, q *request, in *scanInput) (*output[Scan], error) {
	var b newScan
	if in.Body != nil {
		b = *in.Body
	}
	number, err := h.gateway.SandboxPhones.Scan(ctx, q.caller, in.ID, b.PhoneNumber, b.Code)
	return answer(Scan{number}, err)
}

type passkeyOfPhone struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newSandboxPasskey
}

type newSandboxPasskey struct {
	_       struct{} `additionalProperties:"false"`
	Mistake string   `json:"mistake,omitempty" enum:"signature,origin,challenge,domain,unverified" doc:"What is wrong with the credential; left out for nothing." example:"signature"`
	Fault   string   `json:"fault,omitempty" enum:"refused,expired,declined,commitment" doc:"What goes wrong when the simulated network gets the next right credential: it refuses it, it says that it comes too late, the owner declines on the phone, or the phone reports that the server's keys do not fit. Left out for nothing." example:"declined"`
}

// SandboxPasskey is the answer of a simulated phone's passkey.
type SandboxPasskey struct {
	Credential passkeyCredential `json:"credential" doc:"Send it as the credential of the link attempt."`
}

func (h sandbox) passkey(ctx context.Context, q *request, in *passkeyOfPhone) (*output[SandboxPasskey], error) {
	var b newSandboxPasskey
	if in.Body != nil {
		b = *in.Body
	}
	c, err := h.gateway.SandboxPhones.Passkey(ctx, q.caller, in.ID, b.Mistake, b.Fault)
	return answer(SandboxPasskey{credentialOf(c)}, err)
}

// credentialOf describes a credential as callers send it.
func credentialOf(c postern.PasskeyCredential) passkeyCredential {
	out := passkeyCredential{ID: c.ID, RawID: c.RawID, Type: c.Type, Response: passkeyResponse{
		ClientDataJSON: c.Response.ClientData, AuthenticatorData: c.Response.AuthenticatorData,
		Signature: c.Response.Signature,
	}}
	if user := string(c.Response.UserHandle); user != "" {
		out.Response.UserHandle = &user
	}
	return out
}

type inboundInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newInbound
}

// newInbound is the body of one of the messageKinds.
type newInbound inboundMembers

// Schema returns a form for each kind.
func (newInbound) Schema(r huma.Registry) *huma.Schema {
	return spec.OneOf[inboundMembers](r, "NewInbound", messageKinds())
}

// inboundMembers are the members of all kinds.
type inboundMembers struct {
	_    struct{}     `additionalProperties:"false"`
	From string       `json:"from" minLength:"1" doc:"Number of the contact that sends the message." example:"+15551234567"`
	Type postern.Kind `json:"type,omitempty" default:"text" doc:"Kind of the message." example:"text"`
	Body string       `json:"body,omitempty" minLength:"1" doc:"The text, or the caption of an image, video or document." example:"Hello"`

	Media *phoneMedia `json:"media,omitempty" doc:"The file of an image, video, audio, voice, document or sticker message: one that was uploaded, or the bytes themselves."`

	LinkPreview *postern.LinkPreview `json:"linkPreview,omitempty" doc:"What the phone of the contact shows of a link in the text."`

	Group string `json:"group,omitempty" minLength:"1" doc:"Chat of a group in which the contact writes; the direct chat with the contact by default." example:"group:120363041234567890"`

	Channel string `json:"channel,omitempty" minLength:"1" doc:"Chat of a channel in which the contact posts, as one of its administrators. Nobody who follows the channel sees who that is." example:"channel:120363041234567890"`

	Status bool `json:"status,omitempty" doc:"Whether the contact posts this as status, which its contacts see for a day; false by default." example:"true"`

	ReplyTo postern.MessageID `json:"replyTo,omitempty" minLength:"1" doc:"Id of the message of this chat to which this one replies." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`

	postern.Extra
}

// phoneMedia is the file of a simulated contact's message.
type phoneMedia newMedia

// Schema returns the forms of newMedia except that of a URL.
func (phoneMedia) Schema(r huma.Registry) *huma.Schema {
	return formsOf(r, reflect.TypeFor[mediaByID](), reflect.TypeFor[mediaInline]())
}

// Inbound is the message that was sent.
type Inbound struct {
	NetworkID string `json:"networkId" doc:"Id of the message on the network." example:"3EB0A1B2C3D4E5F60718"`
}

func (h sandbox) inbound(ctx context.Context, q *request, in *inboundInput) (*output[Inbound], error) {
	id, err := h.gateway.SandboxPhones.Inbound(ctx, q.caller, in.ID, gateway.SandboxInbound{
		From: in.Body.From, Group: in.Body.Group, Channel: in.Body.Channel, Status: in.Body.Status, Content: postern.Content{
			Kind: in.Body.Type, Text: in.Body.Body, Extra: in.Body.Extra,
			ReceivedOnly: postern.ReceivedOnly{LinkPreview: in.Body.LinkPreview},
		},
		Media:   (*gateway.NewMedia)(in.Body.Media),
		ReplyTo: in.Body.ReplyTo,
	})
	return answer(Inbound{id}, err)
}

type groupInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newSandboxGroup
}

type newSandboxGroup struct {
	_            struct{} `additionalProperties:"false"`
	Subject      string   `json:"subject" minLength:"1" maxLength:"100" doc:"Name of the group." example:"Support"`
	Participants []string `json:"participants" minItems:"1" maxItems:"1023" doc:"Numbers of the other members. The first one is the administrator." example:"[\"+15551234567\"]"`
}

func (h sandbox) createGroup(ctx context.Context, q *request, in *groupInput) (*output[gateway.SandboxGroup], error) {
	return answer(h.gateway.SandboxPhones.CreateGroup(ctx, q.caller, in.ID, in.Body.Subject, in.Body.Participants))
}

type channelInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newSandboxChannel
}

type newSandboxChannel struct {
	_     struct{} `additionalProperties:"false"`
	Name  string   `json:"name" minLength:"1" maxLength:"100" doc:"Name of the channel." example:"Opening hours"`
	From  string   `json:"from" minLength:"1" doc:"Number of the owner, who posts in the channel." example:"+15551234567"`
	Admin bool     `json:"admin,omitempty" doc:"Whether the device's account becomes an administrator, who may post, too; false by default." example:"true"`
}

func (h sandbox) createChannel(
	ctx context.Context, q *request, in *channelInput,
) (*output[gateway.SandboxChannel], error) {
	return answer(h.gateway.SandboxPhones.CreateChannel(
		ctx, q.caller, in.ID, in.Body.From, in.Body.Name, in.Body.Admin))
}

type changeGroupInSandbox struct {
	OneGroup

	Body newGroupChange
}

type newGroupChange struct {
	_            struct{} `additionalProperties:"false"`
	From         string   `json:"from" minLength:"1" doc:"Number of the member who does it." example:"+15551234567"`
	Subject      *string  `json:"subject,omitempty" minLength:"1" maxLength:"100" doc:"Name of the group." example:"Sales"`
	Description  *string  `json:"description,omitempty" maxLength:"2048" doc:"Text about the group; \"\" removes it." example:"Questions about orders"`
	AnnounceOnly *bool    `json:"announceOnly,omitempty" doc:"Whether only administrators may write." example:"true"`
	AdminsEdit   *bool    `json:"adminsEdit,omitempty" doc:"Whether only administrators may change the group." example:"true"`
	JoinApproval *bool    `json:"joinApproval,omitempty" doc:"Whether an administrator approves those who join by the invitation." example:"true"`
	Disappearing *int     `json:"disappearing,omitempty" enum:"0,86400,604800,7776000" doc:"Seconds after which messages disappear; 0 means never." example:"604800"`
	Add          []string `json:"add,omitempty" nullable:"false" maxItems:"1023" doc:"Who to add." example:"[\"+15551234567\"]"`
	Remove       []string `json:"remove,omitempty" nullable:"false" maxItems:"1023" doc:"Who to remove. Members leave by removing themselves." example:"[\"+15557654321\"]"`
	Promote      []string `json:"promote,omitempty" nullable:"false" maxItems:"1023" doc:"Who becomes an administrator." example:"[\"+15551234567\"]"`
	Demote       []string `json:"demote,omitempty" nullable:"false" maxItems:"1023" doc:"Who is no longer an administrator." example:"[\"+15557654321\"]"`

	Join   bool              `json:"join,omitempty" doc:"Whether the phone of from uses the invitation first. If an administrator has to approve, nothing else happens." example:"false"`
	Delete postern.MessageID `json:"delete,omitempty" minLength:"1" doc:"A message of the group that from deletes for everyone: an own one, or as an administrator any." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h sandbox) changeGroup(ctx context.Context, q *request, in *changeGroupInSandbox) (*nothing, error) {
	b := in.Body
	return nil, h.gateway.SandboxPhones.ChangeGroup(ctx, q.caller, in.ID, in.ChatID, gateway.SandboxGroupChange{
		From: b.From, Join: b.Join, Delete: b.Delete,
		Group: postern.GroupChange{
			Subject: b.Subject, Description: b.Description, AnnounceOnly: b.AnnounceOnly, AdminsEdit: b.AdminsEdit,
			JoinApproval: b.JoinApproval, Disappearing: b.Disappearing,
		},
		People: gateway.ParticipantsChange{Add: b.Add, Remove: b.Remove, Promote: b.Promote, Demote: b.Demote},
	})
}

type callInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newCall
}

type newCall struct {
	_     struct{} `additionalProperties:"false"`
	From  string   `json:"from" minLength:"1" doc:"Number of the contact that calls." example:"+15551234567"`
	Video bool     `json:"video,omitempty" doc:"Whether it is a video call; false by default." example:"true"`
	Group bool     `json:"group,omitempty" doc:"Whether the contact calls others too; false by default." example:"false"`
}

// Ringing is the call that began.
type Ringing struct {
	CallID string `json:"callId" doc:"Id of the call on the network." example:"3EB0A1B2C3D4E5F60718"`
}

func (h sandbox) call(ctx context.Context, q *request, in *callInput) (*output[Ringing], error) {
	id, err := h.gateway.SandboxPhones.Call(ctx, q.caller, in.ID, in.Body.From,
		postern.Call{Video: in.Body.Video, Group: in.Body.Group})
	return answer(Ringing{id}, err)
}

type appearInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newAppearance
}

type newAppearance struct {
	_          struct{}       `additionalProperties:"false"`
	From       string         `json:"from" minLength:"1" doc:"Number of the contact." example:"+15551234567"`
	Group      string         `json:"group,omitempty" minLength:"1" doc:"Chat of a group in which the contact types; the direct chat with the contact by default." example:"group:120363041234567890"`
	Typing     postern.Typing `json:"typing,omitempty" enum:"text,voice,paused" doc:"What the contact writes." example:"text"`
	Available  *bool          `json:"available,omitempty" doc:"Whether the contact is online from now on." example:"false"`
	LastSeenAt *postern.Time  `json:"lastSeenAt,omitempty" format:"date-time" doc:"When a contact that leaves was online last; left out, the contact hides that." example:"2026-11-21T09:00:00.000Z"`
}

func (h sandbox) appear(ctx context.Context, q *request, in *appearInput) (*nothing, error) {
	b := in.Body
	return nil, h.gateway.SandboxPhones.Appear(ctx, q.caller, in.ID, gateway.SandboxAppearance{
		From: b.From, Group: b.Group, Typing: b.Typing, Available: b.Available, LastSeenAt: b.LastSeenAt,
	})
}

type receiptInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newReceipt
}

type newReceipt struct {
	_         struct{}              `additionalProperties:"false"`
	MessageID postern.MessageID     `json:"messageId" minLength:"1" doc:"A message that this device sent; or, with the status read, a received one, which the account then reads on its phone." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	From      string                `json:"from,omitempty" minLength:"1" doc:"The member who confirms a message to a group; all members by default." example:"+15551234567"`
	Status    postern.MessageStatus `json:"status" enum:"delivered,read,played" doc:"What the recipient confirms." example:"read"`
}

func (h sandbox) receipt(ctx context.Context, q *request, in *receiptInput) (*nothing, error) {
	return nil, h.gateway.SandboxPhones.Receipt(ctx, q.caller, in.ID, in.Body.MessageID, in.Body.From, in.Body.Status)
}

type setChatInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body setChat
}

type setChat struct {
	_        struct{} `additionalProperties:"false"`
	ChatID   string   `json:"chatId" minLength:"1" doc:"The chat: a number or a group." example:"+15551234567"`
	Archived *bool    `json:"archived,omitempty" doc:"Whether the chat is archived." example:"true"`
	Muted    *bool    `json:"muted,omitempty" doc:"Whether the chat is muted." example:"true"`
	Label    *string  `json:"label,omitempty" minLength:"1" maxLength:"100" doc:"The name of a label that the phone puts on the chat. If there is no such label, the phone makes it." example:"New customer"`
	Labeled  *bool    `json:"labeled,omitempty" doc:"False takes the label off the chat. Ignored without label." example:"true"`
}

func (h sandbox) setChat(ctx context.Context, q *request, in *setChatInput) (*nothing, error) {
	return nil, h.gateway.SandboxPhones.SetChat(ctx, q.caller, in.ID, gateway.SandboxChat{
		ChatID: in.Body.ChatID, Archived: in.Body.Archived, Muted: in.Body.Muted, Label: in.Body.Label,
		Labeled: in.Body.Labeled,
	})
}

type setContactInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body setContact
}

type setContact struct {
	_           struct{} `additionalProperties:"false"`
	PhoneNumber string   `json:"phoneNumber" minLength:"1" doc:"Number of the person." example:"+15551234567"`
	Name        *string  `json:"name" nullable:"true" minLength:"1" maxLength:"256" doc:"What the account calls the person; null removes the person from the address book." example:"Ada Lovelace"`

	Picture *pictureMedia `json:"picture,omitempty" doc:"The picture that the person shows from now on; left out, it stays as it is."`
}

func (h sandbox) setContact(ctx context.Context, q *request, in *setContactInput) (*nothing, error) {
	var name string
	if in.Body.Name != nil {
		name = *in.Body.Name
	}
	return nil, h.gateway.SandboxPhones.SetContact(ctx, q.caller, in.ID, in.Body.PhoneNumber, name, (*gateway.NewMedia)(in.Body.Picture))
}

type faultInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newFault
}

type newFault struct {
	_    struct{} `additionalProperties:"false"`
	Kind string   `json:"kind" enum:"drop,logout,ban,restrict,conflict,silence,limit,unlimit,phone-unseen" doc:"The fault to simulate. limit keeps the account from starting chats for a day; unlimit ends that. phone-unseen is as if the account's phone had not been used for ten days; it ends when the phone writes or reads something." example:"drop"`
}

func (h sandbox) fault(ctx context.Context, q *request, in *faultInput) (*nothing, error) {
	return nil, h.gateway.SandboxPhones.Fault(ctx, q.caller, in.ID, in.Body.Kind)
}

// Phone is what a simulated phone displays.
type Phone struct {
	Data []gateway.PhoneMessage `json:"data" nullable:"false" doc:"Oldest first; the oldest are left out when the response would become larger than 1 MiB."`
}

func (h sandbox) phone(ctx context.Context, q *request, in *deviceInput) (*output[Phone], error) {
	list, err := h.gateway.SandboxPhones.List(ctx, q.caller, in.ID)
	newest := slices.Clone(list)
	slices.Reverse(newest)
	shown := append([]gateway.PhoneMessage{}, newest[:paging.Fit(newest, paging.MaxBytes)]...)
	slices.Reverse(shown)
	return answer(Phone{shown}, err)
}
