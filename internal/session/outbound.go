package session

import (
	"context"
	"errors"

	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// outbound returns a message in the form in which the driver sends it, at each attempt.
func (e *Engine) outbound(ctx context.Context, m postern.Message) (out network.Outbound, err error) {
	out = network.Outbound{NetworkID: m.NetworkID, ChatID: m.ChatID, Content: m.Content, At: m.CreatedAt.Std()}
	if m.Content.LinkPreview != nil {
		if out.Picture, _, err = e.db.Messages.Preview(ctx, m.ID); err != nil {
			return out, err
		}
	}
	if m.Content.Media != nil {
		file, err := e.attachment(ctx, m, 0)
		if err != nil {
			return out, err
		}
		out.Content, out.File = file.describe(m.Content), file.onNetwork()
	}
	if m.ReplyTo != "" {
		quoted, err := e.db.Messages.Get(ctx, m.WorkspaceID, postern.MessageID(m.ReplyTo))
		if postern.ReasonOf(err) == postern.NotFound { // it was removed since
			return out, nil
		}
		out.Quote = quoteOf(quoted)
		return out, err
	}
	if m.About != "" {
		target, ok, err := e.db.Messages.InChat(ctx, m.DeviceID, m.ChatID, m.About)
		if err == nil && !ok {
			err = &network.Rejected{Code: postern.NetworkRejected, Detail: "the message that it is about was removed"}
		}
		if err == nil && target.NeverSent() {
			err = &network.Rejected{Code: postern.NetworkRejected, Detail: "the message that it is about was never sent"}
		}
		out.Target = quoteOf(target)
		if err == nil && m.Content.Kind == postern.KindEdit && target.Content.Media != nil {
			out.File, err = e.captioned(ctx, target, out.Target)
		}
		return out, err
	}
	return out, nil
}

// captioned returns the file of a message whose caption is edited: an edit repeats the whole
// message. It makes target describe the file as it is on the network.
func (e *Engine) captioned(ctx context.Context, m postern.Message, target *network.Quote) (*network.Attachment, error) {
	find := sentElsewhere
	if m.Source == postern.FromAPI {
		find = handedOver
	}
	file, err := find(ctx, e, m)
	if err != nil {
		return nil, err
	}
	target.Content = file.describe(m.Content)
	return file.onNetwork(), nil
}

// handedOver returns what is known of the file of a message from the API.
func handedOver(ctx context.Context, e *Engine, m postern.Message) (*attached, error) {
	file, err := e.attachment(ctx, m, 0)
	if errors.Is(err, errUnprepared) {
		err = errFileForgotten
	}
	return file, err
}

var errFileForgotten = mediaFailed("what the network knows of the file was removed")

// sentElsewhere returns what is known of the file of a message that the owner sent elsewhere.
func sentElsewhere(ctx context.Context, e *Engine, m postern.Message) (*attached, error) {
	row, err := e.db.Media.Get(ctx, m.WorkspaceID, m.Content.Media.ID)
	switch {
	case postern.ReasonOf(err) == postern.NotFound || err == nil && len(row.Source) == 0:
		return nil, errFileForgotten
	case err != nil:
		return nil, err
	}
	ref, err := e.g.Sessions.OpenSource(row.ID, row.Source)
	return &attached{Ref: ref, MIMEType: m.Content.Media.MIMEType}, err
}

// onNetwork returns the file as the driver sends it.
func (a attached) onNetwork() *network.Attachment {
	return &network.Attachment{
		Ref: a.Ref, MIMEType: a.MIMEType, Thumbnail: a.Thumbnail, Waveform: a.Waveform, Animated: a.Animated,
	}
}

// address completes a message with what its chat needs: the timer of the chat, or the contacts who may see a status
// post.
func (l *liveSession) address(out *network.Outbound) (err error) {
	if out.ChatID == postern.StatusChat {
		out.Book = func(ctx context.Context) ([]postern.BookEntry, error) { return l.e.g.Sessions.Book(ctx, l.id) }
		return nil
	}
	out.Timer, err = l.timerOf(out.ChatID)
	return err
}

// timerOf returns the timer of a chat.
func (l *liveSession) timerOf(chat string) (network.Timer, error) {
	l.mu.Lock()
	timers, changes := l.timers, l.timerChanges
	l.mu.Unlock()
	if timers != nil {
		return wireTimer(timers[chat]), nil
	}
	timers, err := l.e.db.Chats.Timers(l.ctx, l.id)
	if err != nil {
		return network.Timer{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if changes == l.timerChanges { // otherwise one was stored since
		l.timers = timers
	}
	return wireTimer(timers[chat]), nil
}

// forgetTimers makes the next message read the timers again.
func (l *liveSession) forgetTimers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timers = nil
	l.timerChanges++
}

func wireTimer(t store.Timer) network.Timer {
	return network.Timer{Seconds: t.Seconds, Since: t.Since.Std()}
}

func quoteOf(m postern.Message) *network.Quote {
	q := &network.Quote{NetworkID: m.NetworkID, FromMe: m.Direction == postern.Outbound, Content: m.Content}
	if q.Author = string(m.From); m.FromLID != "" {
		q.Author = postern.ChatOfLID(m.FromLID)
	}
	return q
}
