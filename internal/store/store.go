package store

import (
	"context"

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
	db *DB
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

// Open opens the database and brings it up to date; see [openDB].
func Open(ctx context.Context, opts Options) (*Store, error) {
	db, err := openDB(ctx, opts)
	if err != nil {
		return nil, err
	}
	c := &core{db}
	return &Store{
		core: c, Audit: Audit{c}, Chats: Chats{c}, Deliveries: Deliveries{c}, Devices: Devices{c}, Endpoints: Endpoints{c},
		Events: Events{c}, Factors: Factors{c}, Hours: Hours{c}, Idempotency: Idempotency{c}, Identities: Identities{c},
		Invitations: Invitations{c}, Keys: Keys{c}, LinkPages: LinkPages{c}, Links: Links{c}, Members: Members{c},
		Messages: Messages{c}, Outbox: Outbox{c}, PasswordLinks: PasswordLinks{c}, Replays: Replays{c},
		SessionKeys: SessionKeys{c}, Settings: Settings{c}, SignIns: SignIns{c}, System: System{c}, Usage: Usage{c},
		Users: Users{c}, Workspaces: Workspaces{c},
	}, nil
}

// Close writes what waits, closes the database and releases the directory.
// Closing twice is not an error.
func (s *Store) Close() error { return s.db.Close() }

// Listen subscribes to a topic, for one id or, with "", for all of them.
func (s *Store) Listen(topic Topic, only string) *Listener { return s.db.Listen(topic, only) }

// Now is the time by the database's clock.
func (s *Store) Now() postern.Time { return s.db.Now() }

// Version is the number of the newest migration that was applied.
func (s *Store) Version(ctx context.Context) (int64, error) { return s.db.Version(ctx) }

// Taken is closed when another server has taken the database while this one was
// cut off from it: this one cannot write any more and should end.
func (s *Store) Taken() <-chan struct{} { return s.db.Taken() }
