package db

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
)

type (
	readerKey struct{}
	turnKey   struct{}
)

// ReadFor returns a context whose reads are made for a caller from a workspace: they end
// when the context ends, and they take part in the workspace's share of the connections.
// A read with any other context is the server's own. It ignores the end of its context
// once it has begun, and waits for nobody's share.
func ReadFor(ctx context.Context, workspace string) context.Context {
	return context.WithValue(ctx, readerKey{}, workspace)
}

// KeepTurn returns a context of [ReadFor] for a request that works on with what it has
// read: the turn that its first list takes lasts until end is called, which may be done
// more than once. The context belongs to one goroutine, which must not wait for anything
// but the database meanwhile, or call [EndTurn] before it does.
func KeepTurn(ctx context.Context) (kept context.Context, end func()) {
	t := &turn{}
	return context.WithValue(ctx, turnKey{}, t), t.end
}

// EndTurn ends the turn that a context of [KeepTurn] holds, if any. Call it before waiting for anything but the
// database.
func EndTurn(ctx context.Context) {
	if kept, ok := ctx.Value(turnKey{}).(*turn); ok {
		kept.end()
	}
}

// turn is a turn that a request keeps.
type turn struct{ give func() } // nil before it is taken and after it was given back

func (t *turn) end() {
	if t.give != nil {
		t.give()
		t.give = nil
	}
}

// beginList waits until a read of many rows may begin. It needs a connection and a
// processor: a workspace's lists use at most half of each. end must be called when the read
// has ended.
func (db *DB) beginList(ctx context.Context) (end func(), err error) {
	endTurn, err := db.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	free, err := db.readers.begin(ctx)
	if err != nil {
		endTurn()
		return nil, err
	}
	return func() { free(); endTurn() }, nil
}

func (db *DB) takeTurn(ctx context.Context) (end func(), err error) {
	kept, _ := ctx.Value(turnKey{}).(*turn)
	if kept != nil && kept.give != nil {
		return func() {}, nil
	}
	end, err = db.lists.begin(ctx)
	if err == nil && kept != nil {
		kept.give, end = end, func() {}
	}
	return end, err
}

// newLists shares the processors between the lists of workspaces.
func newLists() *readers {
	return &readers{limit: math.MaxInt, share: max(runtime.GOMAXPROCS(0)/2, 1), by: map[string]*reader{}}
}

// readers shares the connections for reading between workspaces. A workspace uses at most
// half of them at a time. Its other reads wait, and workspaces with waiting reads take
// turns.
type readers struct {
	mu    sync.Mutex
	limit int // reads of all workspaces at a time
	share int // reads of one workspace at a time
	busy  int
	by    map[string]*reader // those that read or wait
	turns []*reader          // those that wait, in the order of their turns
}

// reader is a workspace that reads.
type reader struct {
	workspace string
	busy      int
	waiting   []chan struct{} // each is closed when its read may begin
}

func newReaders(limit int) *readers {
	return &readers{limit: limit, share: max(limit/2, 1), by: map[string]*reader{}}
}

// begin waits until a read may begin. end must be called when it has ended; a read must
// not begin another one before. For a read of the server itself, begin does not wait.
func (r *readers) begin(ctx context.Context) (end func(), err error) {
	workspace, shared := ctx.Value(readerKey{}).(string)
	if !shared {
		return func() {}, nil
	}
	one, turn := r.join(workspace)
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			r.giveUp(one, turn)
			return nil, ctx.Err()
		}
	}
	return func() { r.leave(one) }, nil
}

// join begins a read, or adds it to those that wait: then its turn comes when the channel
// is closed.
func (r *readers) join(workspace string) (one *reader, turn chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one = r.by[workspace]
	if one == nil {
		one = &reader{workspace: workspace}
		r.by[workspace] = one
	}
	if r.busy < r.limit && one.busy < r.share { // then nobody waits who could begin
		one.busy++
		r.busy++
		return one, nil
	}
	if len(one.waiting) == 0 {
		r.turns = append(r.turns, one)
	}
	turn = make(chan struct{})
	one.waiting = append(one.waiting, turn)
	return one, turn
}

func (r *readers) leave(one *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(one)
}

// giveUp removes a read whose caller has left. Its turn may have come meanwhile.
func (r *readers) giveUp(one *reader, turn chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(one.waiting, turn)
	if i < 0 {
		r.end(one)
		return
	}
	one.waiting = slices.Delete(one.waiting, i, i+1)
	if len(one.waiting) == 0 {
		r.turns = slices.DeleteFunc(r.turns, func(o *reader) bool { return o == one })
	}
	r.forget(one)
}

// end frees the connection of a read. mu is held, as for all methods below.
func (r *readers) end(one *reader) {
	r.busy--
	one.busy--
	r.forget(one)
	r.admit()
}

// admit begins waiting reads while there are connections for them.
func (r *readers) admit() {
	for r.busy < r.limit {
		i := slices.IndexFunc(r.turns, func(o *reader) bool { return o.busy < r.share })
		if i < 0 {
			return
		}
		one := r.turns[i]
		r.turns = slices.Delete(r.turns, i, i+1)
		close(one.waiting[0])
		one.waiting = one.waiting[1:]
		one.busy++
		r.busy++
		if len(one.waiting) > 0 {
			r.turns = append(r.turns, one)
		}
	}
}

func (r *readers) forget(one *reader) {
	if one.busy == 0 && len(one.waiting) == 0 {
		delete(r.by, one.workspace)
	}
}

// waiting is how many reads wait for their turns.
func (r *readers) waiting() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.turns {
		n += int64(len(one.waiting))
	}
	return n
}
