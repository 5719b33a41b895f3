package whatsapp

import (
	"context"
	"sync"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// RequestMedia asks the account's phone to upload the file of a received message again. Only
// the session that asked can read the answer.
func (s *session) RequestMedia(ctx context.Context, m network.MediaRequest) error {
	f, ok := content.ParseRef(m.Ref)
	if !ok || f.Plain { // phones answer with the key of a file
		return network.ErrMediaUseless
	}
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	defer c.calls.Leave()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	chat, err := c.recipient(ctx, m.ChatID)
	if err != nil {
		return err
	}
	s.requested.add(m.NetworkID, f)
	info := &types.MessageInfo{ID: m.NetworkID, MessageSource: types.MessageSource{
		Chat: chat, Sender: c.member(ctx, chat, &network.Quote{FromMe: m.FromMe, Author: m.Author}), IsFromMe: m.FromMe,
		IsGroup: chat.Server == types.GroupServer || chat == types.StatusBroadcastJID, // only then is the sender named
	}}
	if err := c.cli.SendMediaRetryReceipt(ctx, info, f.Key); err != nil {
		return unsent("ask for a file", err)
	}
	return nil
}

// offered reports the phone's answer to a request for a file.
func (v *run) offered(ctx context.Context, evt *events.MediaRetry) bool {
	f, ok := v.session.requested.get(evt.MessageID)
	if !ok {
		return true // asked in an earlier session: the host asks again
	}
	offer := network.Offered{NetworkID: evt.MessageID}
	if evt.Error == nil {
		answer, err := whatsmeow.DecryptMediaRetryNotification(evt, f.Key)
		if err != nil {
			return true // not from the phone
		}
		path := answer.GetDirectPath()
		if answer.GetResult() == waMmsRetry.MediaRetryNotification_SUCCESS && content.IsPath(path) {
			f.Path = path
			offer.Ref = f.Ref()
		}
	}
	if !v.stores(ctx, offer) {
		return false
	}
	v.session.requested.remove(evt.MessageID)
	return true
}

// requests are the files for which the phone was asked, by the id of their message.
type requests struct {
	mu    sync.Mutex // guards the field below
	files map[string]content.File
}

// add remembers a file. If there are too many, it forgets any other.
func (r *requests) add(id string, f content.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = make(map[string]content.File)
	}
	for other := range r.files {
		if len(r.files) < maxRequested {
			break
		}
		delete(r.files, other)
	}
	r.files[id] = f
}

func (r *requests) get(id string) (content.File, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.files[id]
	return f, ok
}

func (r *requests) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, id)
}
