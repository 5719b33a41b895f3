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

	"postern/internal/factor"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// Gateway applies the rules over one store, one member for each noun. Its
// methods may be called from many goroutines.
type Gateway struct {
	*core

	Audit         Audit
	Deliveries    Deliveries
	Devices       Devices
	Events        Events
	Identities    Identities
	Invitations   Invitations
	Keys          Keys
	LinkPages     LinkPages
	Links         Links
	Maintenance   Maintenance
	Members       Members
	Messages      Messages
	Operators     Operators
	PasswordLinks PasswordLinks
	Replays       Replays
	SandboxPhones SandboxPhones
	SecondFactors SecondFactors
	Sessions      Sessions
	SignIns       SignIns
	Statistics    Statistics
	Users         Users
	Webhooks      Webhooks
}

// The nouns. Each has the rules for one kind of thing.
type (
	Audit         struct{ *core }
	Deliveries    struct{ *core }
	Devices       struct{ *core }
	Events        struct{ *core }
	Identities    struct{ *core }
	Invitations   struct{ *core }
	Keys          struct{ *core }
	LinkPages     struct{ *core }
	Links         struct{ *core }
	Maintenance   struct{ *core }
	Members       struct{ *core }
	Messages      struct{ *core }
	Operators     struct{ *core }
	PasswordLinks struct{ *core }
	Replays       struct{ *core }
	SandboxPhones struct{ *core }
	SecondFactors struct{ *core }
	Sessions      struct{ *core }
	SignIns       struct{ *core }
	Statistics    struct{ *core }
	Users         struct{ *core }
	Webhooks      struct{ *core }
)

// core is what all nouns share.
type core struct {
	db       *store.Store
	box      *seal.Box
	log      *slog.Logger
	sandbox  Sandbox
	checkURL func(string) error
	checkVia func(string) error
	now      func() time.Time
	goodbye  time.Duration

	keys     keyCache
	running  inProgress
	hashing  *hashing
	guesses  *guesses
	linkRate limit // attempts of each device
	signOns  limit // of each network
	mails    mails

	passkeys   *factor.Passkeys // nil on a server that can have none
	noPasskeys error            // why
}

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
	// BaseURL is where browsers reach the dashboard: passkeys are bound to it.
	BaseURL string
	// PasswordMemory is what hashing a password takes, in KiB; 0 is 64 MiB. Less is
	// for tests that are not about it.
	PasswordMemory uint32
	// GoodbyeWait is how long deleting a device waits for the network's answer;
	// 0 is ten seconds.
	GoodbyeWait time.Duration
}

// New makes a Gateway.
func New(opts Options) *Gateway {
	if opts.CheckProxy == nil {
		opts.CheckProxy = func(string) error { return errors.New("this server takes no proxies") }
	}
	passkeys, noPasskeys := factor.NewPasskeys(opts.BaseURL)
	c := &core{
		db: opts.DB, box: opts.Box, log: opts.Log, sandbox: opts.Sandbox, checkURL: opts.CheckURL, checkVia: opts.CheckProxy, now: time.Now, goodbye: cmp.Or(opts.GoodbyeWait, goodbyeWait),
		keys:    keyCache{changed: opts.DB.Listen(store.KeyChanged, ""), byHash: map[[32]byte]Caller{}, used: map[postern.KeyID]time.Time{}},
		running: inProgress{keys: map[scopedKey]struct{}{}},
		hashing: newHashing(opts.PasswordMemory), guesses: newGuesses(), linkRate: newLimit(linkStarts, time.Minute), signOns: newLimit(signOnStarts, time.Hour), mails: newMails(), passkeys: passkeys, noPasskeys: noPasskeys,
	}
	return &Gateway{
		core:          c,
		Audit:         Audit{c},
		Deliveries:    Deliveries{c},
		Devices:       Devices{c},
		Events:        Events{c},
		Identities:    Identities{c},
		Invitations:   Invitations{c},
		Keys:          Keys{c},
		LinkPages:     LinkPages{c},
		Links:         Links{c},
		Maintenance:   Maintenance{c},
		Members:       Members{c},
		Messages:      Messages{c},
		Operators:     Operators{c},
		PasswordLinks: PasswordLinks{c},
		Replays:       Replays{c},
		SandboxPhones: SandboxPhones{c},
		SecondFactors: SecondFactors{c},
		Sessions:      Sessions{c},
		SignIns:       SignIns{c},
		Statistics:    Statistics{c},
		Users:         Users{c},
		Webhooks:      Webhooks{c},
	}
}

func (g *core) devices() Devices         { return Devices{g} }
func (g *core) invitations() Invitations { return Invitations{g} }
func (g *core) links() Links             { return Links{g} }
func (g *core) messages() Messages       { return Messages{g} }
func (g *core) users() Users             { return Users{g} }
func (g *core) webhooks() Webhooks       { return Webhooks{g} }

func (g *core) time() postern.Time { return postern.TimeOf(g.now()) }

// mode of the devices made here.
func (g *core) mode() string {
	if g.sandbox != nil {
		return "sandbox"
	}
	return "live"
}

// CreateWorkspace adds a workspace to which nobody belongs yet. For whoever can reach
// the server's own socket.
func (g Operators) CreateWorkspace(ctx context.Context, name, plan string) (postern.Workspace, error) {
	ws, _, err := g.OpenWorkspace(ctx, Operator(), NewWorkspace{Name: name, Plan: plan})
	return ws, err
}

// Workspaces lists all workspaces. For the operator.
func (g Operators) Workspaces(ctx context.Context) ([]postern.Workspace, error) {
	return g.db.Workspaces.List(ctx)
}

func checkPlan(plan string) error {
	if _, ok := postern.PlanByName(plan); !ok {
		return postern.Invalid("/plan", "a plan is one of %v", postern.PlanNames())
	}
	return nil
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
