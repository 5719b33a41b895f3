// Package db is the storage engine: one SQL database, either SQLite in the data
// directory or PostgreSQL behind a URL. It knows nothing about what is stored.
//
// All writes go through one writer goroutine. A write is either a [Func], for
// what happens rarely, or a hot write made by [Item]: a value with its rows.
// The writer commits many writes with one fsync and answers each when its commit
// is on disk. Hot writes of one kind in a group are written together: PostgreSQL
// gets one statement with arrays, SQLite a prepared statement for each row. If a
// group fails, its writes are repeated one by one, so that one caller's conflict
// never fails its neighbours.
//
// A write says what the scheduler needs to know about it: its workspace and its
// urgency ([About]). While it runs, it announces what it changes: [Tx.Wake] wakes
// those who wait for a change once it is committed, and [Tx.Note] tells the
// engine's [Ledger] values, which keep counters and summaries in step within the
// same transaction.
//
// Reads have connections of their own and never wait for a write.
//
// With PostgreSQL the writer's connection holds a lock, so that only one server
// works on a database. A lost connection is replaced. A commit whose response was
// lost is never reported as done.
package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// DB is the database. Its methods may be called from many goroutines.
type DB struct {
	dialect   dialect
	lock      *DirLock
	writeDB   *sql.DB
	writer    *writer
	read      *sql.DB
	stmts     sync.Map // query → *prepared of the read pool
	hub       *hub
	upkeep    *upkeep
	clock     clock
	translate func(*UnavailableError) error
	trace     func(query string, args []any)
	step      func(ctx context.Context, write string) (end func(error))
	readers   *readers     // of connections
	lists     *readers     // of processors
	courier   *courier     // nil unless several servers share the database
	logFile   string       // of SQLite's write-ahead log; "" with PostgreSQL
	close     func() error // once

	connect func(context.Context) (*sql.Conn, error) // the writer's connection
	first   *sql.Conn                                // made at the start, until the writer has it
}

// Options configure Open.
type Options struct {
	Dir string       // data directory; created when missing
	URL string       // of a PostgreSQL database; "": SQLite in the data directory
	Log *slog.Logger // nil discards

	// Nodes lets several servers use the PostgreSQL database at the same time. They commit
	// in turn: a group of writes reads what all earlier ones have committed. All servers of a
	// database must set it.
	Nodes bool

	// Fence tells within a transaction, before its first fenced write, why this server may not
	// make such writes: others may have taken over what it worked for. Nil never refuses.
	Fence func(*Tx) error

	Migrations fs.FS    // SQL files, in the directories sqlite and postgres
	Ledgers    []Ledger // counters and summaries

	// Unavailable makes the error that callers get, beside an [UnavailableError], while
	// the database cannot do its work. Nil adds none.
	Unavailable func(*UnavailableError) error

	// AnswerLimit is how long a statement may go without a response of PostgreSQL before its
	// connection counts as lost. Nil is 30 seconds.
	AnswerLimit func() time.Duration

	// Trace is called with each statement before it runs, from many goroutines; args is nil
	// for those of the writer. Tests count and explain statements with it. Nil traces
	// nothing.
	Trace func(query string, args []any)

	// Committed is called after each group of writes that is on disk, by the only writer: with the
	// number of writes, and how long the group took. Nil calls nothing.
	Committed func(writes int, took time.Duration)

	// Step is called before each write of [DB.Do], with its name, and what it returns after the write.
	// Nil calls nothing.
	Step func(ctx context.Context, write string) (end func(error))

	// Lock is the lock of the data directory if the caller holds it, and releases it after the end of
	// the database. With nil, the database takes it.
	Lock *DirLock

	turnLimit time.Duration // see the constant; tests shorten it
}

// Open takes the data directory for this process, migrates the database and starts the
// writer. If another process holds the directory, the error is a [*LockedError]; if
// another server uses the PostgreSQL database, it is an [*InUseError]; if a newer
// release wrote the database, it is [ErrNewer].
func Open(ctx context.Context, opts Options) (*DB, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.turnLimit = cmp.Or(opts.turnLimit, turnLimit)
	if opts.Trace == nil {
		opts.Trace = func(string, []any) {}
	}
	db := &DB{hub: newHub(opts.Log), translate: opts.Unavailable, trace: opts.Trace, step: opts.Step}
	if opts.Lock == nil {
		var err error
		if db.lock, err = LockDir(opts.Dir); err != nil {
			return nil, err
		}
	}
	db.close = sync.OnceValue(db.shut)
	if err := db.open(ctx, opts); err != nil {
		return nil, errors.Join(db.report(err), db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, opts Options) (err error) {
	if opts.URL != "" {
		err = db.openPostgres(ctx, opts)
	} else {
		err = db.openSQLite(ctx, opts)
	}
	if err != nil {
		return err
	}
	db.readers, db.lists = newReaders(db.dialect.readers), newLists()
	db.startWriter(opts) //nolint:contextcheck // the writer lives until Close
	return nil
}

// startWriter starts the writer, which lives until Close.
func (db *DB) startWriter(opts Options) {
	db.writer = newWriter(connection{
		dialect: db.dialect, connect: db.connect, look: db.clock.look, conn: db.first,
		stmts: map[string]*prepared{}, taken: make(chan struct{}),
	}, opts.Ledgers, db.publish, opts.Log)
	db.first = nil
	db.writer.trace, db.writer.fence, db.writer.committed = opts.Trace, opts.Fence, opts.Committed
	db.writer.written = db.upkeep.written
	go db.writer.run()
}

// publish announces what a group has changed, to other servers too.
func (db *DB) publish(wakes []Wake) {
	db.hub.publish(wakes)
	if db.courier != nil {
		db.courier.add(wakes)
	}
}

// Taken is closed when another server has taken the PostgreSQL database while this one
// was cut off from it: this one can no longer write and should end.
func (db *DB) Taken() <-chan struct{} { return db.writer.taken }

// Close writes what waits, closes the database and releases the directory. Closing
// twice is not an error.
func (db *DB) Close() error { return db.close() }

func (db *DB) shut() error {
	var errs []error
	if db.writer != nil {
		db.writer.close()
	}
	if db.courier != nil {
		db.courier.close()
	}
	if db.upkeep != nil {
		errs = append(errs, db.upkeep.close())
	}
	if db.first != nil {
		discard(db.first)
	}
	for _, c := range []*sql.DB{db.read, db.writeDB} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if db.lock != nil {
		errs = append(errs, db.lock.Release())
	}
	return errors.Join(errs...)
}

// Do hands a write over and waits until it is durable or refused. ctx ends only the wait
// for a place in the queue: the outcome of a write must be known.
func (db *DB) Do(ctx context.Context, w Write) error {
	if db.step == nil {
		return db.report(db.writer.do(ctx, w))
	}
	end := db.step(ctx, nameOf(w))
	err := db.report(db.writer.do(ctx, w))
	end(err)
	return err
}

// Start hands a write over. The returned function waits, once, until the write is durable
// or refused.
func (db *DB) Start(ctx context.Context, w Write) (wait func() error, err error) {
	outcome, err := db.writer.start(ctx, w)
	if err != nil {
		return nil, db.report(err)
	}
	return func() error { return db.report(outcome()) }, nil
}

// Later hands a write over without waiting for it. After a lost connection it may be
// written twice, so that must do no harm. A failure is logged.
func (db *DB) Later(w Write) { db.writer.hand(newRequest(w)) }

// After hands a write over. It calls then once with the outcome, mostly from the writer:
// then must not block.
func (db *DB) After(w Write, then func(error)) {
	r := newRequest(w)
	r.then = func(err error) { then(db.report(err)) }
	db.writer.hand(r)
}

// report adds what [Options.Unavailable] makes of an [UnavailableError].
func (db *DB) report(err error) error {
	if err == nil || db.translate == nil {
		return err
	}
	if e, is := errors.AsType[*UnavailableError](err); is {
		return reported{err, db.translate(e)}
	}
	return err
}

// reported is an error with what it means to callers.
type reported struct {
	error
	meaning error
}

func (r reported) Unwrap() []error { return []error{r.meaning, r.error} }
