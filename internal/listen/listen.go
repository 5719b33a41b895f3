// Package listen streams a workspace's events to a developer's machine. It is
// a client of the API and no more: it follows the log of events, posts each one
// as a webhook would bring it, says how that went, and goes on where it was
// when the connection or the server was away.
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
	firstRetry = 300 * time.Millisecond
	maxRetry   = 10 * time.Second // a developer waits for it
)

// Run streams events until ctx is done, which is no error, or until the server
// refuses for good.
func Run(ctx context.Context, o Options) error {
	l, err := newListener(o)
	if err != nil {
		return err
	}
	defer l.close()
	return l.run(ctx)
}

// listener is one run. It does one thing at a time: an event is dealt with
// before the next one is read.
type listener struct {
	opts    Options
	api     *client
	target  *target // nil: events are only shown
	show    *printer
	backoff *backoff.ExponentialBackOff

	place     place
	connected bool   // once at least
	fault     string // of the connection, as it was said last; "" while it is good
	tally     tally
}

// place is where in the log the listener is.
type place struct {
	known bool
	after string // the event behind which to go on; "" is the start of the log
}

func (p place) String() string {
	switch {
	case !p.known:
		return "from now on"
	case p.after == "":
		return "from the start of the log on"
	}
	return "behind " + p.after
}

// flag is the place as --after takes it.
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
		return nil //nolint:nilerr // it was told to stop
	}
	return err
}

// errBehind ends a stream that began behind events that were missed.
var errBehind = errors.New("events were recorded while the stream was away")

// follow reads one stream. It ends with an error always.
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

// first deals with the first event of the log when the place is its start: a
// stream can only be told an event behind which to begin.
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

// take sees to one message of a stream. The first one tells where a stream
// without a place began.
func (l *listener) take(ctx context.Context, m message) error {
	l.backoff.Reset()
	l.alive()
	switch {
	case m.data != nil:
		return l.deal(ctx, m)
	case !m.placed:
		return nil // a heartbeat
	case !l.place.known:
		l.place = place{known: true, after: m.id}
	case l.place.after == "" && m.id != "":
		return errBehind
	}
	return nil
}

// deal shows an event and posts it. It is dealt with whatever the receiver
// answered, but not when ctx ended before.
func (l *listener) deal(ctx context.Context, m message) error {
	if m.id == "" {
		return backoff.Permanent(errors.New("an event without an id came; is --url the address of the API?"))
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
		return backoff.Permanent(fmt.Errorf("show an event: %w", err))
	}
	return nil
}

// tally is what the listener has seen so far.
type tally struct {
	events, failed int
	again          place // before the first event that was not taken
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

// judge tells what may pass from what will not.
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
