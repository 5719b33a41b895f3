package gateway

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// keyCache caches keys until any key or plan changes. The cache is emptied before the
// change is answered, so that a revoked key is refused at once.
type keyCache struct {
	changed *store.Listener

	lasts time.Duration // other servers may change keys, and the news of that may be lost; 0: no other does
	now   func() time.Time

	mu      sync.Mutex
	version int       // increases with every change
	since   time.Time // when byHash was emptied
	byHash  map[[32]byte]access.Caller
	used    map[postern.KeyID]time.Time
}

func newKeyCache(db *store.Store, shared bool) keyCache {
	lasts := sharedKeys
	if !shared {
		lasts = 0
	}
	return keyCache{
		changed: db.Listen(store.KeyChanged, ""), lasts: lasts, now: time.Now,
		byHash: map[[32]byte]access.Caller{}, used: map[postern.KeyID]time.Time{},
	}
}

// find looks a key up. Its caller passes the version on to put.
func (k *keyCache) find(hash [32]byte) (c access.Caller, version int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	c, ok = k.byHash[hash]
	return c, k.version, ok
}

// put caches what was read since find returned the version, unless a key or plan has
// changed since then: in that case it may be outdated.
func (k *keyCache) put(hash [32]byte, c access.Caller, version int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	if k.version != version {
		return
	}
	if len(k.byHash) >= keysCached {
		clear(k.byHash)
	}
	k.byHash[hash] = c
}

// refresh empties the cache after a change, and when it has lasted if other servers may have made one. The
// caller holds k.mu.
func (k *keyCache) refresh() {
	now := k.now()
	old := k.lasts > 0 && now.Sub(k.since) > k.lasts
	select {
	case <-k.changed.C():
		k.changed.Take()
		old = true
	default:
	}
	if old {
		clear(k.byHash)
		k.version++
		k.since = now
	}
}

// touch tells whether the time of the key's use must be written now.
func (k *keyCache) touch(id postern.KeyID, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.used[id]) < usedEvery {
		return false
	}
	if len(k.used) >= keysCached {
		clear(k.used)
	}
	k.used[id] = now
	return true
}

// Watch reports every change of the workspace's keys and of its plan until the listener is
// closed. Authenticate sees a change before the listener does. Every caller may watch,
// because the listener does not say what has changed.
func (g Keys) Watch(c access.Caller) (*store.Listener, error) {
	if err := c.Permit(); err != nil {
		return nil, err
	}
	return g.db.Listen(store.KeyChanged, string(c.Workspace())), nil
}

func unauthorized() error {
	return postern.Errorf(
		postern.Unauthorized, "send the header Authorization: Bearer with an API key that is neither expired nor revoked",
	)
}

// Authenticate finds the caller for the value of an Authorization header. It returns the
// same error for a missing, malformed, unknown, expired and revoked key.
func (g Keys) Authenticate(ctx context.Context, authorization string) (access.Caller, error) {
	scheme, secret, ok := strings.Cut(authorization, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !postern.WellFormedKey(secret) {
		return access.Caller{}, unauthorized()
	}
	hash := postern.HashKey(secret)
	c, version, known := g.keys.find(hash)
	if !known {
		var err error
		if c, err = g.load(ctx, hash, version); err != nil {
			return access.Caller{}, err
		}
	}
	now := g.now()
	if expires := c.Key.ExpiresAt; expires != 0 && postern.TimeOf(now) >= expires {
		return access.Caller{}, unauthorized()
	}
	if g.keys.touch(c.Key.ID, now) {
		g.db.Keys.MarkUsed(c.Key.ID, postern.TimeOf(now))
	}
	return c, nil
}

func (g Keys) load(ctx context.Context, hash [32]byte, version int) (access.Caller, error) {
	key, ws, ok, err := g.db.Keys.ByHash(ctx, hash)
	if err != nil {
		return access.Caller{}, err
	}
	plan, known := ws.Entitlement()
	if !ok || !known || key.RevokedAt != 0 || subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1 {
		return access.Caller{}, unauthorized()
	}
	c := access.Caller{Key: key, Plan: plan}
	g.keys.put(hash, c, version)
	return c, nil
}

// NewKey describes a key to create. Nil Scopes means every scope that exists today, nil
// Devices means every device.
type NewKey struct {
	Name        string             `json:"name"`
	Environment string             `json:"environment"`
	Scopes      []postern.Scope    `json:"scopes"`
	Devices     []postern.DeviceID `json:"devices"`
	ExpiresAt   postern.Time       `json:"expiresAt"`
}

// Create creates a key and returns its secret, which is not stored. Members need the role
// developer, and must have entered their password recently.
func (g Keys) Create(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, in NewKey,
) (key postern.Key, secret string, err error) {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return postern.Key{}, "", err
	}
	if err := by.NeedsRecent(); err != nil {
		return postern.Key{}, "", err
	}
	if err := g.check(ctx, ws, in); err != nil {
		return postern.Key{}, "", err
	}
	scopes := in.Scopes
	if scopes == nil {
		scopes = postern.Scopes()
	}
	key, secret = withSecret(postern.Key{
		ID: postern.NewKeyID(), WorkspaceID: ws, Name: in.Name, Environment: in.Environment,
		Scopes: scopes, Devices: in.Devices, CreatedAt: g.time(), ExpiresAt: in.ExpiresAt,
		CreatedBy: by.Member.UserID,
	})
	return key, secret, g.db.Keys.Create(
		ctx, key, by.Holds(postern.Developer), act(by, key.CreatedAt, ws, "key.created", string(key.ID)),
	)
}

// withSecret generates the secret of a key. The key keeps only its hash and its last four
// characters.
func withSecret(key postern.Key) (_ postern.Key, secret string) {
	secret = postern.NewKeySecret()
	key.Hash, key.LastFour = postern.HashKey(secret), secret[len(secret)-4:]
	return key, secret
}

// Rotation describes how a key is replaced.
type Rotation struct {
	Overlap   time.Duration `json:"overlap"`   // how long the old key stays valid, at most 30 days
	ExpiresAt postern.Time  `json:"expiresAt"` // of the new key; 0: it lasts as long as the old one did
}

// Rotate creates a successor with the same name, environment, scopes and devices, and
// returns its secret. Members need the role developer, and must have entered their password
// recently.
func (g Keys) Rotate(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.KeyID, in Rotation,
) (key postern.Key, secret string, err error) {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return key, "", err
	}
	if err := by.NeedsRecent(); err != nil {
		return key, "", err
	}
	if in.Overlap < 0 || in.Overlap > MaxOverlap {
		hours := int(MaxOverlap.Hours())
		return key, "", postern.Invalid("/overlap", "the old key can stay valid for 0 to %d hours", hours)
	}
	old, err := g.db.Keys.Get(ctx, ws, id)
	if err != nil {
		return key, "", err
	}
	next := old
	next.ID, next.CreatedAt, next.LastUsedAt, next.ExpiresAt = postern.NewKeyID(), g.time(), 0, in.ExpiresAt
	if by.Member.UserID != "" { // who now knows the secret
		next.CreatedBy = by.Member.UserID
	}
	if old.ChosenExpiresAt != 0 && in.ExpiresAt == 0 {
		next.ExpiresAt = next.CreatedAt + old.ChosenExpiresAt - old.CreatedAt
	}
	next.ChosenExpiresAt = next.ExpiresAt
	key, secret = withSecret(next)
	ok, err := g.db.Keys.Rotate(
		ctx,
		old.ID,
		key.CreatedAt.Add(in.Overlap),
		key,
		by.Holds(postern.Developer),
		act(by, key.CreatedAt, ws, "key.rotated", string(old.ID)),
	)
	if err == nil && !ok {
		err = postern.Invalid("/key", "this key has expired or was revoked; create a new one")
	}
	if err != nil {
		return postern.Key{}, "", err
	}
	return key, secret, nil
}

func (g Keys) check(ctx context.Context, ws postern.WorkspaceID, in NewKey) error {
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return err
	}
	if err := postern.CheckName("/name", in.Name); err != nil {
		return err
	}
	if in.Environment != "" {
		if err := postern.CheckName("/environment", in.Environment); err != nil {
			return err
		}
	}
	if in.Scopes != nil && len(in.Scopes) == 0 {
		return postern.Invalid(
			"/scopes", "name at least one scope, or leave the field out for every scope that exists today",
		)
	}
	for _, s := range in.Scopes {
		if !slices.Contains(postern.Scopes(), s) {
			return postern.Invalid("/scopes", "each scope must be one of %s", listed(postern.Scopes()))
		}
	}
	if in.Devices != nil && (len(in.Devices) == 0 || len(in.Devices) > maxDeviceIDs) {
		return postern.Invalid("/devices", "name 1 to %d devices, or leave the field out for all", maxDeviceIDs)
	}
	for _, id := range in.Devices {
		if _, err := g.db.Devices.Get(ctx, ws, id); err != nil {
			return err
		}
	}
	return nil
}

// List lists the keys of a workspace, newest first. Members need the role developer.
func (g Keys) List(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, p paging.Page,
) (paging.List[postern.Key], error) {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return paging.List[postern.Key]{}, err
	}
	sp, err := g.open(ws, "keys", p)
	if err != nil {
		return paging.List[postern.Key]{}, err
	}
	rows, err := g.db.Keys.List(ctx, ws, sp)
	return paging.Cut(g.cursors, ws, "keys", rows, sp.Limit, func(k postern.Key) string { return string(k.ID) }), err
}

// Get finds a key of a workspace. Members need the role developer.
func (g Keys) Get(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.KeyID,
) (postern.Key, error) {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return postern.Key{}, err
	}
	return g.db.Keys.Get(ctx, ws, id)
}

// Any tells whether a workspace has any key, revoked ones included. Members need the role
// developer.
func (g Keys) Any(ctx context.Context, by access.Actor, ws postern.WorkspaceID) (bool, error) {
	list, err := g.List(ctx, by, ws, paging.Page{Limit: 1})
	return len(list.Data) > 0, err
}

// ListForOperator lists all keys of a workspace to operators.
func (g Keys) ListForOperator(ctx context.Context, by access.Actor, ws postern.WorkspaceID) ([]postern.Key, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return nil, err
	}
	const all = 100_000
	return g.db.Keys.List(ctx, ws, store.Page{Limit: all})
}

// Revoke makes a key invalid at once. Members need the role developer.
func (g Keys) Revoke(ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.KeyID) error {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return err
	}
	return g.db.Keys.Revoke(
		ctx, ws, id, by.Holds(postern.Developer), act(by, g.time(), ws, "key.revoked", string(id)),
	)
}

// Me is what a key is and may do, for the program that uses it.
type Me struct {
	Key       MyKey       `json:"key" doc:"The key of the request."`
	Workspace MyWorkspace `json:"workspace" doc:"The workspace that the key belongs to."`
	Plan      MyPlan      `json:"plan" doc:"The workspace's plan, with the limits that apply to it."`
}

// MyKey is a key, without its secret.
type MyKey struct {
	ID          postern.KeyID      `json:"id" doc:"Opaque id of the key." example:"key_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Name        string             `json:"name" doc:"Name given by its owner." example:"orders service"`
	Environment string             `json:"environment" doc:"Label for the environment in which the key is used." example:"production"`
	LastFour    string             `json:"lastFour" doc:"Last four characters of the key." example:"x9Qz"`
	Scopes      []postern.Scope    `json:"scopes" nullable:"false" doc:"What the key may do." example:"[\"devices:read\",\"messages:write\"]"`
	Devices     []postern.DeviceID `json:"devices" nullable:"true" doc:"The devices that the key may use; null for all of the workspace." example:"[\"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA\"]"`
	CreatedAt   postern.Time       `json:"createdAt" format:"date-time" nullable:"true" doc:"When the key was created." example:"2026-11-21T09:00:00.000Z"`
	ExpiresAt   postern.Time       `json:"expiresAt" format:"date-time" nullable:"true" doc:"When the key ends; null if it does not." example:"2027-11-21T09:00:00.000Z"`
}

// MyWorkspace is the workspace of a key.
type MyWorkspace struct {
	ID   postern.WorkspaceID `json:"id" doc:"Opaque id of the workspace." example:"ws_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Name string              `json:"name" doc:"Name of the workspace." example:"Acme"`
}

// MyPlan is a plan with its limits.
type MyPlan struct {
	Name                string `json:"name" enum:"free,starter,growth,pro,enterprise" doc:"Name of the plan." example:"growth"`
	Devices             int    `json:"devices" doc:"Devices that may be linked at a time." example:"5"`
	Messages            int    `json:"messages" doc:"Messages that may be sent in a calendar month, UTC." example:"30000"`
	RequestsPerMinute   int    `json:"requestsPerMinute" doc:"Requests per minute, for each key and for the workspace." example:"1200"`
	Webhooks            int    `json:"webhooks" doc:"Webhook endpoints." example:"20"`
	Storage             int64  `json:"storage" doc:"Bytes of files that may be stored." example:"53687091200"`
	DeliveriesPerMinute int    `json:"deliveriesPerMinute" doc:"Deliveries that are attempted for the first time in a minute; the rest wait." example:"6000"`
}

// Me describes the caller's key, its workspace and its plan. It needs no scope.
func (g Keys) Me(ctx context.Context, c access.Caller) (Me, error) {
	if err := c.Permit(); err != nil {
		return Me{}, err
	}
	ws, err := g.db.Workspaces.Get(ctx, c.Workspace())
	k, p := c.Key, c.Plan
	return Me{
		Key: MyKey{
			ID: k.ID, Name: k.Name, Environment: k.Environment, LastFour: k.LastFour, Scopes: k.Scopes,
			Devices: k.Devices, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
		},
		Workspace: MyWorkspace{ID: ws.ID, Name: ws.Name},
		Plan: MyPlan{
			Name: p.Name, Devices: p.Devices, Messages: p.Messages, RequestsPerMinute: p.RequestsPerMinute,
			Webhooks: p.Endpoints, Storage: p.Caps.Bytes, DeliveriesPerMinute: p.FirstAttempts,
		},
	}, err
}
