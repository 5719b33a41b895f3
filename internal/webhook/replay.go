package webhook

import (
	"context"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// replays feeds the replays that run: it queues a chunk when most of the one
// before was delivered, so that a replay never floods a lane.
type replays struct {
	*Dispatcher
	changed   *store.Listener // replays
	endpoints *store.Listener
	todo      map[postern.ReplayID]struct{} // that may have something to do
}

// startReplays feeds replays until stop, which waits for the end of it.
func (d *Dispatcher) startReplays(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r := &replays{d, d.db.Listen(store.ReplayChanged, ""), d.db.Listen(store.EndpointChanged, ""), map[postern.ReplayID]struct{}{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		defer r.changed.Close()
		defer r.endpoints.Close()
		r.run(ctx)
	})
	return func() {
		cancel()
		ended.Wait()
	}
}

func (r *replays) run(ctx context.Context) {
	err := r.find(ctx, "") // what the last process left
	for ctx.Err() == nil {
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "replays stand still", "error", err)
			_ = postern.Sleep(ctx, rest)
			err = r.find(ctx, "")
			continue
		}
		if len(r.todo) == 0 && !r.wait(ctx) {
			return
		}
		err = r.once(ctx)
	}
}

// wait waits until something has changed.
func (r *replays) wait(ctx context.Context) bool {
	select {
	case <-r.changed.C():
	case <-r.endpoints.C():
	case <-ctx.Done():
		return false
	}
	return true
}

// once looks at what has changed, and gives each replay one step.
func (r *replays) once(ctx context.Context) error {
	for _, id := range r.changed.Take() {
		r.todo[postern.ReplayID(id)] = struct{}{}
	}
	for _, id := range r.endpoints.Take() {
		if err := r.find(ctx, postern.EndpointID(id)); err != nil {
			return err
		}
	}
	for id := range r.todo {
		began := time.Now()
		more, err := r.db.Replays.Step(ctx, id, now())
		if err != nil {
			return err
		}
		if !more {
			delete(r.todo, id)
			continue
		}
		if err := postern.Sleep(ctx, time.Since(began)); err != nil { // others have half of the writer
			return err
		}
	}
	return nil
}

// find adds the replays that run for an endpoint; "" is every one.
func (r *replays) find(ctx context.Context, endpoint postern.EndpointID) error {
	list, err := r.db.Replays.Running(ctx, endpoint)
	for _, id := range list {
		r.todo[id] = struct{}{}
	}
	return err
}
