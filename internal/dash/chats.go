package dash

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func (d *dash) chats(w http.ResponseWriter, r *http.Request, v visit) error {
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view := page.ChatsView{Device: r.FormValue("device"), Devices: choices(names, r.FormValue("device")), Send: v.may(postern.MessagesWrite)}
	if view.Device == "" && len(view.Devices) > 0 {
		view.Device = view.Devices[0].Value
	}
	if view.Device != "" {
		if err := d.listChats(r, v, names, &view); err != nil {
			return err
		}
	}
	return d.show(w, r, http.StatusOK, page.Chats(d.frame(r, v, "Conversations", "/messages"), view))
}

// listChats adds the chats of the chosen device.
func (d *dash) listChats(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ChatsView) error {
	after := r.FormValue("after")
	list, err := d.g.Messages.Chats(r.Context(), v.caller, postern.DeviceID(view.Device), paging.Page{Cursor: after})
	if err != nil {
		return err
	}
	for _, c := range list.Data {
		m := messageOf(c.Newest, names, gistLength)
		m.Name = c.Name
		view.Chats = append(view.Chats, m)
	}
	asked := url.Values{"device": {view.Device}}
	if after == "" {
		view.Live = "/messages/chats?" + asked.Encode()
	}
	if list.Next != "" {
		asked.Set("after", list.Next)
		view.More = "/messages/chats?" + asked.Encode()
	}
	return nil
}

// chatIn is the conversation of the path.
func chatIn(r *http.Request) (device postern.DeviceID, chat string) {
	return postern.DeviceID(r.PathValue("device")), r.PathValue("chat")
}

func chatPath(device postern.DeviceID, chat string) string {
	return "/messages/chats/" + url.PathEscape(string(device)) + "/" + url.PathEscape(chat)
}

func (d *dash) chat(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showChat(w, r, v, http.StatusOK, page.ChatView{})
}

// showChat shows a conversation, with what a form has come to.
func (d *dash) showChat(w http.ResponseWriter, r *http.Request, v visit, status int, view page.ChatView) error {
	device, chat := chatIn(r)
	one, err := d.g.Devices.Get(r.Context(), v.caller, device)
	if err != nil {
		return err
	}
	after := r.FormValue("after")
	list, err := d.g.Messages.Search(r.Context(), v.caller, gateway.MessageSearch{DeviceID: device, ChatID: chat, Page: paging.Page{Cursor: after}})
	if err != nil {
		return err
	}
	_, reachable := gateway.ChatOf(chat)
	if len(list.Data) == 0 && !reachable {
		return postern.Errorf(postern.NotFound, "there is no such conversation")
	}
	view.Device, view.DeviceName, view.Chat, view.Newest = string(device), one.Name, chat, after == ""
	view.Send, view.Key = reachable && v.may(postern.MessagesWrite), rand.Text()
	for _, m := range slices.Backward(list.Data) {
		shown := messageOf(m, nil, bubbleLength)
		view.Messages = append(view.Messages, shown)
		if !shown.Out && shown.Name != "" {
			view.Name = shown.Name
		}
	}
	if list.Next != "" {
		view.Older = chatPath(device, chat) + "?after=" + url.QueryEscape(list.Next)
	}
	return d.show(w, r, status, page.ChatPage(d.frame(r, v, "Conversation", "/messages"), view))
}
