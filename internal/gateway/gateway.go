// Package gateway holds the rules: who may do what, and what follows from what
// happened. It checks keys, scopes, plans and device lists, turns requests into
// operations of the store, and turns what a session reports into states and
// events. It knows neither HTTP nor the network.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/throttle"
)

// Gateway applies the rules over one store, one member for each noun. Its
// methods may be called from many goroutines.
type Gateway struct {
	*core

	Deliveries    Deliveries
	Devices       Devices
	Events        Events
	Keys          Keys
	LinkPages     LinkPages
	Links         Links
	Maintenance   Maintenance
	Messages      Messages
	Replays       Replays
	SandboxPhones SandboxPhones
	Sessions      Sessions
	Statistics    Statistics
	Webhooks      Webhooks
	Workspaces    Workspaces
}

// The nouns. Each has the rules for one kind of thing.
type (
	Deliveries    struct{ *core }
	Devices       struct{ *core }
	Events        struct{ *core }
	Keys          struct{ *core }
	LinkPages     struct{ *core }
	Links         struct{ *core }
	Maintenance   struct{ *core }
	Messages      struct{ *core }
	Replays       struct{ *core }
	SandboxPhones struct{ *core }
	Sessions      struct{ *core }
	Statistics    struct{ *core }
	Webhooks      struct{ *core }
	Workspaces    struct{ *core }
)

// core is what all nouns share.
type core struct {
	db       *store.Store
	box      *seal.Box
	cursors  paging.Cursors
	log      *slog.Logger
	sandbox  Sandbox
	checkURL func(string) error
	checkVia func(string) error
	confirm  Confirm
	now      func() time.Time
	goodbye  time.Duration

	keys     keyCache
	running  inProgress
	linkRate *throttle.Limit // link attempts of each device
}

// Confirm refuses a member who has not entered the password again, or signed in again
// where the account has no password. Package people provides it.
type Confirm func(ctx context.Context, c access.Caller, password string) error

// Options configure a Gateway.
type Options struct {
	DB       *store.Store
	Box      *seal.Box
	Log      *slog.Logger
	Sandbox  Sandbox            // nil on a server for the real network
	CheckURL func(string) error // whether a webhook may be posted to a URL; its words reach the caller
	// CheckProxy tells whether the network may be dialled through a proxy; its
	// words reach the caller. Nil refuses every proxy.
	CheckProxy func(string) error
	// Confirm is asked before a member deletes a device or sees a secret. Nil refuses
	// both.
	Confirm Confirm
	// GoodbyeWait is how long deleting a device waits for the network's answer;
	// 0 is ten seconds.
	GoodbyeWait time.Duration
}

// New makes a Gateway.
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
		db: opts.DB, box: opts.Box, cursors: paging.Cursors{Box: opts.Box}, log: opts.Log, sandbox: opts.Sandbox,
		checkURL: opts.CheckURL, checkVia: opts.CheckProxy, confirm: opts.Confirm,
		now: time.Now, goodbye: cmp.Or(opts.GoodbyeWait, goodbyeWait),
		keys:    newKeyCache(opts.DB),
		running: inProgress{keys: map[scopedKey]struct{}{}}, linkRate: throttle.PerMinute(linkStarts),
	}
	return &Gateway{
		core:          c,
		Deliveries:    Deliveries{c},
		Devices:       Devices{c},
		Events:        Events{c},
		Keys:          Keys{c},
		LinkPages:     LinkPages{c},
		Links:         Links{c},
		Maintenance:   Maintenance{c},
		Messages:      Messages{c},
		Replays:       Replays{c},
		SandboxPhones: SandboxPhones{c},
		Sessions:      Sessions{c},
		Statistics:    Statistics{c},
		Webhooks:      Webhooks{c},
		Workspaces:    Workspaces{c},
	}
}

func (g *core) devices() Devices   { return Devices{g} }
func (g *core) links() Links       { return Links{g} }
func (g *core) messages() Messages { return Messages{g} }
func (g *core) webhooks() Webhooks { return Webhooks{g} }

func (g *core) time() postern.Time { return postern.TimeOf(g.now()) }

// mode of the devices made here.
func (g *core) mode() string {
	if g.sandbox != nil {
		return "sandbox"
	}
	return "live"
}

// open turns a page into what the store asks for.
func (g *core) open(ws postern.WorkspaceID, kind string, p paging.Page) (store.Page, error) {
	after, rows, err := g.cursors.Open(ws, kind, p)
	return store.Page{After: after, Limit: rows}, err
}

// inProgress holds the idempotency keys whose first request is still running
// on this node. The mark dies with its request.
type inProgress struct {
	mu   sync.Mutex
	keys map[scopedKey]struct{}
}

// start marks a key as running; ok is false when it is already.
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
