// Package store keeps all persistent data in one SQL database.
//
// Writes go through one writer, as operations: values with their rows. The writer commits
// many operations with one fsync and answers each when its commit is on disk. Most methods
// wait for that. A few are documented not to wait; their operations keep their place in the
// order of all writes. Reads have connections of their own and never wait for a write.
//
// The engine is SQLite in the data directory, or PostgreSQL at a URL. With PostgreSQL the
// writer's connection holds a lock, so that only one server works on a database; the
// connection is reopened when it is lost. A commit whose outcome is unknown is never
// reported as done.
//
// Statements stand next to the operation that uses them, with $1 placeholders and only the
// SQL that both engines accept; package db contains what differs.
//
// A statement on behalf of a caller names the caller's workspace, unless it takes the id of
// a row that an earlier statement has found by it. The methods for the engines (sessions,
// deliveries, maintenance) serve all workspaces. They take ids that were read from the
// database, never from a caller, and need no workspace: those of [Outbox] and [SessionKeys],
// the progress of [Links], [Devices.Purge], ForEngine and ForDelivery, the handshake of
// [Endpoints], the queue and the attempts of [Deliveries], [Replays.Step], and the receipts
// of [Messages].
//
// A list reads a bounded number of rows, whatever its filter: each has an index, or a page
// looks at a part of a table and says where the next one continues. A read with a context
// of [ReadFor] ends with it.
package store

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// Store is the data of Postern, with one field for each noun. Its methods may be called
// concurrently.
type Store struct {
	*core

	Audit       Audit
	Blobs       Blobs
	Chats       Chats
	Deliveries  Deliveries
	Devices     Devices
	Endpoints   Endpoints
	Events      Events
	Hours       Hours
	Idempotency Idempotency
	Keys        Keys
	LinkPages   LinkPages
	Links       Links
	Media       Media
	Messages    Messages
	Nodes       Nodes
	Outbox      Outbox
	Replays     Replays
	SessionKeys SessionKeys
	Settings    Settings
	System      System
	Usage       Usage
	Workspaces  Workspaces
}

// core is what all nouns share.
type core struct {
	db    *db.DB
	cache *deviceCache
	log   *slog.Logger
	node  atomic.Pointer[Node] // this server, once it shares the database
}

// exists returns a function that reports whether a counting query finds any row.
func (c *core) exists(ctx context.Context, query string, args ...any) func() (bool, error) {
	return func() (bool, error) { return c.db.Exists(ctx, query, args...) }
}

// The nouns. Each one has the operations and statements of its own tables.
type (
	Audit       struct{ *core } // what people did
	Blobs       struct{ *core } // the stored bytes of files, once for each content
	Chats       struct{ *core } // the chats of a device
	Deliveries  struct{ *core } // of events to webhook endpoints
	Devices     struct{ *core } // linked accounts
	Endpoints   struct{ *core } // webhook endpoints
	Events      struct{ *core } // the log of events
	Hours       struct{ *core } // hourly counters of messages and attempts
	Idempotency struct{ *core } // responses to idempotent requests
	Keys        struct{ *core } // API keys
	LinkPages   struct{ *core } // pages that show a link code
	Links       struct{ *core } // attempts to link a device
	Media       struct{ *core } // files that were uploaded or received
	Messages    struct{ *core } // in both directions
	Nodes       struct{ *core } // servers that share the database, and what they own
	Outbox      struct{ *core } // messages that wait to be sent
	Replays     struct{ *core } // of a part of the event log to an endpoint
	SessionKeys struct{ *core } // keys of a device's session with the network
	Settings    struct{ *core } // values of the whole installation
	System      struct{ *core } // figures for operators
	Usage       struct{ *core } // what a workspace has used of its plan
	Workspaces  struct{ *core } // tenants
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Options configure [Open].
type Options struct {
	Dir string       // data directory; created when missing
	URL string       // of a PostgreSQL database; "" for SQLite in the data directory
	Log *slog.Logger // nil discards

	Lock  *db.DirLock // of the data directory if the caller holds it; see [db.Options]
	Nodes bool        // the PostgreSQL database is shared with other servers; see [db.Options]

	// Trace is called with each statement before it runs; see [db.Options].
	Trace func(query string, args []any)

	// Observe is called with each change of the types MessageMoved, DeviceMoved, LinkEnded and
	// EventsRecorded, after it was committed, by the only writer. It must be fast. Nil observes nothing.
	Observe func(change any)
	// Committed is called after each group of writes; see [db.Options].
	Committed func(writes int, took time.Duration)

	// Step is called before each write that a caller waits for; see [db.Options].
	Step func(ctx context.Context, write string) (end func(error))

	answerLimit func() time.Duration // see [db.Options]
}

// LockedError is the error of [Open] when another process holds the data directory.
type LockedError = db.LockedError

// InUseError is the error of [Open] when another server uses the PostgreSQL database.
type InUseError = db.InUseError

// ErrNewer means that a newer release wrote the database.
var ErrNewer = db.ErrNewer

// Open opens the database and migrates it; see [db.Open] for its errors.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c := &core{log: opts.Log}
	engine, err := db.Open(ctx, c.engineOptions(opts))
	if err != nil {
		return nil, err
	}
	c.db, c.cache = engine, newDeviceCache(engine)
	if !engine.Postgres() {
		if err := engine.Do(ctx, db.Func(lowerHistory)); err != nil { // for rows that were copied from PostgreSQL
			return nil, errors.Join(err, engine.Close())
		}
	}
	return &Store{
		core: c, Audit: Audit{c}, Blobs: Blobs{c}, Chats: Chats{c}, Deliveries: Deliveries{c}, Devices: Devices{c},
		Endpoints: Endpoints{c}, Events: Events{c}, Hours: Hours{c}, Idempotency: Idempotency{c}, Keys: Keys{c},
		LinkPages: LinkPages{c}, Links: Links{c}, Media: Media{c}, Messages: Messages{c}, Nodes: Nodes{c},
		Outbox: Outbox{c}, Replays: Replays{c}, SessionKeys: SessionKeys{c}, Settings: Settings{c}, System: System{c},
		Usage: Usage{c}, Workspaces: Workspaces{c},
	}, nil
}

// engineOptions returns what the engine needs from this package: the tables, the reactions
// to changes, and the errors.
func (c *core) engineOptions(opts Options) db.Options {
	tables, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // cannot happen: the directory is embedded
	}
	return db.Options{
		Dir: opts.Dir, URL: opts.URL, Log: opts.Log, Migrations: tables,
		Ledgers: opts.ledgers(), Committed: opts.Committed, Unavailable: unavailable,
		AnswerLimit: opts.answerLimit, Trace: opts.Trace, Step: opts.Step, Nodes: opts.Nodes, Fence: c.fence,
		Lock: opts.Lock,
	}
}

func (o Options) ledgers() []db.Ledger {
	list := []db.Ledger{newMessageCounts(), newAttemptCounts(), newChatSummaries()}
	if o.Observe != nil {
		list = append(list, db.Observer(o.Observe))
	}
	return list
}

// retryHint is how long callers are told to wait when the storage fails.
const retryHint = time.Second

// unavailable returns the error for callers when the engine cannot do its work.
func unavailable(e *db.UnavailableError) error {
	p := &postern.Error{Reason: postern.Unavailable, Detail: e.Detail}
	if e.Wait {
		p.RetryAfter = retryHint
	}
	return p
}

// Close writes the pending operations, closes the database and releases the directory.
// Closing twice is not an error.
func (s *Store) Close() error { return s.db.Close() }

// ReadFor returns a context whose reads end when it ends, and take part in the workspace's
// share of the connections for reading; see [db.ReadFor].
func ReadFor(ctx context.Context, ws postern.WorkspaceID) context.Context {
	return db.ReadFor(ctx, string(ws))
}

// KeepTurn returns a context of [ReadFor] whose turn to read lasts until end is called; see
// [db.KeepTurn].
func KeepTurn(ctx context.Context) (kept context.Context, end func()) { return db.KeepTurn(ctx) }

// EndTurn ends the turn that a context of [KeepTurn] holds, if any. Call it before waiting for anything but the
// database.
func EndTurn(ctx context.Context) { db.EndTurn(ctx) }

// Limits.
const (
	listGuess = 8 // rows for which a list has capacity at first

	dueGuess   = 32      // listGuess for deliveries
	cacheBytes = 4 << 20 // of memory for the device cache

	// MessagesCounted is the number up to which queued messages are counted. Counting reads
	// each message, because no index of the queue includes the status; such an index would
	// cost every send.
	MessagesCounted = 10_000
	// DeliveriesCounted is the number up to which pending deliveries are counted, which can
	// be very many when a receiver is down for days. Counting this many takes 8 ms with
	// PostgreSQL and 2 ms with SQLite.
	DeliveriesCounted = 20_000
	// IdempotencyKept is how long the response to an idempotent request is stored.
	IdempotencyKept = 24 * time.Hour
	// catchUpWindow is how far back an endpoint that becomes active receives events.
	catchUpWindow = 72 * time.Hour
	catchUpChunk  = 500            // events in one operation of catching up
	purgeChunk    = 500            // rows in one operation of deleting
	failedAtOnce  = 200            // messages that fail in one operation when a link ends; about 25 ms of the writer
	bodyInline    = "8192"         // bytes of a body that is read with its delivery; a larger one is read by Deliveries.Body
	logBytes      = 1<<20 - 32<<10 // of event bodies on a page of the log; the rest of 1 MiB is for commas and a cursor
	textBytes     = 1 << 20        // of texts, after which a page of messages is full
	logScan       = 10_000         // events that one page of the log reads
	messageScan   = 2000           // messages that one page of a list looks at
	plainScan     = 500            // messageScan when the index covers all conditions but the present number
	commonWord    = 10             // of plainScan messages have a word that is looked for in their order
	wordScan      = 20_000         // entries of PostgreSQL's words in which a page looks for common ones
	wordChunk     = 500            // messages whose words are written in one operation
	wordBytes     = 64 << 10       // of their texts, after which the operation has enough
	textScan      = 2000           // workspaces or users among which one page searches a text

	// lineWait is how long an event delivered in order waits for the one before it in its
	// chat, counted from the first attempt of that one.
	lineWait      = 10 * time.Minute
	replayChunk   = 100  // deliveries that a replay queues in one operation
	replayLow     = 50   // pending deliveries up to which a replay queues more
	attemptsShown = 1000 // attempts of one delivery in a list; each manual retry adds a round

	// An endpoint is disabled after this long without a success and at least this many
	// failed attempts.
	disableAfter    = 120 * time.Hour
	DisableFailures = 10
)

// look reads one row of figures about a part of a table, which takes longer than
// [db.DB.Row].
func (c *core) look(ctx context.Context, query string, args []any, dst ...any) error {
	return c.db.Rows(ctx, query, args, func(r *sql.Rows) error { return r.Scan(dst...) })
}

// Engine returns the database itself, for the packages below this one.
func (s *Store) Engine() *db.DB { return s.db }

// Listen subscribes to a topic, for one id or, with "", for all ids.
func (s *Store) Listen(topic Topic, only string) *Listener { return s.db.Listen(topic, only) }

// Rouse wakes those in this process who listen to all ids of some topics with [Anything], although nothing has changed.
func (s *Store) Rouse(topics ...Topic) { s.db.Rouse(topics...) }

// Now returns the time by the database's clock.
func (s *Store) Now() postern.Time { return postern.TimeOf(s.db.Now()) }

// Version returns the number of the newest migration that was applied.
func (s *Store) Version(ctx context.Context) (int64, error) { return s.db.Version(ctx) }

// Taken returns a channel that is closed when another server has taken the database over
// while this one had no connection to it. This server can no longer write and should end.
func (s *Store) Taken() <-chan struct{} { return s.db.Taken() }

// Topic is a kind of change that listeners wait for.
type Topic = db.Topic

// Listener collects the ids that changed until they are taken.
type Listener = db.Listener

// Anything is an id that listeners to all ids get when anything of the topic may have changed.
const Anything = db.Anything

// The topics. The noun in brackets tells whose id is reported.
const (
	DeviceChanged   Topic = "device"   // desired or status [device]
	LinkChanged     Topic = "link"     // code or outcome [device]
	OutboundQueued  Topic = "outbound" // a message waits to be sent [device]
	OutboundUrgent  Topic = "urgent"   // a message with high priority does [device]
	DeliveryDue     Topic = "delivery" // an event waits for its first attempt [endpoint]
	RetryDue        Topic = "retry"    // a retry was requested, or queued by a replay [endpoint]
	EndpointChanged Topic = "endpoint" // created, activated, deleted [endpoint]
	ReplayChanged   Topic = "replay"   // created, or one of its deliveries ended [replay]
	EventLogged     Topic = "event"    // recorded [workspace]
	KeyChanged      Topic = "key"      // revoked, or the workspace's plan changed [workspace]

	MediaWanted Topic = "media" // a file waits to be fetched [device; "" for one to send]

	NodesChanged Topic = "node" // a server came or went, or released something

	SecretKeysChanged Topic = "secret-key" // another secret key encrypts, or one is retired

	DeviceRow Topic = "device-row" // any column that reads of devices show; for the cache
)

// withTail scans further columns after those of a noun.
type withTail struct {
	db.Scanner

	tail []any
}

func (s withTail) Scan(dst ...any) error { return s.Scanner.Scan(append(dst, s.tail...)...) }

// jsonColumn scans a column that holds JSON.
type jsonColumn struct{ v any }

func (c jsonColumn) Scan(src any) error {
	switch s := src.(type) {
	case string:
		if m, ok := c.v.(*map[string]string); ok && s == "{}" {
			*m = map[string]string{} // most are empty
			return nil
		}
		return json.Unmarshal([]byte(s), c.v)
	case []byte:
		return json.Unmarshal(s, c.v)
	}
	return fmt.Errorf("a JSON column holds %T", src)
}

// asJSON returns the text of a JSON column. The values are lists and maps of strings, which
// can always be encoded.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// textList returns the parameter for [db.DB.InList]. PostgreSQL reads the array, and
// refuses the escape of NUL in it.
func textList[T ~string](list []T) string {
	list = slices.Clone(list) // stays nil
	for i, text := range list {
		list[i] = T(db.Clean(string(text)))
	}
	return asJSON(list)
}

// notFoundOr returns the API error for an id that the workspace does not have:
// ResourceNotAllowed when the id exists in another workspace, NotFound otherwise.
func notFoundOr(err error, exists func() (bool, error), what string) error {
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	elsewhere, err := exists()
	if err != nil {
		return err
	}
	if elsewhere {
		return postern.Errorf(postern.ResourceNotAllowed, "this key may not use that %s", what)
	}
	return postern.Errorf(postern.NotFound, "there is no such %s", what)
}

// oldRow is a row that may be old enough to be removed.
type oldRow struct {
	id    string
	place int64 // grows in the order of recording
	at    postern.Time
	held  bool // something still needs it
}

// oldest returns the first rows after a place that were made before a time. Rows are
// recorded in the order of time, apart from steps of the clock, so it stops at the first
// row that is too young, and the cost of a pass is proportional to what it removes.
func (c *core) oldest(ctx context.Context, query string, ws postern.WorkspaceID, before postern.Time,
	from int64, args ...any,
) (list []oldRow, err error) {
	err = c.db.Rows(ctx, query, append([]any{ws, from, purgeChunk}, args...), func(r *sql.Rows) error {
		var row oldRow
		err := r.Scan(&row.id, &row.place, &row.at, &row.held)
		list = append(list, row)
		return err
	})
	for i, row := range list {
		if row.at >= before {
			return list[:i], err
		}
	}
	return list, err
}

// free returns the rows that nothing needs.
func free(list []oldRow) []oldRow {
	return slices.DeleteFunc(slices.Clone(list), func(row oldRow) bool { return row.held })
}

// addID reads rows that have an id alone.
func addID(ids *[]string) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		*ids = append(*ids, id)
		return err
	}
}

func idsOf(list []oldRow) (ids []string) {
	for _, row := range list {
		ids = append(ids, row.id)
	}
	return ids
}

// One group of writes is committed at a time: one process writes a database, or several servers
// write in turn (docs/decisions/0040-servers-write-in-turn.md). Each place in this package, and in
// those over it, that relies on it has a comment with the words "Single writer:". They are of five kinds:
//
//   - order: positions, numbers and sequences grow in the order of commit. A reader that
//     follows a position never misses an event that commits later, and max(position) is the
//     end of the log.
//   - count: what is counted, or read, decides whether a row may be added or changed:
//     quotas, slots, endpoints, replays, invitations, identities, owners, idempotency keys.
//   - change: a row is read, changed in memory or by a function, and written back.
//   - cache: this process's own commits invalidate what it remembers. With several servers this
//     does not hold, and nothing is cached with PostgreSQL.
//   - ledger: a table is written once per group, from what the group noted.
//
// IndexWords reads before its transaction: one server at a time may call it.
