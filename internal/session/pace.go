package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// window counts what was sent lately.
type window struct{ sent []time.Time } // oldest first

// wait returns how long to wait before n more may be sent, of which at most limit may be sent within a time; limit 0
// means no limit. n is at most the limit.
func (w *window) wait(n int, limit postern.Rate, within time.Duration, now time.Time) time.Duration {
	for len(w.sent) > 0 && now.Sub(w.sent[0]) >= within {
		w.sent = w.sent[1:]
	}
	over := len(w.sent) + n - int(limit)
	if limit == 0 || over <= 0 {
		return 0
	}
	return w.sent[over-1].Add(within).Sub(now)
}

// pacer remembers the recent sends of a device. It outlives the device's
// connections, but not the process.
type pacer struct {
	mu         sync.Mutex
	all, fresh window
	within     time.Duration // in which those of fresh count
}

// takePacer returns the pacer of a device for one connection. The caller must pass it
// to keepPacer when nothing sends any more.
func (e *Engine) takePacer(id postern.DeviceID) *pacer {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pacers[id]
	if p == nil {
		return &pacer{}
	}
	delete(e.pacers, id)
	return p
}

// keepPacer stores a pacer for the next connection of its device.
func (e *Engine) keepPacer(id postern.DeviceID, p *pacer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pacers[id] = p
}

// forgetPacers removes the pacers that no longer delay anything.
func (e *Engine) forgetPacers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(e.pacers, func(_ postern.DeviceID, p *pacer) bool { return p.rested(now) })
}

// rested reports whether nothing that still counts was sent.
func (p *pacer) rested(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.wait(0, 0, time.Minute, now)
	p.fresh.wait(0, 0, p.within, now)
	return len(p.all.sent)+len(p.fresh.sent) == 0
}

// paceNow is a device's pace, and the time in which it may start as many chats as the pace allows per minute. That is
// longer than a minute after the network has kept the account from starting chats.
type paceNow struct {
	postern.Pace
	within time.Duration
}

// take counts a message, or returns how long it has to wait.
func (p *pacer) take(pace paceNow, fresh bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait := p.all.wait(1, pace.PerMinute, time.Minute, now)
	if p.within = pace.within; fresh {
		wait = max(wait, p.fresh.wait(1, pace.NewChatsPerMinute, pace.within, now))
	}
	if wait > 0 {
		return wait
	}
	p.all.sent = append(p.all.sent, now)
	if fresh {
		p.fresh.sent = append(p.fresh.sent, now)
	}
	return 0
}

// takeFresh counts n numbers that are checked as new chats, or returns how long they have to wait. n is at most what the
// pace allows in a minute.
func (p *pacer) takeFresh(pace paceNow, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.within = pace.within
	if wait := p.fresh.wait(n, pace.NewChatsPerMinute, pace.within, now); wait > 0 {
		return wait
	}
	for range n {
		p.fresh.sent = append(p.fresh.sent, now)
	}
	return 0
}

// sendPaced first sends the messages to which no pace applies: repetitions, which
// were counted before, and replies. Then it sends as many others as the pace
// allows: those in known chats and in groups, then one that starts a chat, which makes that chat
// a known one.
func (l *liveSession) sendPaced(pace paceNow) (tried int, err error) {
	tried, err = l.sendFree()
	if err != nil || l.stopped() {
		return tried, err
	}
	n, wait, err := l.sendKind(store.Known, sendBatch,
		func(store.QueuedMessage) time.Duration { return l.pacer.take(pace, false) })
	if tried += n; err != nil || l.stopped() {
		return tried, err
	}
	n, later, err := l.sendKind(store.Fresh, 1,
		func(store.QueuedMessage) time.Duration { return l.pacer.take(pace, true) })
	l.lookAgain(wait, later)
	return tried + n, err
}

// sendFree sends the messages to which no pace applies.
func (l *liveSession) sendFree() (tried int, err error) {
	free := func(store.QueuedMessage) time.Duration { return 0 }
	if err := l.forget(); err != nil {
		return 0, err
	}
	repeats, err := l.e.db.Outbox.Repeating(l.ctx, l.id, sendBatch+len(l.retry)+l.behind)
	if err != nil {
		return 0, err
	}
	tried, _, err = l.sendSome(repeats, &turns{}, free)
	if err != nil || l.stopped() {
		return tried, err
	}
	n, _, err := l.sendKind(store.Answering, sendBatch, free)
	return tried + n, err
}

// sendKind sends up to limit messages of a kind.
func (l *liveSession) sendKind(
	kind store.ChatKind, limit int, hold func(store.QueuedMessage) time.Duration,
) (tried int, wait time.Duration, err error) {
	since := postern.TimeOf(time.Now().Add(-replyTime))
	waiting, err := l.e.db.Outbox.NextOf(l.ctx, l.id, kind, since, l.held, limit+l.behind)
	if err != nil {
		return 0, 0, err
	}
	turns := l.turns[kind]
	return l.sendSome(turns.order(waiting, limit+l.behind), turns, hold)
}

// answered starts the sender again when somebody has written for whom a message waits: no pace applies to it any more.
func (l *liveSession) answered(chat string) {
	if !l.pacing.Load() || !postern.IsDirect(chat) {
		return
	}
	if waits, err := l.e.db.Outbox.WaitsIn(l.ctx, l.id, chat); err != nil || waits {
		l.kick()
	}
}

// lookAgain starts the sender again after the shortest of the waits; 0 means no
// wait. There is one such timer per connection.
func (l *liveSession) lookAgain(waits ...time.Duration) {
	waits = slices.DeleteFunc(waits, func(d time.Duration) bool { return d == 0 })
	if l.paced != nil {
		l.paced.Stop()
	}
	if len(waits) > 0 && !l.stopped() {
		l.paced = time.AfterFunc(slices.Min(waits), l.kick)
	}
}

// sendSome sends messages in their order until hold makes one wait, and returns
// for how long. It ends early when messages with high priority come. Messages whose files or
// previews are not ready yet wait, with those behind them in their chats; each such chat counts as
// tried, because the next batch goes without it. So do actions that wait for a repetition,
// because the next batch looks further.
func (l *liveSession) sendSome(
	list []store.QueuedMessage, turns *turns, hold func(store.QueuedMessage) time.Duration,
) (tried int, wait time.Duration, err error) {
	tried, wait, err = l.sendEach(list, turns, hold)
	return tried, wait, errors.Join(err, l.finish())
}

func (l *liveSession) sendEach(
	list []store.QueuedMessage, turns *turns, hold func(store.QueuedMessage) time.Duration,
) (tried int, wait time.Duration, err error) {
	behind := 0
	for i, m := range list {
		if i > 0 && l.wasUrged(list[i:]) {
			return tried, 0, nil
		}
		if time.Now().Before(l.retry[m.ID].at) { // its repetition is not due
			continue
		}
		if l.isBehind(m.Message) {
			if behind++; behind > l.behind {
				l.behind++
				tried++
			}
			continue
		}
		ready, err := l.isReady(m) // also of a chat that waits, so that what they show is ready in time
		if err != nil {
			return tried, 0, err
		}
		if slices.Contains(l.held, m.ChatID) {
			continue
		}
		if !ready {
			if len(l.held) == maxHeld {
				return tried, 0, nil
			}
			l.held = append(l.held, m.ChatID)
			tried++
			continue
		}
		if wait = hold(m); wait > 0 {
			return tried, wait, nil
		}
		tried++
		turns.charge(m.Lane)
		if err := l.sendOne(m); err != nil || l.stopped() {
			return tried, 0, err
		}
	}
	return tried, 0, nil
}

// paceOf returns the device's current pace.
func (l *liveSession) paceOf(ctx context.Context) (paceNow, error) {
	d, err := l.settings.now(ctx)
	return paceNow{d.Pace.Or(l.e.pace), time.Minute << d.NewChats.Slowed}, err
}
