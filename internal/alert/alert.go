// Package alert tells operators, once each, that something is wrong with a device or a webhook endpoint, and once more
// when that has ended. What was told is stored, so that a restart does not tell it again. If it cannot be told, it is
// tried again until it is.
package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"postern/internal/postern"
	"postern/internal/store/alerts"
)

// every is how often a Watcher looks at most.
const every = 10 * time.Second

// grace is how long a report that has begun may take once the server stops.
const grace = 5 * time.Second

// queued is how long a message of a connected device waits at least before that is wrong: a pace may delay it.
const queued = 15 * time.Minute

// Options configure a Watcher.
type Options struct {
	Table alerts.Table
	Now   func() postern.Time
	Log   *slog.Logger
	// After is how long something must be wrong before it is told.
	After time.Duration
	// Tell is called with what has begun and what has ended; each of them must reach the operator.
	Tell []func(ctx context.Context, n News) error
}

// News is what has become wrong, and what no longer is.
type News struct {
	Began, Ended []alerts.Alert
	At           postern.Time
}

// Watcher looks for what is wrong.
type Watcher struct {
	opts Options
	mute bool // that it cannot be told was logged
}

// New returns a Watcher.
func New(opts Options) *Watcher {
	return &Watcher{opts: opts}
}

// Run looks and tells until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	for stop := error(nil); stop == nil; stop = postern.Sleep(ctx, min(every, w.opts.After)) {
		w.log(ctx, w.look(ctx))
	}
	return nil
}

// log logs once that alerts do not reach the operator, and once that they do again.
func (w *Watcher) log(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !w.mute:
		w.opts.Log.ErrorContext(ctx, "alerts do not reach the operator; they are tried again", "error", err)
		w.mute = true
	case err == nil && w.mute:
		w.opts.Log.InfoContext(ctx, "alerts reach the operator again")
		w.mute = false
	}
}

// look compares what is wrong with what was noted, and tells the difference.
func (w *Watcher) look(ctx context.Context) error {
	now := w.opts.Now()
	wrong, err := w.opts.Table.Wrong(ctx, now.Add(-max(w.opts.After, queued)))
	if err != nil {
		return err
	}
	known, err := w.opts.Table.Known(ctx)
	if err != nil {
		return err
	}
	d := compare(wrong, known, now, w.opts.After)
	if err := w.opts.Table.Note(ctx, d.fresh); err != nil {
		return err
	}
	if err := w.opts.Table.Forget(ctx, d.passed); err != nil {
		return err
	}
	return w.report(ctx, d, now)
}

// report tells what is due, and stores that it was told. Having begun, it outlives ctx by a moment: if the server
// stopped in between, the next one would tell it again.
func (w *Watcher) report(ctx context.Context, d difference, now postern.Time) error {
	if len(d.due)+len(d.over) == 0 {
		return nil
	}
	ctx, cancel := outlive(ctx, grace)
	defer cancel()
	if err := w.tell(ctx, News{Began: d.due, Ended: d.over, At: now}); err != nil {
		return err
	}
	for i := range d.due {
		d.due[i].ToldAt = now
	}
	return errors.Join(w.opts.Table.Note(ctx, d.due), w.opts.Table.Forget(ctx, d.over))
}

// outlive returns a context that is done some time after ctx is.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// difference is what there is to do.
type difference struct {
	fresh  []alerts.Alert // to be noted
	due    []alerts.Alert // to be told
	passed []alerts.Alert // ended before they were told
	over   []alerts.Alert // ended, which is to be told
}

func compare(wrong, known []alerts.Alert, now postern.Time, after time.Duration) (d difference) {
	noted, still := map[string]alerts.Alert{}, map[string]bool{}
	for _, a := range known {
		noted[a.Key()] = a
	}
	for _, a := range wrong {
		still[a.Key()] = true
		old, ok := noted[a.Key()]
		if a.Since == 0 {
			a.Since = cmp.Or(old.Since, now)
		}
		if a.ToldAt = old.ToldAt; !ok {
			d.fresh = append(d.fresh, a)
		}
		if a.ToldAt == 0 && now >= a.Since.Add(after) {
			d.due = append(d.due, a)
		}
	}
	for _, a := range known {
		switch {
		case still[a.Key()]:
		case a.ToldAt == 0:
			d.passed = append(d.passed, a)
		default:
			d.over = append(d.over, a)
		}
	}
	return d
}

// tell tells in all ways. If one of them fails, all are repeated: better twice than not at all.
func (w *Watcher) tell(ctx context.Context, n News) (err error) {
	for _, way := range w.opts.Tell {
		err = errors.Join(err, way(ctx, n))
	}
	return err
}

// Text describes news for people, a line for each alert.
func (n News) Text() string {
	var b strings.Builder
	for _, a := range n.Began {
		b.WriteString(line(a))
	}
	for _, a := range n.Ended {
		b.WriteString("Over: " + line(a))
	}
	return b.String()
}

func line(a alerts.Alert) string {
	where := called(a.Workspace, string(a.WorkspaceID))
	return fmt.Sprintf("%s (workspace %s, since %s)\n", sentence(a), where, a.Since)
}

// Title summarizes news in a line.
func (n News) Title() string {
	switch {
	case len(n.Began) == 1 && len(n.Ended) == 0:
		return sentence(n.Began[0])
	case len(n.Began) == 0 && len(n.Ended) == 1:
		return "Over: " + sentence(n.Ended[0])
	}
	return fmt.Sprintf("%d problems began, %d are over", len(n.Began), len(n.Ended))
}

func sentence(a alerts.Alert) string {
	name := called(a.Name, a.Subject)
	switch a.Kind {
	case alerts.DeviceDown:
		return fmt.Sprintf("Device %s is not connected: %s", name, a.Detail)
	case alerts.DeviceLimited:
		return fmt.Sprintf("The account of device %s may not start chats", name)
	case alerts.PhoneUnseen:
		return fmt.Sprintf("The phone of device %s has not been seen for long; the network removes the link of a phone "+
			"that is not used for 14 days", name)
	case alerts.EndpointFailing:
		return fmt.Sprintf("Webhook endpoint %s is failing", name)
	case alerts.EndpointDisabled:
		return fmt.Sprintf("Webhook endpoint %s is disabled: %s", name, a.Detail)
	case alerts.MessagesWaiting:
		return fmt.Sprintf("Messages of device %s have been waiting for long, although it is connected", name)
	}
	return string(a.Kind) + " " + name
}

// called returns a name with an id, or the id alone.
func called(name, id string) string {
	if name == "" {
		return id
	}
	return fmt.Sprintf("%q (%s)", name, id)
}
