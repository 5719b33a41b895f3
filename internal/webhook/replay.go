package webhook

import (
	"context"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// replays queues the deliveries of running replays. It queues the next chunk of a
// replay when most of the previous one is delivered, so that a replay never floods a
// lane.
type replays struct {
	*Dispatcher
	changed   *store.Listener               // replays that changed
	endpoints *store.Listener               // endpoints that changed
	todo      map[postern.ReplayID]struct{} // replays that may have a chunk to queue
}

// startReplays queues replays in a goroutine until stop is called. stop waits until
// the goroutine has ended.
func (d *Dispatcher) startReplays(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r := &replays{
		Dispatcher: d, changed: d.db.Listen(store.ReplayChanged, ""), endpoints: d.db.Listen(store.EndpointChanged, ""),
		todo: map[postern.ReplayID]struct{}{},
	}
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
	err := r.find(ctx, "") // replays of the last process
	for ctx.Err() == nil {
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot continue the webhook replays", "error", err)
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

// wait waits until a replay or an endpoint has changed. It returns false when ctx is
// done.
func (r *replays) wait(ctx context.Context) bool {
	select {
	case <-r.changed.C():
	case <-r.endpoints.C():
	case <-ctx.Done():
		return false
	}
	return true
}

// once collects the replays that have changed and makes one step of each.
func (r *replays) once(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	if !r.leases.Leads() {
		clear(r.todo) // the first server makes the steps of all
		return nil
	}
	for id := range r.todo {
		began := time.Now()
		more, err := r.db.Replays.Step(ctx, id, r.now())
		if err != nil {
			return err
		}
		if !more {
			delete(r.todo, id)
			continue
		}
		if err := postern.Sleep(ctx, time.Since(began)); err != nil { // leaves half of the writer's time to others
			return err
		}
	}
	return nil
}

// take adds the replays that have changed, or whose endpoint has.
func (r *replays) take(ctx context.Context) error {
	for _, id := range r.changed.Take() {
		if id == store.Anything {
			if err := r.find(ctx, ""); err != nil {
				return err
			}
			continue
		}
		r.todo[postern.ReplayID(id)] = struct{}{}
	}
	for _, id := range r.endpoints.Take() {
		if id == store.Anything {
			continue // the listener to replays has been told the same
		}
		if err := r.find(ctx, postern.EndpointID(id)); err != nil {
			return err
		}
	}
	return nil
}

// find adds the running replays of an endpoint, or of all endpoints if it is "".
func (r *replays) find(ctx context.Context, endpoint postern.EndpointID) error {
	list, err := r.db.Replays.Running(ctx, endpoint)
	for _, id := range list {
		r.todo[id] = struct{}{}
	}
	return err
}
