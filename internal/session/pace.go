package session

import (
	"context"
	"slices"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// window counts what was sent in the last minute.
type window struct{ sent []time.Time } // oldest first

// wait says how long until one more may be sent; limit 0 is no limit.
func (w *window) wait(limit postern.Rate, now time.Time) time.Duration {
	for len(w.sent) > 0 && now.Sub(w.sent[0]) >= time.Minute {
		w.sent = w.sent[1:]
	}
	if limit == 0 || len(w.sent) < int(limit) {
		return 0
	}
	return w.sent[len(w.sent)-int(limit)].Add(time.Minute).Sub(now)
}

// pacer remembers what a device sent lately. It outlives the connections of the
// device and not the process. Only the goroutine that sends touches it.
type pacer struct{ all, fresh window }

// pacerOf is the pacer of a device, also after it was idle.
func (e *Engine) pacerOf(id postern.DeviceID) *pacer {
	p, _ := e.pacers.LoadOrStore(id, &pacer{})
	return p.(*pacer) //nolint:errcheck,forcetypeassert // only these are put in
}

// take counts a message, or says how long it has to wait.
func (p *pacer) take(pace postern.Pace, fresh bool) time.Duration {
	now := time.Now()
	wait := p.all.wait(pace.PerMinute, now)
	if fresh {
		wait = max(wait, p.fresh.wait(pace.NewChatsPerMinute, now))
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

// sendPaced sends first what no pace holds up: repetitions, which were counted
// before, and replies. Then as many others as the pace lets through: those of
// known chats, then one that opens a chat, which makes its chat a known one.
func (l *liveSession) sendPaced(pace postern.Pace) (tried int, err error) {
	tried, err = l.sendFree()
	if err != nil || l.stopped() {
		return tried, err
	}
	known, err := l.queued(store.Known, sendBatch)
	if err != nil {
		return tried, err
	}
	n, wait, err := l.sendSome(known, func(store.QueuedMessage) time.Duration { return l.pacer.take(pace, false) })
	if tried += n; err != nil || l.stopped() {
		return tried, err
	}
	fresh, err := l.queued(store.Fresh, 1)
	if err != nil {
		return tried, err
	}
	n, later, err := l.sendSome(fresh, func(store.QueuedMessage) time.Duration { return l.pacer.take(pace, true) })
	l.lookAgain(wait, later)
	return tried + n, err
}

// sendFree sends what no pace holds up.
func (l *liveSession) sendFree() (tried int, err error) {
	free := func(store.QueuedMessage) time.Duration { return 0 }
	repeats, err := l.queued(store.Repeating, sendBatch+len(l.retry))
	if err != nil {
		return 0, err
	}
	l.forget(repeats)
	tried, _, err = l.sendSome(repeats, free)
	if err != nil || l.stopped() {
		return tried, err
	}
	answers, err := l.queued(store.Answering, sendBatch)
	if err != nil {
		return tried, err
	}
	n, _, err := l.sendSome(answers, free)
	return tried + n, err
}

func (l *liveSession) queued(kind store.ChatKind, limit int) ([]store.QueuedMessage, error) {
	return l.e.db.Outbox.NextOf(l.ctx, l.id, kind, postern.TimeOf(time.Now().Add(-replyTime)), limit)
}

// lookAgain has the sender look when the first of the waits is over; zero is
// none. There is one such timer.
func (l *liveSession) lookAgain(waits ...time.Duration) {
	waits = slices.DeleteFunc(waits, func(d time.Duration) bool { return d == 0 })
	if l.paced != nil {
		l.paced.Stop()
	}
	if len(waits) > 0 && !l.stopped() {
		l.paced = time.AfterFunc(slices.Min(waits), l.kick)
	}
}

// sendSome sends in turn until one has to wait, and says for how long.
func (l *liveSession) sendSome(list []store.QueuedMessage, hold func(store.QueuedMessage) time.Duration) (tried int, wait time.Duration, err error) {
	for _, m := range list {
		if r, waits := l.retry[m.ID]; waits && time.Now().Before(r.at) {
			continue
		}
		if wait = hold(m); wait > 0 {
			return tried, wait, nil
		}
		tried++
		if err := l.sendOne(m); err != nil || l.stopped() {
			return tried, 0, err
		}
	}
	return tried, 0, nil
}

// paceOf is the device's pace now.
func (l *liveSession) paceOf(ctx context.Context) (postern.Pace, error) {
	d, err := l.settings.now(ctx)
	return d.Pace.Or(l.e.pace), err
}
