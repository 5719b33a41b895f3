package db

import (
	"fmt"
	"iter"
	"log/slog"
	"path"
	"reflect"
	"runtime"
)

// About is what the scheduler knows about a write before it runs.
type About struct {
	Workspace string // "" for writes that belong to no workspace or need no fair share
	Urgency   Urgency
	Fenced    bool // it is refused while [Options.Fence] returns an error
}

// Urgency says how a write shares the writer with others.
type Urgency int

// The urgencies. What is said of their order is about commits. Within a commit, PostgreSQL
// gets the hot writes kind by kind.
const (
	// InOrder is committed with, or after, the InOrder and Patient writes that were handed
	// over before it. It waits for no Fair or Flood write, and these may overtake it.
	InOrder Urgency = iota
	// Fair takes turns with the Fair and Flood writes of other workspaces. It is committed
	// with, or after, the Fair writes of its workspace that were handed over before it. It
	// may overtake Flood writes.
	Fair
	// Flood is Fair for what arrives without a caller who slows down when responses
	// are slow: after a full group, the workspace's other Flood writes pause. It is
	// committed with, or after, the Fair and Flood writes of its workspace that were handed
	// over before it.
	Flood
	// Patient is InOrder for writes on which nothing depends: it may wait a few
	// milliseconds to share a commit.
	Patient
)

func (u Urgency) shared() bool { return u == Fair || u == Flood }

// Write is one write, made by [Func] or [Item]. It may run again after a rollback.
type Write interface {
	about() About
	kind() reflect.Type // writes of one kind are written together; nil: always alone
	apply(t *Tx, list []pending) error
}

// pending is a write of a group and the place for its own outcome.
type pending struct {
	write   Write
	outcome *error
}

// Func is a write that happens rarely. It is [InOrder].
type Func func(t *Tx) error

func (f Func) about() About       { return About{} }
func (f Func) kind() reflect.Type { return nil }

func (f Func) apply(t *Tx, _ []pending) error { return f(t) }

// FuncOf is a [Func] on behalf of a caller of a workspace. It is [Fair].
func FuncOf(workspace string, f Func) Write { return fairFunc{f, workspace} }

type fairFunc struct {
	Func
	workspace string
}

func (f fairFunc) about() About { return About{Workspace: f.workspace, Urgency: Fair} }

// Hot is a hot write: a value with its rows, of its own type T.
type Hot[T any] interface {
	About() About
	// WriteAll writes a list of values of this type, in their order; a single write is a
	// list of one. It refuses items that cannot be written before it changes anything for
	// them. An error makes the engine write the items one by one; the error of a list of
	// one is that item's outcome.
	WriteAll(t *Tx, list []Pending[T]) error
}

// Pending is a hot write of a group.
type Pending[T any] struct {
	Value   T
	outcome *error
}

// Refuse makes err the outcome of this item alone. Nothing of it may have been written.
func (p Pending[T]) Refuse(err error) { *p.outcome = err }

// Item makes a [Write] of a hot write.
func Item[T Hot[T]](value T) Write { return item[T]{value} }

type item[T Hot[T]] struct{ value T }

func (i item[T]) about() About       { return i.value.About() }
func (i item[T]) kind() reflect.Type { return reflect.TypeFor[T]() }

func (i item[T]) apply(t *Tx, list []pending) error {
	values := make([]Pending[T], len(list))
	for n, p := range list {
		one := p.write.(item[T]) //nolint:errcheck,forcetypeassert // a list of one kind
		values[n] = Pending[T]{one.value, p.outcome}
	}
	return i.value.WriteAll(t, values)
}

// WriteNow writes values of one kind within another write. The first refusal is its error.
func WriteNow[T Hot[T]](t *Tx, values ...T) error {
	if len(values) == 0 {
		return nil
	}
	outcomes, list := make([]error, len(values)), make([]Pending[T], len(values))
	for i, v := range values {
		list[i] = Pending[T]{v, &outcomes[i]}
	}
	if err := values[0].WriteAll(t, list); err != nil {
		return err
	}
	for _, err := range outcomes {
		if err != nil {
			return err
		}
	}
	return nil
}

// Fenced makes a write refused while [Options.Fence] returns an error.
func Fenced(w Write) Write { return fenced{w} }

type fenced struct{ Write }

func (f fenced) kind() reflect.Type { return nil }

func (f fenced) apply(t *Tx, list []pending) error {
	return f.Write.apply(t, []pending{{f.Write, list[0].outcome}})
}

func (f fenced) about() About {
	a := f.Write.about()
	a.Fenced = true
	return a
}

// Then does something more in the transaction of a write, if that succeeds. The
// write keeps its place among the others but is no longer grouped with its kind.
func Then(w Write, more func(t *Tx) error) Write { return followed{w, more} }

type followed struct {
	Write

	more func(t *Tx) error
}

func (f followed) kind() reflect.Type { return nil }

func (f followed) apply(t *Tx, _ []pending) error {
	var refusal error
	if err := f.Write.apply(t, []pending{{f.Write, &refusal}}); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return f.more(t)
}

// nameOf names a write in logs. A Func has the name of the function that made it.
func nameOf(w Write) string {
	switch f := w.(type) {
	case followed:
		return nameOf(f.Write)
	case fenced:
		return nameOf(f.Write)
	case fairFunc:
		return nameOf(f.Func)
	}
	if kind := w.kind(); kind != nil {
		return kind.String()
	}
	if f, is := w.(Func); is {
		return path.Base(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
	}
	return fmt.Sprintf("%T", w)
}

// Ledger keeps rows in step with what the writes of a transaction change: counters
// and summaries that are cheaper to write once per group than once per write. The
// writer's goroutine alone calls it.
type Ledger interface {
	// Note takes a change announced with [Tx.Note]. It ignores changes of types that it
	// does not know.
	Note(change any)
	// Write writes what was noted since the last call.
	Write(t *Tx) error
	// Discard forgets what was noted since the last Write: it was rolled back.
	Discard()
}

// Observer returns a ledger that calls tell with each change after its group was committed, and that writes
// nothing. Changes of a group whose commit got no response are not told.
func Observer(tell func(change any)) Ledger { return &observer{tell: tell} }

type observer struct {
	tell    func(change any)
	noted   []any // by the write that is being done
	written []any // by those of the group that were done
}

func (o *observer) Note(change any) { o.noted = append(o.noted, change) }

func (o *observer) Write(*Tx) error {
	o.written = append(o.written, o.noted...)
	o.Discard()
	return nil
}

func (o *observer) Discard() {
	clear(o.noted)
	o.noted = o.noted[:0]
}

// begin forgets what the last group wrote.
func (o *observer) begin() {
	clear(o.written)
	o.written = o.written[:0]
}

func (o *observer) committed() error {
	for _, change := range o.written {
		o.tell(change)
	}
	o.begin()
	return nil
}

// ledgers are all ledgers of a database.
type ledgers []Ledger

func (l ledgers) note(change any) {
	for _, one := range l {
		one.Note(change)
	}
}

func (l ledgers) write(t *Tx) error {
	for _, one := range l {
		if err := one.Write(t); err != nil {
			return err
		}
	}
	return nil
}

// begin prepares for a group.
func (l ledgers) begin() {
	l.discard()
	for o := range l.observers() {
		o.begin()
	}
}

// committed tells the observers that the group is on disk.
func (l ledgers) committed(log *slog.Logger) {
	for o := range l.observers() {
		_ = guarded(log, "an observer", o.committed) // it has logged its panic
	}
}

func (l ledgers) observers() iter.Seq[*observer] {
	return func(yield func(*observer) bool) {
		for _, one := range l {
			if o, is := one.(*observer); is && !yield(o) {
				return
			}
		}
	}
}

func (l ledgers) discard() {
	for _, one := range l {
		one.Discard()
	}
}
