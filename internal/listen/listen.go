// Package listen streams a workspace's events to a developer's machine. It is only
// a client of the API: it follows the event log, posts each event to a receiver as
// a webhook would, reports the result, and resumes after the connection is lost.
package listen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/internal/postern"

	"github.com/cenkalti/backoff/v5"
)

const (
	silence    = 45 * time.Second // three heartbeats of the server
	beginning  = 20 * time.Second // until the first bytes of a stream, which the server sends at once
	firstRetry = 300 * time.Millisecond
	maxRetry   = 10 * time.Second // short, because a developer is waiting
)

// Run streams events. It returns nil when ctx is done, and an error when the server
// refuses permanently.
func Run(ctx context.Context, o Options) error {
	l, err := newListener(o)
	if err != nil {
		return err
	}
	defer l.close()
	return l.run(ctx)
}

// listener is one run. It handles one event at a time, and reads the next one
// afterwards.
type listener struct {
	opts    Options
	api     *client
	target  *target // nil: events are only printed
	show    *printer
	backoff *backoff.ExponentialBackOff

	place     place
	connected bool   // at least once
	fault     string // the connection error reported last; "" while connected
	tally     tally
}

// place is the listener's position in the log.
type place struct {
	known bool
	after string // the last event handled; "" is the start of the log
}

func (p place) String() string {
	switch {
	case !p.known:
		return "listening for new events"
	case p.after == "":
		return "starting with the oldest event"
	}
	return "resuming after " + p.after
}

// flag is the position as a value of --after.
func (p place) flag() string {
	if p.after == "" {
		return "--after " + Start
	}
	return "--after " + p.after
}

func newListener(o Options) (*listener, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &listener{opts: o, api: newClient(o), show: newPrinter(o), backoff: backoff.NewExponentialBackOff()}
	l.backoff.InitialInterval, l.backoff.MaxInterval = firstRetry, maxRetry
	switch o.After {
	case "":
	case Start:
		l.place = place{known: true}
	default:
		l.place = place{known: true, after: o.After}
	}
	var err error
	if o.ForwardTo != "" {
		l.target, err = newTarget(o)
	}
	return l, err
}

func (l *listener) close() {
	l.api.close()
	if l.target != nil {
		l.target.http.Close()
	}
}

func (l *listener) run(ctx context.Context) error {
	l.greet()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := l.follow(ctx)
		return struct{}{}, l.judge(ctx, err)
	}, backoff.WithBackOff(l.backoff), backoff.WithMaxElapsedTime(0), backoff.WithNotify(l.lost))
	l.farewell()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller stopped it
	}
	return err
}

// errBehind ends a stream that started after events the listener has not seen.
var errBehind = errors.New("events were recorded while the stream was disconnected")

// follow reads one stream. It always returns an error.
func (l *listener) follow(ctx context.Context) error {
	if err := l.first(ctx); err != nil {
		return err
	}
	s, err := l.api.stream(ctx, l.place.after)
	if err != nil {
		return err
	}
	defer s.close()
	if l.place.known {
		l.alive()
	}
	for {
		m, err := s.next()
		if err != nil {
			return err
		}
		if err := l.take(ctx, m); err != nil {
			return err
		}
	}
}

// first handles the first event of the log if the position is its start, because a
// stream can only start after a given event.
func (l *listener) first(ctx context.Context) error {
	if !l.place.known || l.place.after != "" {
		return nil
	}
	m, err := l.api.first(ctx)
	if err != nil || m.data == nil {
		return err
	}
	l.alive()
	return l.deal(ctx, m)
}

// catchUp looks for the first event again, because a stream has begun after newest. If no event of the log matches, the
// stream goes on from there.
func (l *listener) catchUp(ctx context.Context, newest string) error {
	if err := l.first(ctx); err != nil {
		return err
	}
	if l.place.after != "" {
		return errBehind
	}
	l.place.after = newest
	return nil
}

// take handles one message of a stream. The first message of a stream that was opened
// without a position contains the position; it has none when the log is still empty.
func (l *listener) take(ctx context.Context, m message) error {
	l.backoff.Reset()
	l.alive()
	switch {
	case m.data != nil:
		return l.deal(ctx, m)
	case !l.place.known:
		l.place = place{known: true, after: m.id}
	case l.place.after == "" && m.id != "":
		return l.catchUp(ctx, m.id)
	}
	return nil
}

// deal posts an event and prints it. The event counts as handled whatever the
// receiver answered, unless ctx ended before the answer.
func (l *listener) deal(ctx context.Context, m message) error {
	if m.id == "" {
		return backoff.Permanent(errors.New("received an event without an id; is --url the address of the API?"))
	}
	var out *outcome
	if l.target != nil {
		o := l.target.post(ctx, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out = &o
	}
	l.tally.count(out, l.place)
	l.place = place{known: true, after: m.id}
	if err := l.show.event(m, out); err != nil {
		return backoff.Permanent(fmt.Errorf("print an event: %w", err))
	}
	return nil
}

// tally counts the events of a run.
type tally struct {
	events, failed int
	again          place // the position before the first event that was not accepted
}

func (t *tally) count(out *outcome, before place) {
	t.events++
	if out == nil || out.taken() {
		return
	}
	if t.failed == 0 {
		t.again = before
	}
	t.failed++
}

// judge marks the errors that a retry cannot fix as permanent.
func (l *listener) judge(ctx context.Context, err error) error {
	r, refused := errors.AsType[*refusal](err)
	switch {
	case !refused:
		return err
	case r.passing():
		return err
	case r.Reason == postern.EventsExpired:
		return backoff.Permanent(l.expired(ctx))
	}
	return backoff.Permanent(r)
}
