package dash

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func (d chats) list(w http.ResponseWriter, r *http.Request, v visit) error {
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view := page.ChatsView{
		Device: r.FormValue("device"), Devices: choices(names, r.FormValue("device")),
		Send: v.may(postern.MessagesWrite),
	}
	if view.Device == "" && len(view.Devices) > 0 {
		view.Device = view.Devices[0].Value
	}
	if view.Device != "" {
		if err := d.fill(r, v, names, &view); err != nil {
			return err
		}
	}
	return d.write(w, r, http.StatusOK, page.Chats(d.frame(r, v, "Conversations", "/messages"), view))
}

// fill adds the chats of the chosen device to the view.
func (d chats) fill(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ChatsView) error {
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

// chatIn returns the device and the chat in the path.
func chatIn(r *http.Request) (device postern.DeviceID, chat string) {
	return postern.DeviceID(r.PathValue("device")), r.PathValue("chat")
}

func chatPath(device postern.DeviceID, chat string) string {
	return "/messages/chats/" + url.PathEscape(string(device)) + "/" + url.PathEscape(chat)
}

func (d chats) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, page.ChatView{})
}

// showAs shows a conversation, with the outcome of a form if there was one.
func (d chats) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.ChatView) error {
	device, chat := chatIn(r)
	one, err := d.g.Devices.Get(r.Context(), v.caller, device)
	if err != nil {
		return err
	}
	after := r.FormValue("after")
	list, err := d.g.Messages.List(r.Context(), v.caller, gateway.MessageQuery{
		DeviceID: device, ChatID: chat, Page: paging.Page{Cursor: after},
	})
	if err != nil {
		return err
	}
	reachable := isReachable(chat)
	if len(list.Data) == 0 && !reachable {
		return postern.Errorf(postern.NotFound, "this conversation does not exist")
	}
	view.Device, view.DeviceName, view.Chat, view.Newest = string(device), one.Name, chat, after == ""
	view.Send, view.Key = reachable && v.may(postern.MessagesWrite), rand.Text()
	for _, m := range slices.Backward(list.Data) {
		shown := messageOf(m, nil, bubbleLength)
		if shown.Quote, err = d.quoteOf(r.Context(), v, m, list.Data); err != nil {
			return err
		}
		view.Messages = append(view.Messages, shown)
		if !shown.Out && shown.Name != "" {
			view.Name = shown.Name
		}
	}
	if list.Next != "" {
		view.Older = chatPath(device, chat) + "?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, status, page.ChatPage(d.frame(r, v, "Conversation", "/messages"), view))
}

func (d messages) form(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showForm(w, r, v, http.StatusOK, page.MessageFormView{
		Device: page.Field{Value: r.FormValue("device")}, To: page.Field{Value: r.FormValue("to")},
	})
}

// showForm shows the form with a new idempotency key, so that a form that is posted twice sends
// one message. Each refusal gets a new key too, because the old one may belong to another
// message.
func (d messages) showForm(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.MessageFormView,
) error {
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view.Key, view.Devices = rand.Text(), choices(names, "")
	return d.write(w, r, status, page.MessageForm(d.frame(r, v, "Send a message", "/messages"), view))
}

func (d messages) send(w http.ResponseWriter, r *http.Request, v visit) error {
	in := gateway.NewMessage{
		DeviceID: postern.DeviceID(r.PostFormValue("device")), To: strings.TrimSpace(r.PostFormValue("to")),
		Content: postern.Text(written(r)),
	}
	m, err := d.sendOnce(r.Context(), v, r.PostFormValue("key"), in)
	if wrong, problem, ok := refusedMessage(err); ok {
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, page.MessageFormView{
			Device: page.Field{Value: string(in.DeviceID), Error: wrong["device"]},
			To:     page.Field{Value: r.PostFormValue("to"), Error: wrong["to"]},
			Body:   page.Field{Value: in.Content.Text, Error: wrong["body"]}, Problem: problem,
		})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The message was accepted.", messagePath(m.ID))
}

// reply sends a message that was written in a conversation.
func (d chats) reply(w http.ResponseWriter, r *http.Request, v visit) error {
	device, chat := chatIn(r)
	in := gateway.NewMessage{DeviceID: device, To: chat, Content: postern.Text(written(r))}
	_, err := messages{d.core}.sendOnce(r.Context(), v, r.PostFormValue("key"), in)
	if wrong, problem, ok := refusedMessage(err); ok {
		if wrong["to"] != "" {
			problem = wrong["to"]
		}
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.ChatView{
			Body: page.Field{Value: in.Content.Text, Error: wrong["body"]}, Problem: problem,
		})
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, chatPath(device, chat))
}

// isReachable reports whether messages can be sent to a chat.
func isReachable(chat string) bool {
	id, err := postern.ParseChat(chat)
	return err == nil && postern.IsDirect(id)
}

// written returns the text of the form with LF line ends. Forms use CR LF (HTML, 4.10.21.4).
func written(r *http.Request) string {
	return strings.ReplaceAll(r.PostFormValue("body"), "\r\n", "\n")
}

// A second post waits for the first, which takes as long as a commit.
const (
	sendTries = 50
	sendPause = 50 * time.Millisecond
)

// sendOnce sends a message with the idempotency key of its form: a double click or a reload
// returns the first message.
func (d messages) sendOnce(
	ctx context.Context, v visit, key string, in gateway.NewMessage,
) (m postern.Message, err error) {
	if !isKey(key) {
		return m, postern.Errorf(postern.IdempotencyReused, "the form is no longer valid; reload the page")
	}
	idem := &gateway.Idempotency{
		Method: http.MethodPost, Path: "/messages", Key: key,
		Hash: sha256.Sum256([]byte(string(in.DeviceID) + "\x00" + in.To + "\x00" + in.Content.Text)),
	}
	for range sendTries {
		made, err := d.g.Messages.Send(ctx, v.caller, in, idem)
		if postern.ReasonOf(err) != postern.IdempotencyRunning {
			return made.Value, err
		}
		select {
		case <-time.After(sendPause):
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
	return m, postern.Errorf(postern.Unavailable,
		"the message is still being accepted; look for it on the Messages page")
}

// isKey reports whether a key looks like one that showForm made.
func isKey(key string) bool {
	return len(key) == len(rand.Text()) && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// refusedMessage explains a refusal that the user can fix in the form.
func refusedMessage(err error) (wrong map[string]string, problem string, ok bool) {
	if wrong, ok = faults(err); ok {
		return wrong, "The message was not sent.", true
	}
	switch reason := postern.ReasonOf(err); reason {
	case postern.DeviceNotConnected:
		return nil, "The device is not connected. The message was not sent.", true
	case postern.IdempotencyReused:
		return nil, "A different message was already sent from this form. Press Send again to send this one too.", true
	case postern.QuotaExhausted, postern.PayloadTooLarge:
		return nil, word(err.Error()) + ".", true
	default:
		return nil, "", false
	}
}
