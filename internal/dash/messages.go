package dash

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const (
	devicesShown = 200  // to choose from, and called by their names
	gistLength   = 200  // characters of a text that a list shows
	bubbleLength = 2000 // and a conversation
)

// messageRoutes ask for the scopes that the API asks for (api/scopes.go), and for
// that of devices where their names are shown.
func (d *dash) messageRoutes() {
	const read, write, devices = postern.MessagesRead, postern.MessagesWrite, postern.DevicesRead
	d.ours("GET /messages", d.messages, read, devices)
	d.ours("GET /messages.csv", d.exportMessages, read)
	d.ours("GET /messages/new", d.newMessage, write, devices)
	d.ours("POST /messages", d.sendMessage, write, devices)
	d.ours("GET /messages/{id}", d.message, read, devices)
	d.ours("GET /messages/chats", d.chats, read, devices)
	d.ours("GET /messages/chats/{device}/{chat}", d.chat, read, devices)
	d.ours("POST /messages/chats/{device}/{chat}", d.answerChat, write, read, devices)
}

// ours serves a page of what the workspace has. A member may see all of that, so
// that what must not be used is another workspace's: it is not there.
func (d *dash) ours(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope) {
	d.member(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		err := serve(w, r, v)
		if reason := postern.ReasonOf(err); reason == postern.ResourceNotAllowed || reason == postern.NotFound {
			return postern.Errorf(postern.NotFound, "there is no such message or device, or it is gone")
		}
		return err
	}, scopes...)
}

func messagePath(id postern.MessageID) string { return "/messages/" + url.PathEscape(string(id)) }

func (d *dash) messages(w http.ResponseWriter, r *http.Request, v visit) error {
	q, err := search(r)
	view := page.MessagesView{
		Find: page.Field{Value: r.FormValue("q")}, Device: string(q.DeviceID), Direction: q.Direction, Status: q.Status, ExportRows: number(exportRows),
		Send: v.may(postern.MessagesWrite),
	}
	if id, is := messageID(view.Find.Value); is {
		m, missing := d.g.Messages.Get(r.Context(), v.caller, id)
		switch reason := postern.ReasonOf(missing); {
		case missing == nil:
			return seeOther(w, r, messagePath(m.ID))
		case reason != postern.NotFound && reason != postern.ResourceNotAllowed:
			return missing
		}
		err = postern.Invalid("/q", "there is no such message")
	}
	return d.showMessages(w, r, v, q, view, err)
}

// showMessages shows what is found, or what is wrong with what was looked for.
func (d *dash) showMessages(w http.ResponseWriter, r *http.Request, v visit, q gateway.MessageSearch, view page.MessagesView, err error) error {
	names, err2 := d.deviceNames(r.Context(), v)
	if err2 != nil {
		return err2
	}
	view.Devices = append([]page.Choice{{Label: "All"}}, choices(names, view.Device)...)
	if wrong, ok := faults(err); ok {
		view.Find.Error = wrong["q"]
		return d.show(w, r, http.StatusUnprocessableEntity, page.Messages(d.frame(r, v, "Messages", "/messages"), view))
	}
	list, err := d.g.Messages.Search(r.Context(), v.caller, q)
	if err != nil {
		return err
	}
	for _, m := range list.Data {
		view.Messages = append(view.Messages, messageOf(m, names, gistLength))
	}
	asked := url.Values{"q": {view.Find.Value}, "device": {view.Device}, "direction": {view.Direction}, "status": {view.Status}}
	view.Export = "/messages.csv?" + asked.Encode()
	if list.Next != "" {
		asked.Set("after", list.Next)
		view.More = "/messages?" + asked.Encode()
	}
	return d.show(w, r, http.StatusOK, page.Messages(d.frame(r, v, "Messages", "/messages"), view))
}

// search reads what is looked for; an unknown state or direction asks for all.
func search(r *http.Request) (q gateway.MessageSearch, err error) {
	q = gateway.MessageSearch{DeviceID: postern.DeviceID(r.FormValue("device")), Page: paging.Page{Cursor: r.FormValue("after")}}
	switch s := postern.MessageStatus(r.FormValue("status")); s {
	case postern.Queued, postern.Sending, postern.Sent, postern.Delivered, postern.Read, postern.Failed, postern.Expired, postern.Received:
		q.Status = string(s)
	}
	switch s := r.FormValue("direction"); s {
	case postern.Inbound, postern.Outbound:
		q.Direction = s
	}
	if find := tidied(r.FormValue("q")); find != "" {
		var ok bool
		if q.ChatID, ok = gateway.ChatOf(find); !ok {
			err = postern.Invalid("/q", "write a number with + and the country's code, or the id of a message")
		}
	}
	return q, err
}

// messageID is the id in what somebody has pasted.
func messageID(s string) (id postern.MessageID, ok bool) {
	s = strings.TrimSpace(s)
	return postern.MessageID(s), strings.HasPrefix(s, "msg_")
}

// tidied takes out of a number what people write between its digits.
func tidied(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\u00a0\u202f-()", r) {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
}

// deviceNames are the names of devices by their ids, if the caller may see those.
func (d *dash) deviceNames(ctx context.Context, v visit) (map[postern.DeviceID]string, error) {
	names := map[postern.DeviceID]string{}
	if !v.may(postern.DevicesRead) {
		return names, nil
	}
	list, err := d.g.Devices.List(ctx, v.caller, paging.Page{Limit: devicesShown})
	for _, one := range list.Data {
		names[one.ID] = one.Name
	}
	return names, err
}

// choices are the devices to choose from, oldest first, and the chosen one in any
// case.
func choices(names map[postern.DeviceID]string, chosen string) (list []page.Choice) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		list = append(list, page.Choice{Value: string(id), Label: names[id]})
	}
	if _, known := names[postern.DeviceID(chosen)]; !known && chosen != "" {
		list = append(list, page.Choice{Value: chosen, Label: chosen})
	}
	return list
}

func messageOf(m postern.Message, names map[postern.DeviceID]string, length int) page.Message {
	p := page.Message{
		ID: string(m.ID), DeviceID: string(m.DeviceID), Device: names[m.DeviceID], Chat: m.ChatID, Name: m.FromName, From: string(m.From),
		Out: m.Direction == postern.Outbound, Type: string(m.Content.Kind), Status: string(m.Status), At: m.CreatedAt.Std(),
	}
	if p.Device == "" {
		p.Device = p.DeviceID
	}
	p.Body, p.Cut = begun(m.Content.Text, length)
	return p
}

// begun is the beginning of a text, so that a page of long ones stays small.
func begun(s string, length int) (text string, cut bool) {
	n := 0
	for i := range s {
		if n++; n > length {
			return s[:i] + "…", true
		}
	}
	return s, false
}
