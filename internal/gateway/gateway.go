// Package gateway holds the rules for devices, messages, events, webhooks, keys and plans.
// It turns requests into operations of the store, and what a session reports into states
// and events. Each exported method checks the rights of its caller through package access.
// The package knows neither HTTP nor the network.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/media/library"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/presence"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/contacts"
	"postern/internal/throttle"
)

// Gateway applies the rules over one store, with one member for each noun. Its methods may
// be called from several goroutines.
type Gateway struct {
	*core

	Actions       Actions
	Channels      Channels
	Chats         Chats
	Contacts      Contacts
	Deliveries    Deliveries
	Devices       Devices
	Events        Events
	Groups        Groups
	Keys          Keys
	Labels        Labels
	LinkPages     LinkPages
	Links         Links
	Maintenance   Maintenance
	Media         Media
	Messages      Messages
	Replays       Replays
	SandboxPhones SandboxPhones
	Sessions      Sessions
	Statistics    Statistics
	Webhooks      Webhooks
	Workspaces    Workspaces
}

// The nouns. Each one has the rules for one kind of thing.
type (
	Channels      struct{ *core } // channels that accounts follow
	Chats         struct{ *core } // conversations of devices
	Contacts      struct{ *core } // people on the network
	Deliveries    struct{ *core } // events on their way to endpoints
	Devices       struct{ *core } // linked accounts
	Events        struct{ *core } // the event log
	Groups        struct{ *core } // groups that devices are in
	Keys          struct{ *core } // API keys
	Labels        struct{ *core } // labels of chats
	LinkPages     struct{ *core } // pages that show a link attempt
	Links         struct{ *core } // link attempts
	Maintenance   struct{ *core } // removal of old data
	Media         struct{ *core } // files of messages
	Messages      struct{ *core } // sent and received messages
	Replays       struct{ *core } // repeated deliveries of a part of the log
	SandboxPhones struct{ *core } // simulated phones
	Sessions      struct{ *core } // what the session engine reports and reads
	Statistics    struct{ *core } // figures of a workspace and of the server
	Webhooks      struct{ *core } // webhook endpoints
	Workspaces    struct{ *core } // workspaces, plans and limits
)

// core is shared by all nouns.
type core struct {
	db       *store.Store
	box      *seal.Box
	library  *library.Library
	cursors  paging.Cursors
	log      *slog.Logger
	sandbox  Sandbox
	checkURL func(string) error
	checkVia func(string) error
	confirm  Confirm
	now      func() time.Time
	goodbye  time.Duration
	presence *presence.Board

	keys     keyCache
	running  inProgress
	erasures contacts.Waiting
	linkRate *throttle.Limit // limits the link attempts of each device
}

// WholePage cuts a list that the caller has read into pages; see [paging.Whole].
func WholePage[T any](
	g *Gateway, c access.Caller, kind string, list []T, p paging.Page,
) (paging.List[T], error) {
	return paging.Whole(g.core.cursors, c.Workspace(), kind, list, p)
}

// Confirm refuses a member who has not entered the password again, or who has not signed
// in again if the account has no password. Package people provides it.
type Confirm func(ctx context.Context, c access.Caller, password string) error

// Options configure a Gateway.
type Options struct {
	DB       *store.Store
	Box      *seal.Box
	Library  *library.Library // keeps files; nil: the server takes none
	Log      *slog.Logger
	Sandbox  Sandbox            // nil on a server for the real network
	CheckURL func(string) error // refuses URLs for webhooks; the caller sees its errors
	// CheckProxy refuses URLs of proxies to the network; the caller sees its errors. If it
	// is nil, every proxy is refused.
	CheckProxy func(string) error
	// Confirm is called before a member deletes a device or sees a secret. If it is nil,
	// both are refused.
	Confirm Confirm
	// Shared says that other servers may use the database.
	Shared bool
	// GoodbyeWait is how long Devices.Delete waits for the network's answer; 0 means 10
	// seconds.
	GoodbyeWait time.Duration
}

// New returns a Gateway.
func New(opts Options) *Gateway {
	if opts.CheckProxy == nil {
		opts.CheckProxy = func(string) error { return errors.New("this server does not support proxies") }
	}
	if opts.Confirm == nil {
		opts.Confirm = func(context.Context, access.Caller, string) error {
			return postern.Errorf(postern.Unavailable, "this server cannot check passwords")
		}
	}
	c := &core{
		db: opts.DB, box: opts.Box, library: opts.Library, cursors: paging.Cursors{Box: opts.Box}, log: opts.Log,
		sandbox:  opts.Sandbox,
		checkURL: opts.CheckURL, checkVia: opts.CheckProxy, confirm: opts.Confirm,
		now: func() time.Time { return opts.DB.Now().Std() }, goodbye: cmp.Or(opts.GoodbyeWait, goodbyeWait),
		presence: presence.New(opts.DB.Engine(), opts.Box),
		keys:     newKeyCache(opts.DB, opts.Shared),
		running:  inProgress{keys: map[scopedKey]struct{}{}}, linkRate: throttle.PerMinute(linkStarts),
	}
	return &Gateway{
		core:          c,
		Actions:       Actions{c},
		Channels:      Channels{c},
		Chats:         Chats{c},
		Contacts:      Contacts{c},
		Deliveries:    Deliveries{c},
		Devices:       Devices{c},
		Events:        Events{c},
		Groups:        Groups{c},
		Keys:          Keys{c},
		Labels:        Labels{c},
		LinkPages:     LinkPages{c},
		Links:         Links{c},
		Maintenance:   Maintenance{c},
		Media:         Media{c},
		Messages:      Messages{c},
		Replays:       Replays{c},
		SandboxPhones: SandboxPhones{c},
		Sessions:      Sessions{c},
		Statistics:    Statistics{c},
		Webhooks:      Webhooks{c},
		Workspaces:    Workspaces{c},
	}
}

// ReadFor returns a context for a request on behalf of a workspace: what it reads from the
// database takes part in the workspace's share of the connections, and ends when the
// context ends.
func ReadFor(ctx context.Context, ws postern.WorkspaceID) context.Context {
	return store.ReadFor(ctx, ws)
}

// KeepTurn returns a context of [ReadFor] for a request that reads a list and encodes it.
// Both happen in one turn of the workspace, which ends when end is called, so that its
// requests keep at most half of the processors busy.
func KeepTurn(ctx context.Context) (kept context.Context, end func()) { return store.KeepTurn(ctx) }

func (g *core) devices() Devices   { return Devices{g} }
func (g *core) links() Links       { return Links{g} }
func (g *core) messages() Messages { return Messages{g} }
func (g *core) webhooks() Webhooks { return Webhooks{g} }

func (g *core) time() postern.Time { return postern.TimeOf(g.now()) }

// mode is the mode of the devices that are created here.
func (g *core) mode() string {
	if g.sandbox != nil {
		return "sandbox"
	}
	return "live"
}

// open turns a page into the store's form.
func (g *core) open(ws postern.WorkspaceID, kind string, p paging.Page) (store.Page, error) {
	after, rows, err := g.cursors.Open(ws, kind, p)
	return store.Page{After: after, Limit: rows}, err
}

// inProgress holds the idempotency keys whose first request is still running on this node.
// An entry lasts as long as its request.
type inProgress struct {
	mu   sync.Mutex
	keys map[scopedKey]struct{}
}

// start marks a key as running; ok is false if it is already marked.
func (p *inProgress) start(k scopedKey) (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, running := p.keys[k]; running {
		return nil, false
	}
	p.keys[k] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.keys, k)
	}, true
}

// act is the audit log's entry for something that an actor did.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}

// actOn is the audit log's entry for an operator's change of a workspace; what is the
// value that it was changed to.
func actOn(by access.Actor, at postern.Time, ws postern.WorkspaceID, name, what string) store.Act {
	o := act(by, at, ws, name, string(ws))
	o.Name = what
	return o
}

// did is the audit log's entry for something that a caller did. The acts of members and of
// the operator are recorded; those of an API key are not. The subject's name is stored too,
// because the subject may be gone when the log is read. It must not name a contact, who may be
// erased: of a message, the log shows the recipient for as long as the message is there.
func did(c access.Caller, at postern.Time, name, subject, subjectName string) []store.Act {
	if c.Key.ID != "" {
		return nil
	}
	return didByAny(c, at, name, subject, subjectName)
}

// didByAny is did for an act that is recorded of API keys too: it decides where events are
// sent.
func didByAny(c access.Caller, at postern.Time, name, subject, subjectName string) []store.Act {
	a := act(c.Actor(), at, c.Workspace(), name, subject)
	a.Name, a.KeyID = subjectName, c.Key.ID
	return []store.Act{a}
}
