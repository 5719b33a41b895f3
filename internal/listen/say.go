package listen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// say tells the developer something that is no event.
func (l *listener) say(format string, args ...any) {
	fmt.Fprintln(l.opts.Err, printable(fmt.Sprintf(format, args...)))
}

// greet says where events go, and the secret, without which nothing there can
// be verified.
func (l *listener) greet() {
	switch {
	case l.target == nil:
		l.say("events are shown only; --forward-to posts them to a receiver")
	case l.opts.Secret != "":
		l.say("events go to %s, signed with the secret you gave", l.target.url)
	default:
		l.say("events go to %s, signed with the secret", l.target.url)
		l.say("  %s", l.target.secret.Reveal())
		l.say("the next start makes another one, unless it is kept: --secret, or POSTERN_LISTEN_SECRET")
	}
}

// alive notes that there is a connection.
func (l *listener) alive() {
	if l.connected && l.fault == "" {
		return
	}
	l.say("connected to %s, %s", l.opts.base(), l.place)
	l.connected, l.fault = true, ""
}

// lost says why there is no connection, once as long as it stays the same.
func (l *listener) lost(err error, wait time.Duration) {
	if errors.Is(err, errBehind) || err.Error() == l.fault {
		return
	}
	l.fault = err.Error()
	again := "trying again until it answers"
	if _, told := errors.AsType[*backoff.RetryAfterError](err); told {
		again = "trying again in " + wait.String() + ", as it asks"
	}
	l.say("no connection to %s: %s; %s", l.opts.base(), l.fault, again)
}

// expired explains a gap: events behind the place were removed.
func (l *listener) expired(ctx context.Context) error {
	gap := fmt.Sprintf("the server has removed events %s: they are older than it keeps them, and were missed", l.place)
	m, err := l.api.first(ctx)
	switch {
	case err != nil || m.data == nil:
		return errors.New(gap + "; go on without --after, from now on")
	default:
		return fmt.Errorf("%s; the oldest there is, %s, is of %s: go on with --after %s, from that one on, or without --after, from now on", gap, m.id, read(m.data).Timestamp.Std().Local().Format(time.DateTime), Start)
	}
}

// farewell says how to go on later.
func (l *listener) farewell() {
	if l.tally.events == 0 {
		return
	}
	l.say("events: %d; to go on behind the last one: %s", l.tally.events, l.place.flag())
	if l.tally.failed > 0 {
		l.say("not taken: %d; to have them and all that followed again: %s", l.tally.failed, l.tally.again.flag())
	}
}
