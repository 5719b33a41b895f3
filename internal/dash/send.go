package dash

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

func (d *dash) newMessage(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showMessageForm(w, r, v, http.StatusOK, page.MessageFormView{Device: page.Field{Value: r.FormValue("device")}, To: page.Field{Value: r.FormValue("to")}})
}

// showMessageForm shows the form with a key of its own: however often it is posted,
// one message is sent. A refusal leaves nothing under a key, but a new one is made
// each time, for the case that it was another message that had it.
func (d *dash) showMessageForm(w http.ResponseWriter, r *http.Request, v visit, status int, view page.MessageFormView) error {
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view.Key, view.Devices = rand.Text(), choices(names, "")
	return d.show(w, r, status, page.MessageForm(d.frame(r, v, "Send a message", "/messages"), view))
}

func (d *dash) sendMessage(w http.ResponseWriter, r *http.Request, v visit) error {
	in := gateway.NewMessage{DeviceID: postern.DeviceID(r.PostFormValue("device")), To: tidied(r.PostFormValue("to")), Content: postern.Text(written(r))}
	m, err := d.sendOnce(r.Context(), v, r.PostFormValue("key"), in)
	if wrong, problem, ok := refusedMessage(err); ok {
		return d.showMessageForm(w, r, v, http.StatusUnprocessableEntity, page.MessageFormView{
			Device: page.Field{Value: string(in.DeviceID), Error: wrong["device"]}, To: page.Field{Value: r.PostFormValue("to"), Error: wrong["to"]},
			Body: page.Field{Value: in.Content.Text, Error: wrong["body"]}, Problem: problem,
		})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The message is accepted.", messagePath(m.ID))
}

// answerChat sends what somebody has written into a conversation.
func (d *dash) answerChat(w http.ResponseWriter, r *http.Request, v visit) error {
	device, chat := chatIn(r)
	in := gateway.NewMessage{DeviceID: device, To: chat, Content: postern.Text(written(r))}
	_, err := d.sendOnce(r.Context(), v, r.PostFormValue("key"), in)
	if wrong, problem, ok := refusedMessage(err); ok {
		if wrong["to"] != "" {
			problem = wrong["to"]
		}
		return d.showChat(w, r, v, http.StatusUnprocessableEntity, page.ChatView{Body: page.Field{Value: in.Content.Text, Error: wrong["body"]}, Problem: problem})
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, chatPath(device, chat))
}

// written is the text of the form. Forms end lines with CR LF (HTML, 4.10.21.4).
func written(r *http.Request) string {
	return strings.ReplaceAll(r.PostFormValue("body"), "\r\n", "\n")
}

// A second post waits for the first, which takes no longer than a commit.
const (
	sendTries = 50
	sendPause = 50 * time.Millisecond
)

// sendOnce sends a message under the key of its form: a double click and a reload
// come to the message that is there.
func (d *dash) sendOnce(ctx context.Context, v visit, key string, in gateway.NewMessage) (m postern.Message, err error) {
	if !isKey(key) {
		return m, postern.Errorf(postern.IdempotencyReused, "the form is not one of this page")
	}
	idem := &gateway.Idempotency{Method: http.MethodPost, Path: "/messages", Key: key, Hash: sha256.Sum256([]byte(string(in.DeviceID) + "\x00" + in.To + "\x00" + in.Content.Text))}
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
	return m, postern.Errorf(postern.Unavailable, "the message is still being accepted; look for it among the messages")
}

// isKey tells whether a key is one that a form was given, by its form.
func isKey(key string) bool {
	return len(key) == len(rand.Text()) && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// refusedMessage says what is wrong with a message that can be mended in its form.
func refusedMessage(err error) (wrong map[string]string, problem string, ok bool) {
	if wrong, ok = faults(err); ok {
		if wrong["to"] != "" {
			wrong["to"] = "Write a number with + and the country's code."
		}
		return wrong, "Nothing was sent.", true
	}
	switch reason := postern.ReasonOf(err); reason {
	case postern.DeviceNotConnected:
		return nil, "The device is not connected. Nothing was sent.", true
	case postern.IdempotencyReused:
		return nil, "Another message was sent from this form before. Press Send once more to send this one too.", true
	case postern.QuotaExhausted, postern.PayloadTooLarge:
		return nil, word(err.Error()) + ".", true
	default:
		return nil, "", false
	}
}
