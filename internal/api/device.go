package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// devices are the operations on devices.
type devices struct {
	gateway *gateway.Gateway
}

type deviceInput struct {
	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

type newDevice struct {
	_        struct{}          `additionalProperties:"false"`
	Name     string            `json:"name" minLength:"1" maxLength:"200" doc:"A display name." example:"Support"`
	Metadata map[string]string `json:"metadata,omitempty" doc:"Your own labels: at most 50, each with at most 500 bytes."`
}

func (h devices) list(ctx context.Context, q *request, in *struct{ Paging }) (*output[List[postern.Device]], error) {
	return answerList(h.gateway.Devices.List(ctx, q.caller, in.page()))
}

func (h devices) create(
	ctx context.Context, q *request, in *struct{ Body newDevice },
) (*made[postern.Device], error) {
	c, err := h.gateway.Devices.Create(ctx, q.caller, gateway.NewDevice{
		Name: in.Body.Name, Metadata: in.Body.Metadata,
	}, q.idem)
	return answerMade(c, err, func(d postern.Device) string { return "/v1/devices/" + string(d.ID) })
}

func (h devices) get(ctx context.Context, q *request, in *deviceInput) (*output[postern.Device], error) {
	return answer(h.gateway.Devices.Get(ctx, q.caller, in.ID))
}

type changeInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body deviceChange
}

// deviceChange is a merge patch: members that are left out stay, null resets one.
type deviceChange struct {
	_        struct{}                          `additionalProperties:"false"`
	Name     string                            `json:"name,omitempty" minLength:"1" maxLength:"200" doc:"A display name." example:"Support"`
	Metadata member[map[string]member[string]] `json:"metadata,omitzero" doc:"Labels to set. A label that is null is removed; if metadata itself is null, all labels are removed. At most 50, each with at most 500 bytes."`
	Pace     member[paceChange]                `json:"pace,omitzero" doc:"Sending rate; null resets it to the operator's default."`
	Receive  member[receiveChange]             `json:"receive,omitzero" doc:"Which kinds of chats are stored, and whether calls are; null resets it to direct, groups and calls."`
	ProxyURL member[string]                    `json:"proxyUrl,omitzero" doc:"Proxy for the connection to the network: an http, https or socks5 URL with its credentials. It is never shown. null removes it." example:"socks5://user:secret@proxy.example.com:1080"`
}

type paceChange struct {
	_                 struct{}             `additionalProperties:"false"`
	PerMinute         member[postern.Rate] `json:"perMinute,omitzero" minimum:"1" maximum:"1000" doc:"Messages in any 60 seconds; null resets it to the operator's default." example:"30"`
	NewChatsPerMinute member[postern.Rate] `json:"newChatsPerMinute,omitzero" minimum:"1" maximum:"1000" doc:"How many of these may start a new chat; null resets it to the operator's default." example:"5"`
}

type receiveChange struct {
	_        struct{}                  `additionalProperties:"false"`
	Direct   member[bool]              `json:"direct,omitzero" doc:"Chats with one person." example:"true"`
	Groups   member[bool]              `json:"groups,omitzero" doc:"Groups." example:"true"`
	Channels member[bool]              `json:"channels,omitzero" doc:"Channels that the account follows." example:"false"`
	Status   member[bool]              `json:"status,omitzero" doc:"Status posts of contacts, which last for a day." example:"false"`
	Calls    member[bool]              `json:"calls,omitzero" doc:"Calls of contacts." example:"true"`
	History  member[bool]              `json:"history,omitzero" doc:"What the phone had before the account was linked." example:"true"`
	Media    member[postern.MediaMode] `json:"media,omitzero" enum:"eager,lazy,off" doc:"When the files of received messages are fetched; null resets it to eager." example:"lazy"`
	ViewOnce member[bool]              `json:"viewOnce,omitzero" doc:"The files of messages that can be viewed once." example:"false"`
}

func (h devices) update(ctx context.Context, q *request, in *changeInput) (*output[postern.Device], error) {
	b := in.Body
	return answer(h.gateway.Devices.Change(ctx, q.caller, in.ID, gateway.DeviceChange{
		Name: b.Name, ProxyURL: b.ProxyURL.change(), Metadata: changed(b.Metadata, labelChanges),
		Pace: changed(b.Pace, func(p paceChange) gateway.PaceChange {
			return gateway.PaceChange{PerMinute: p.PerMinute.change(), NewChatsPerMinute: p.NewChatsPerMinute.change()}
		}),
		Receive: changed(b.Receive, func(r receiveChange) gateway.ReceiveChange {
			return gateway.ReceiveChange{
				Direct: r.Direct.change(), Groups: r.Groups.change(), Channels: r.Channels.change(),
				Status: r.Status.change(), Calls: r.Calls.change(), ViewOnce: r.ViewOnce.change(),
				History: r.History.change(), Media: r.Media.change(),
			}
		}),
	}))
}

func labelChanges(labels map[string]member[string]) map[string]gateway.Change[string] {
	list := map[string]gateway.Change[string]{}
	for name, m := range labels {
		list[name] = m.change()
	}
	return list
}

func (h devices) delete(ctx context.Context, q *request, in *deviceInput) (*nothing, error) {
	return nil, h.gateway.Devices.Delete(ctx, q.caller, in.ID)
}

func (h devices) pause(ctx context.Context, q *request, in *unlinkInput) (*output[postern.Device], error) {
	return answer(h.gateway.Devices.Pause(ctx, q.caller, in.ID))
}

func (h devices) resume(ctx context.Context, q *request, in *unlinkInput) (*output[postern.Device], error) {
	return answer(h.gateway.Devices.Resume(ctx, q.caller, in.ID))
}

type unlinkInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (h devices) unlink(ctx context.Context, q *request, in *unlinkInput) (*output[postern.Device], error) {
	return answer(h.gateway.Devices.Unlink(ctx, q.caller, in.ID))
}

func (h devices) profile(ctx context.Context, q *request, in *deviceInput) (*output[postern.Profile], error) {
	return answer(h.gateway.Devices.Profile(ctx, q.caller, in.ID))
}

type profileInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body profileChange
}

// profileChange says what changes in a profile.
type profileChange struct {
	_     struct{}             `additionalProperties:"false"`
	Name  *string              `json:"name,omitempty" minLength:"1" maxLength:"25" doc:"The account's own name." example:"Acme"`
	About *string              `json:"about,omitempty" maxLength:"139" doc:"What the account says about itself; \"\" removes it." example:"We answer from 9 to 5"`
	Media member[profileMedia] `json:"media,omitzero" doc:"The picture: a file that was uploaded or received, or the bytes themselves. null removes it."`
}

// profileMedia has the members of both forms of a picture, because a choice between forms cannot be null.
type profileMedia struct {
	_        struct{}        `additionalProperties:"false"`
	ID       postern.MediaID `json:"id,omitempty" minLength:"1" doc:"Id of a file that was uploaded, or that came with a message. Give either id, or data and mimeType." example:"med_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Data     []byte          `json:"data,omitempty" minLength:"1" doc:"The bytes of the file in base64. The limit of 1 MiB for a body leaves about 700 kB; upload larger files." example:"SGVsbG8K"`
	MIMEType string          `json:"mimeType,omitempty" minLength:"1" maxLength:"255" doc:"Type of the file. The server finds the type in the bytes, and uses that one." example:"image/png"`
}

func (m profileMedia) check() error {
	if (m.ID == "") == (m.Data == nil) || (m.Data == nil) != (m.MIMEType == "") {
		return postern.Invalid("/media", "give either id, or data and mimeType")
	}
	return nil
}

func (h devices) setProfile(ctx context.Context, q *request, in *profileInput) (*output[postern.Profile], error) {
	b := in.Body
	if m := b.Media.value; m != nil {
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	return answer(h.gateway.Devices.ChangeProfile(ctx, q.caller, in.ID, gateway.ProfileChange{
		Name: b.Name, About: b.About, Media: changed(b.Media, func(m profileMedia) gateway.NewMedia {
			return gateway.NewMedia{ID: m.ID, Data: m.Data, MIMEType: m.MIMEType}
		}),
	}))
}
