package listen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// say prints a message for the developer, other than an event.
func (l *listener) say(format string, args ...any) {
	fmt.Fprintln(l.opts.Err, printable(fmt.Sprintf(format, args...)))
}

// greet says where events are posted, and prints the secret that the receiver needs
// to verify them.
func (l *listener) greet() {
	switch {
	case l.target == nil:
		l.say("printing events only; use --forward-to to post them to a receiver")
	case l.opts.Secret != "":
		l.say("forwarding events to %s, signed with your secret", l.target.url)
	default:
		l.say("forwarding events to %s, signed with this secret:", l.target.url)
		l.say("  %s", l.target.secret.Reveal())
		l.say("the next run generates another one; to reuse this one, set --secret or POSTERN_LISTEN_SECRET")
	}
}

// alive records that the connection works.
func (l *listener) alive() {
	if l.connected && l.fault == "" {
		return
	}
	l.say("connected to %s, %s", l.opts.base(), l.place)
	l.connected, l.fault = true, ""
}

// lost says why there is no connection, once per cause.
func (l *listener) lost(err error, wait time.Duration) {
	if errors.Is(err, errBehind) || err.Error() == l.fault {
		return
	}
	l.fault = err.Error()
	again := "retrying until it answers"
	if _, told := errors.AsType[*backoff.RetryAfterError](err); told {
		again = "retrying in " + wait.String() + ", as the server asked"
	}
	l.say("no connection to %s: %s; %s", l.opts.base(), l.fault, again)
}

// expired explains a gap: the server has removed events after the position.
func (l *listener) expired(ctx context.Context) error {
	gap := fmt.Sprintf("events after %s were missed: they are older than the server's retention, "+
		"and it has removed them", l.place.after)
	m, err := l.api.first(ctx)
	if err != nil || m.data == nil {
		return errors.New(gap + "; leave out --after to listen for new events")
	}
	oldest := read(m.data).Timestamp.Std().Local().Format(time.DateTime)
	return fmt.Errorf("%s; the oldest event is now %s of %s: use --after %s to begin with it, "+
		"or leave out --after to listen for new events", gap, m.id, oldest, Start)
}

// farewell says how to resume later.
func (l *listener) farewell() {
	if l.tally.events == 0 {
		return
	}
	l.say("events: %d; to resume after the last one: %s", l.tally.events, l.place.flag())
	if l.tally.failed > 0 {
		l.say("not accepted: %d; to repeat everything from the first of them: %s", l.tally.failed, l.tally.again.flag())
	}
}
