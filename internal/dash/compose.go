package dash

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/media"
	"postern/internal/postern"
)

func (d messages) form(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showForm(w, r, v, http.StatusOK, page.MessageFormView{
		Device: page.Field{Value: r.FormValue("device")}, To: page.Field{Value: r.FormValue("to")},
	})
}

func (d messages) showForm(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.MessageFormView,
) error {
	names, err := d.deviceNames(r.Context(), v, postern.DeviceID(view.Device.Value))
	if err != nil {
		return err
	}
	view.Draft, view.Devices = fresh(view.Draft), choices(names, view.Device.Value)
	return d.write(w, r, status, page.MessageForm(d.frame(r, v, "Send a message", "/messages"), view))
}

// fresh gives a form a new idempotency key unless it has one, so that a form that is posted twice sends one message.
// A refusal gets a new key too, because the old one may belong to another message.
func fresh(draft page.Draft) page.Draft {
	draft.Key, draft.MaxFile = cmp.Or(draft.Key, rand.Text()), strconv.Itoa(postern.MaxMedia)
	return draft
}

func (d messages) send(w http.ResponseWriter, r *http.Request, v visit) error {
	device, to := r.PostFormValue("device"), r.PostFormValue("to")
	m, no, err := d.submit(w, r, &v, gateway.NewMessage{DeviceID: postern.DeviceID(device), To: strings.TrimSpace(to)})
	switch {
	case err != nil:
		return err
	case no != nil:
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, page.MessageFormView{
			Device: page.Field{Value: device, Error: no.wrong["device"]},
			To:     page.Field{Value: to, Error: no.wrong["to"]}, Draft: no.draft,
		})
	}
	return d.done(w, r, "The message was accepted.", messagePath(m.ID))
}

// reply sends a message that was written in a conversation.
func (d chats) reply(w http.ResponseWriter, r *http.Request, v visit) error {
	device, chat := chatIn(r)
	in := gateway.NewMessage{DeviceID: device, To: chat, WhenDisconnected: "queue"}
	if r.PostFormValue("do") == "reply" {
		in.ReplyTo = postern.MessageID(r.PostFormValue("message"))
	}
	_, no, err := messages(d).submit(w, r, &v, in)
	switch {
	case err != nil:
		return err
	case no != nil:
		no.draft.Problem = cmp.Or(no.wrong["to"], no.draft.Problem)
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.ChatView{Draft: no.draft})
	}
	return seeOther(w, r, chatPath(device, chat))
}

// refusal is why a message was not sent, and what its form shows again.
type refusal struct {
	wrong map[string]string // by field
	draft page.Draft
}

// submit sends the message of a form: its text, and its file if there is one. It renews the rights
// of the visit, because a file takes time. A refusal that the person can do something about is no
// error.
func (d messages) submit(
	w http.ResponseWriter, r *http.Request, v *visit, in gateway.NewMessage,
) (m postern.Message, no *refusal, err error) {
	in.Content = postern.Text(written(r))
	file, err := d.attached(w, r, v)
	switch {
	case err != nil:
	case file.ID != "":
		in, err = carrying(in, file, r.PostFormValue("kind"))
	default: // only texts have a preview
		in.LinkPreview = r.PostFormValue("preview") != ""
	}
	if err == nil {
		m, err = d.sendOnce(r.Context(), *v, r.PostFormValue("key"), in, file)
	}
	if wrong, problem, ok := refusedMessage(err); ok {
		no = &refusal{wrong, draftIn(r, file, wrong, problem)}
		if key := r.PostFormValue("key"); postern.ReasonOf(err) == postern.Unavailable && isKey(key) {
			no.draft.Key = key // it may have been accepted, and must not be sent twice
		}
		return m, no, nil
	}
	return m, nil, err
}

// draftIn returns what was entered in a form that was refused.
func draftIn(r *http.Request, file postern.Media, wrong map[string]string, problem string) page.Draft {
	draft := page.Draft{
		Body: page.Field{Value: written(r), Error: wrong["body"]}, Kind: r.PostFormValue("kind"),
		Preview: r.PostFormValue("preview") != "",
		Problem: cmp.Or(wrong["media"], wrong["type"], wrong["replyTo"], problem),
	}
	if file.ID != "" && wrong["media"] == "" { // it need not be sent again
		draft.File = page.Attachment{ID: string(file.ID), Name: file.Filename, Size: bytesOf(file.Size)}
	}
	return draft
}

// attached returns the file of the form: a new one, or that of a form that was refused before. It
// renews the rights of the visit, because a file takes time.
func (d messages) attached(w http.ResponseWriter, r *http.Request, v *visit) (file postern.Media, err error) {
	if file, v.caller, err = d.takeFile(w, r, *v); err != nil || file.ID != "" {
		return file, err
	}
	id := postern.MediaID(r.PostFormValue("media"))
	if id == "" {
		return file, nil
	}
	file, err = d.g.Media.Get(r.Context(), v.caller, id)
	if postern.ReasonOf(err) == postern.NotFound {
		err = postern.Invalid("/media", "the file is gone; choose it again")
	}
	return file, err
}

// carrying returns the message with a file.
func carrying(in gateway.NewMessage, file postern.Media, chosen string) (gateway.NewMessage, error) {
	in.Content.Kind = kindOfFile(file.MIMEType, chosen)
	in.Media = &gateway.NewMedia{ID: file.ID}
	switch in.Content.Kind {
	case postern.KindAudio, postern.KindVoice, postern.KindSticker:
		if in.Content.Text != "" {
			return in, postern.Invalid("/body", "audio and stickers have no caption; remove the text, or send a document")
		}
	default:
	}
	return in, nil
}

// kindOfFile returns the kind of message that was chosen for a file, or else the one in which
// people expect it.
func kindOfFile(mimeType, chosen string) postern.Kind {
	switch kind := postern.Kind(chosen); kind {
	case postern.KindVoice, postern.KindSticker, postern.KindDocument:
		return kind
	default:
	}
	for _, kind := range []postern.Kind{postern.KindImage, postern.KindVideo, postern.KindAudio} {
		if strings.HasPrefix(mimeType, string(kind)+"/") && media.Fits(kind, mimeType) == nil {
			return kind
		}
	}
	return postern.KindDocument
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
// returns the first message, although each brings a copy of the file.
func (d messages) sendOnce(
	ctx context.Context, v visit, key string, in gateway.NewMessage, file postern.Media,
) (m postern.Message, err error) {
	if !isKey(key) {
		return m, postern.Errorf(postern.IdempotencyReused, "the form is no longer valid; reload the page")
	}
	what := []string{
		string(in.DeviceID), in.To, in.Content.Text, string(in.Content.Kind), string(in.ReplyTo), file.SHA256,
		strconv.FormatBool(in.LinkPreview),
	}
	idem := &gateway.Idempotency{
		Method: http.MethodPost, Path: "/messages", Key: key, Hash: sha256.Sum256([]byte(strings.Join(what, "\x00"))),
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

// isKey reports whether a key looks like one that fresh made.
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
	case postern.QuotaExhausted, postern.PayloadTooLarge, postern.NewChatsBlocked, postern.ResourceLimit,
		postern.ActionNotPossible, postern.RateLimited, postern.Unavailable:
		return nil, word(err.Error()) + ".", true
	default:
		return nil, "", false
	}
}
