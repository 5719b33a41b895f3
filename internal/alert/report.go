package alert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

// recipient is somebody who is told in one way.
type recipient struct {
	alerts.Recipient

	tell Tell
}

// recipients returns everybody who is told.
func (w *Watcher) recipients(ctx context.Context) (all []recipient, err error) {
	for way, tell := range w.opts.Operator {
		all = append(all, recipient{alerts.Recipient{Way: way}, tell})
	}
	addresses, err := w.opts.Table.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	for ws, a := range addresses {
		all = append(all, recipient{alerts.Recipient{WorkspaceID: ws, Way: alerts.URL}, w.post(ws, a)})
	}
	if w.opts.Mail == nil {
		return all, nil
	}
	mails, err := w.opts.Table.Mails(ctx)
	for ws, list := range mails {
		all = append(all, recipient{alerts.Recipient{WorkspaceID: ws, Way: alerts.Mail}, w.mail(list)})
	}
	return all, err
}

// post tells at the address of a workspace, and notes whether that could be done.
func (w *Watcher) post(ws postern.WorkspaceID, a alerts.Address) Tell {
	return func(ctx context.Context, n News) error {
		url, err := w.opts.Box.Open(a.URL, ws.AlertPlace())
		if err != nil {
			return fmt.Errorf("open the address for alerts: %w", err)
		}
		err = w.opts.Post(ws, seal.Secret(url))(ctx, n)
		return errors.Join(err, w.opts.Table.Posted(ctx, ws, a.URL, n.At, reasonOf(err)))
	}
}

// mail tells members by mail. One of them must get it: an address that is refused does not make the others get it again.
func (w *Watcher) mail(list []string) Tell {
	return func(ctx context.Context, n News) (err error) {
		arrived := false
		for _, to := range list {
			one := w.opts.Mail(to)(ctx, n)
			arrived = arrived || one == nil
			err = errors.Join(err, one)
		}
		if arrived {
			return nil
		}
		return err
	}
}

// begin reports to a recipient, unless that is going on, was tried a moment ago, or too many others are being told.
func (w *Watcher) begin(ctx context.Context, r recipient, d difference) {
	if len(d.due)+len(d.over) == 0 || !w.take(r.Recipient) {
		return
	}
	w.reports.Go(func() {
		ctx, cancel := outlive(ctx, grace)
		defer cancel()
		w.done(ctx, r.Recipient, w.report(ctx, r, d))
	})
}

// take reports whether a recipient may be told now, and notes that this is being done.
func (w *Watcher) take(r alerts.Recipient) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := 0
	for _, l := range w.late {
		if l.busy {
			busy++
		}
	}
	l := w.late[r]
	if l == nil {
		l = &lateness{}
	}
	if l.busy || w.opts.Now() < l.next || busy >= atOnce {
		return false
	}
	l.busy, w.late[r] = true, l
	return true
}

// done notes how a report ended. The log says once that the operator cannot be told, and once that this has passed.
func (w *Watcher) done(ctx context.Context, r alerts.Recipient, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.late[r]
	failed := l.pause > 0
	if err == nil {
		delete(w.late, r)
		if failed && r.WorkspaceID == "" {
			w.opts.Log.InfoContext(ctx, "alerts reach the operator again", "way", r.Way)
		}
		return
	}
	l.busy, l.pause = false, min(max(w.pause(), 2*l.pause), mostPause)
	l.next = w.opts.Now().Add(l.pause)
	switch {
	case failed:
	case r.WorkspaceID == "":
		w.opts.Log.ErrorContext(ctx, "alerts do not reach the operator; they are tried again", "way", r.Way, "error", err)
	default:
		w.opts.Log.InfoContext(ctx, "alerts do not reach the people of a workspace; they are tried again",
			"workspace_id", r.WorkspaceID, "way", r.Way, "error", err)
	}
}

// report tells what is due, and stores that it was told. Having begun, it outlives the server by a moment: if the server
// stopped in between, the next one would tell it again.
func (w *Watcher) report(ctx context.Context, r recipient, d difference) error {
	now := w.opts.Now()
	if err := r.tell(ctx, News{Began: d.due, Ended: d.over, At: now}); err != nil {
		return err
	}
	for i := range d.due {
		d.due[i].ToldAt = now
	}
	return errors.Join(w.opts.Table.Note(ctx, r.Recipient, d.due), w.opts.Table.Forget(ctx, r.Recipient, d.over))
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
