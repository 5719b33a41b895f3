package store

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// Store is what Postern keeps, one member for each noun. Its methods may be
// called from many goroutines.
type Store struct {
	*core

	Audit         Audit
	Chats         Chats
	Deliveries    Deliveries
	Devices       Devices
	Endpoints     Endpoints
	Events        Events
	Factors       Factors
	Hours         Hours
	Idempotency   Idempotency
	Identities    Identities
	Invitations   Invitations
	Keys          Keys
	LinkPages     LinkPages
	Links         Links
	Members       Members
	Messages      Messages
	Outbox        Outbox
	PasswordLinks PasswordLinks
	Replays       Replays
	SessionKeys   SessionKeys
	Settings      Settings
	SignIns       SignIns
	System        System
	Usage         Usage
	Users         Users
	Workspaces    Workspaces
}

// core is what all nouns share.
type core struct {
	db    *db.DB
	cache *deviceCache
	log   *slog.Logger
}

// exists prepares the question whether a query that counts finds anything.
func (c *core) exists(ctx context.Context, query string, args ...any) func() (bool, error) {
	return func() (bool, error) { return c.db.Exists(ctx, query, args...) }
}

// The nouns. Each has the statements of its own tables.
type (
	Audit         struct{ *core } // what people did
	Chats         struct{ *core } // the chats of a device
	Deliveries    struct{ *core } // of events to webhook endpoints
	Devices       struct{ *core } // linked accounts
	Endpoints     struct{ *core } // webhook endpoints
	Events        struct{ *core } // the log of events
	Factors       struct{ *core } // second factors of a user
	Hours         struct{ *core } // hourly counters of messages and attempts
	Idempotency   struct{ *core } // responses to idempotent requests
	Identities    struct{ *core } // accounts at an OpenID provider
	Invitations   struct{ *core } // to a workspace
	Keys          struct{ *core } // API keys
	LinkPages     struct{ *core } // pages that show a link code
	Links         struct{ *core } // attempts to link a device
	Members       struct{ *core } // users of a workspace
	Messages      struct{ *core } // in both directions
	Outbox        struct{ *core } // messages that wait to be sent
	PasswordLinks struct{ *core } // links by which a password is set
	Replays       struct{ *core } // of a part of the event log to an endpoint
	SessionKeys   struct{ *core } // keys of a device's session with the network
	Settings      struct{ *core } // values of the whole installation
	SignIns       struct{ *core } // login sessions of browsers
	System        struct{ *core } // figures for operators
	Usage         struct{ *core } // what a workspace has used of its plan
	Users         struct{ *core } // people who can sign in
	Workspaces    struct{ *core } // tenants
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Options configure [Open].
type Options struct {
	Dir string       // data directory; created when missing
	URL string       // of a PostgreSQL database; "": SQLite in the data directory
	Log *slog.Logger // nil discards

	patience func() time.Duration // how long PostgreSQL may take to respond; nil is the engine's default
}

// Errors of [Open].
type (
	LockedError = db.LockedError // another process holds the data directory
	InUseError  = db.InUseError  // another server uses the PostgreSQL database
)

// ErrNewer means that a newer release wrote the database.
var ErrNewer = db.ErrNewer

// Open opens the database and migrates it; see [db.Open] for its errors.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	engine, err := db.Open(ctx, engineOptions(opts))
	if err != nil {
		return nil, err
	}
	c := &core{db: engine, cache: newDeviceCache(engine), log: opts.Log}
	return &Store{
		core: c, Audit: Audit{c}, Chats: Chats{c}, Deliveries: Deliveries{c}, Devices: Devices{c}, Endpoints: Endpoints{c},
		Events: Events{c}, Factors: Factors{c}, Hours: Hours{c}, Idempotency: Idempotency{c}, Identities: Identities{c},
		Invitations: Invitations{c}, Keys: Keys{c}, LinkPages: LinkPages{c}, Links: Links{c}, Members: Members{c},
		Messages: Messages{c}, Outbox: Outbox{c}, PasswordLinks: PasswordLinks{c}, Replays: Replays{c},
		SessionKeys: SessionKeys{c}, Settings: Settings{c}, SignIns: SignIns{c}, System: System{c}, Usage: Usage{c},
		Users: Users{c}, Workspaces: Workspaces{c},
	}, nil
}

// engineOptions tell the engine what it does not know by itself: the tables, what follows
// changes, and our errors.
func engineOptions(opts Options) db.Options {
	tables, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // it is embedded
	}
	return db.Options{
		Dir: opts.Dir, URL: opts.URL, Log: opts.Log, Migrations: tables,
		Ledgers: []db.Ledger{newMessageHours(), newAttemptHours(), newChatSummaries()}, Unavailable: unavailable,
		AnswerLimit: opts.patience,
	}
}

// retryHint is how long callers are told to wait when the storage fails.
const retryHint = time.Second

// unavailable is what callers are told when the engine cannot do its work.
func unavailable(e *db.UnavailableError) error {
	p := &postern.Error{Reason: postern.Unavailable, Detail: e.Detail}
	if e.Wait {
		p.RetryAfter = retryHint
	}
	return p
}

// Close writes what waits, closes the database and releases the directory. Closing twice
// is not an error.
func (s *Store) Close() error { return s.db.Close() }

// Listen subscribes to a topic, for one id or, with "", for all of them.
func (s *Store) Listen(topic Topic, only string) *Listener { return s.db.Listen(topic, only) }

// Now is the time by the database's clock.
func (s *Store) Now() postern.Time { return postern.TimeOf(s.db.Now()) }

// Version is the number of the newest migration that was applied.
func (s *Store) Version(ctx context.Context) (int64, error) { return s.db.Version(ctx) }

// Taken is closed when another server has taken the database while this one was cut off
// from it: this one can no longer write and should end.
func (s *Store) Taken() <-chan struct{} { return s.db.Taken() }
