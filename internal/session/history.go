package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/history"
	"postern/internal/store/requests"
)

// historyReading is the reading of the history that the phone of a device has offered.
type historyReading struct {
	running bool
	again   bool // a part was offered since the last look
}

// historyOffered notes a part of the phone's history, which is read in the background. If the owner does not want the
// history, only what it says of recent chats is read: without that, the network does not let the account write to people.
func (h *host) historyOffered(ctx context.Context, u network.HistoryOffered) error {
	d, err := h.settings.now(ctx)
	if err != nil || u.Extent == network.OlderHistory && !d.Receive.History {
		return err
	}
	err = h.e.g.Sessions.History().Put(ctx, history.Part{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: h.d.Account, NetworkID: u.NetworkID, Extent: string(u.Extent),
		Ref: u.Ref, NextAt: h.e.db.Now(),
	})
	h.e.mu.Lock()
	l := h.e.live[h.d.ID]
	h.e.mu.Unlock()
	if err == nil && l != nil {
		l.readHistory()
	}
	return err
}

// readHistory reads the parts of the history that wait, one after the other.
func (l *liveSession) readHistory() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.again = true
	if !l.closed && !l.history.running {
		l.history.running = true
		l.work.Go(l.readParts)
	}
}

func (l *liveSession) readParts() {
	for l.historyOfferedAgain() {
		for {
			wait, more := l.readNext()
			if wait > 0 {
				time.AfterFunc(wait, l.readHistory)
			}
			if !more {
				break
			}
		}
	}
}

// historyOfferedAgain reports whether a part was offered since it was last asked. If not, the reading ends.
func (l *liveSession) historyOfferedAgain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.history.again && !l.closed
	l.history.again, l.history.running = false, again
	return again
}

// readNext reads a part, and reports whether there may be another one to read now. If there is one to read later, wait is
// the time until then.
func (l *liveSession) readNext() (wait time.Duration, more bool) {
	d, err := l.settings.now(l.ctx)
	if err != nil {
		return l.retryHistory(err)
	}
	p, ok, err := l.e.g.Sessions.History().Next(l.ctx, l.id, d.Account)
	if err != nil {
		return l.retryHistory(err)
	}
	if !ok {
		return 0, false
	}
	if left := time.Duration(p.NextAt-l.e.db.Now()) * time.Millisecond; left > 0 {
		return left, false
	}
	if err := l.readPart(d, p); err != nil {
		return l.retryHistory(err)
	}
	return 0, true
}

func (l *liveSession) retryHistory(err error) (wait time.Duration, more bool) {
	if l.ctx.Err() != nil {
		return 0, false
	}
	l.e.log.WarnContext(l.ctx, "the history of a phone is read later", "device", l.id, "error", err)
	return storeRetryWait, false
}

// readPart reads one part and records that. An error means that it could not be recorded, or that the connection has ended.
func (l *liveSession) readPart(d postern.Device, p history.Part) error {
	leave, err := l.e.histories.Enter(l.ctx, p.WorkspaceID)
	if err != nil {
		return err
	}
	defer leave()
	r := network.HistoryReader{}
	if l.e.library != nil {
		r.Scratch = l.e.library.ScratchDir()
	}
	if d.Receive.History || p.Extent == string(network.AskedHistory) {
		r.Messages = func(ctx context.Context, list []network.Past) error { return l.recordPast(ctx, d, list) }
	}
	err = survive(l.e.log, func() error { return l.session.ReadHistory(l.ctx, p.Ref, r) })
	table := l.e.g.Sessions.History()
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case errors.Is(err, network.ErrNotConnected):
		return err
	case err == nil:
		return table.Remove(l.ctx, p)
	case errors.Is(err, network.ErrMediaGone), errors.Is(err, network.ErrMediaUseless), errors.Is(err, errPanicked),
		p.Attempts >= maxHistoryTries:
		l.e.log.WarnContext(l.ctx, "a part of the history of a phone cannot be read", "device", l.id, "error", err)
		return table.Remove(l.ctx, p)
	}
	l.e.log.InfoContext(l.ctx, "the history of a phone is read later", "device", l.id, "error", err)
	return table.Postpone(l.ctx, p, l.e.db.Now().Add(min(fetchFirst<<p.Attempts, fetchMax)))
}

// recordPast stores those messages of the history that the owner wants.
func (l *liveSession) recordPast(ctx context.Context, d postern.Device, list []network.Past) error {
	var past []gateway.Past
	for _, p := range list {
		a := inbound(d, p.Inbound)
		if p.FromMe {
			a = echo(d, network.Echo{
				NetworkID: p.NetworkID, ChatID: p.ChatID, To: p.To, Content: p.Content, File: p.File, QuoteOf: p.QuoteOf, At: p.At,
			})
			a.message.Status = p.Status
		}
		if !a.wanted(d.Receive) {
			continue
		}
		past = append(past, gateway.Past{
			Message: a.message, Sender: a.sender, QuoteOf: a.quoteOf, File: a.fileFor(d.Receive),
		})
	}
	if len(past) == 0 {
		return nil
	}
	return l.e.g.Sessions.RecordHistory(ctx, d, past)
}

// askHistory asks the phone for older messages of a chat.
func (l asked) askHistory(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.HistoryInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	return struct{}{}, l.session.AskHistory(ctx, network.HistoryRequest{
		ChatID: in.ChatID, NetworkID: in.NetworkID, FromMe: in.FromMe, At: in.At.Std(), Count: in.Count,
	})
}
