// Package alert tells people, once each, that something is wrong with a device or a webhook endpoint, and once more when
// that has ended: the operator of the server, of all workspaces, and those whom a workspace has chosen, of theirs. What
// each of them was told is stored, so that a restart does not tell it again. A report that fails is repeated, and
// does not hold up others.
package alert

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

const (
	every  = 10 * time.Second // how often a Watcher looks at most, and tries again after a report that failed
	grace  = 5 * time.Second  // how long a report that has begun may take once the server stops
	queued = 15 * time.Minute // how long a message of a connected device waits at least: a pace may delay it

	atOnce    = 32               // reports in flight
	mostPause = 10 * time.Minute // after a report that failed; the pause doubles with each one
)

// Tell tells somebody. Its error contains no address.
type Tell func(ctx context.Context, n News) error

// Options configure a Watcher.
type Options struct {
	Table alerts.Table
	Box   *seal.Box
	Now   func() postern.Time
	Log   *slog.Logger
	// After is how long something must be wrong before it is told.
	After time.Duration
	// Operator is how the operator is told.
	Operator map[alerts.Way]Tell
	// Post tells the people of a workspace at the address that it has chosen.
	Post func(ws postern.WorkspaceID, url seal.Secret) Tell
	// Mail tells a member of a workspace by mail; nil if the server sends none.
	Mail func(to string) Tell
}

// Watcher looks for what is wrong.
type Watcher struct {
	opts    Options
	reports sync.WaitGroup

	mu   sync.Mutex
	late map[alerts.Recipient]*lateness // who is being told, and who could not be
}

// lateness is the state of a recipient who was not told yet.
type lateness struct {
	busy  bool
	pause time.Duration
	next  postern.Time // when to try again
}

// New returns a Watcher.
func New(opts Options) *Watcher {
	return &Watcher{opts: opts, late: map[alerts.Recipient]*lateness{}}
}

// Run looks and tells until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.reports.Wait()
	for stop := error(nil); stop == nil; stop = postern.Sleep(ctx, w.pause()) {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.opts.Log.ErrorContext(ctx, "alerts cannot be read or noted; this is tried again", "error", err)
		}
	}
	return nil
}

// pause is the time between two looks.
func (w *Watcher) pause() time.Duration { return min(every, w.opts.After) }

// look compares what is wrong with what was noted for each recipient, and tells them the difference.
func (w *Watcher) look(ctx context.Context) error {
	all, err := w.recipients(ctx)
	if err != nil {
		return err
	}
	wrong, err := w.wrong(ctx, all)
	if err != nil {
		return err
	}
	known, err := w.opts.Table.Known(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		d := compare(wrong.of(r), known[r.Recipient], w.opts.Now(), w.opts.After)
		delete(known, r.Recipient)
		err = errors.Join(err, w.opts.Table.Note(ctx, r.Recipient, d.fresh),
			w.opts.Table.Forget(ctx, r.Recipient, d.passed))
		w.begin(ctx, r, d)
	}
	for nobody, list := range known {
		err = errors.Join(err, w.opts.Table.Forget(ctx, nobody, list))
	}
	return err
}

// troubles are what is wrong, by workspace; those of all are under "".
type troubles map[postern.WorkspaceID][]alerts.Alert

func (t troubles) of(r recipient) []alerts.Alert { return t[r.WorkspaceID] }

// wrong returns what is wrong and may concern one of the recipients.
func (w *Watcher) wrong(ctx context.Context, all []recipient) (troubles, error) {
	if len(all) == 0 {
		return nil, nil
	}
	find := w.opts.Table.WrongWhereTold
	if len(w.opts.Operator) > 0 {
		find = w.opts.Table.Wrong
	}
	list, err := find(ctx, w.opts.Now().Add(-max(w.opts.After, queued)))
	found := troubles{"": list}
	for _, a := range list {
		found[a.WorkspaceID] = append(found[a.WorkspaceID], a)
	}
	return found, err
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
