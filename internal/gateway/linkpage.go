package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// LinkPage is where a link attempt is shown to whoever holds the phone.
type LinkPage struct {
	Token     string       `json:"token"`
	ExpiresAt postern.Time `json:"expiresAt"`
}

// Open makes the page of a device's open link attempt, in place of an
// earlier one. The attempt stays open as long as its page.
func (g LinkPages) Open(
	ctx context.Context, c access.Caller, id postern.DeviceID, idem *Idempotency,
) (Created[LinkPage], error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return Created[LinkPage]{}, err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return Created[LinkPage]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (LinkPage, func(*store.Once) error, error) {
		now := g.time()
		p := LinkPage{Token: seal.NewToken(), ExpiresAt: now.Add(pageTime)}
		return p, func(once *store.Once) error {
			return g.db.LinkPages.Open(ctx, store.OpenLinkPage{
				WorkspaceID: c.Workspace(), DeviceID: id, TokenHash: sha256.Sum256([]byte(p.Token)), ExpiresAt: p.ExpiresAt, Once: once,
				Acts: did(c, now, "device.link-shared", string(id), d.Name),
			})
		}, nil
	})
}

// PageView is what a browser may see of a link page.
type PageView struct {
	Workspace string       // its name
	Free      bool         // no browser has the page yet; the attempt is not shown
	Link      postern.Link // the attempt, with the code to show now; only its method while the page is free
}

// ErrPageGone means that a page's time is over, or that another browser has it.
var ErrPageGone = postern.Errorf(postern.NoOpenLink, "this page has expired, or was opened in another browser")

// Get is what the browser that holds a secret may see of a page.
func (g LinkPages) Get(ctx context.Context, token, browser string) (PageView, error) {
	p, err := g.db.LinkPages.Get(ctx, sha256.Sum256([]byte(token)))
	if err != nil {
		return PageView{}, err
	}
	v := PageView{Workspace: p.Workspace, Free: len(p.BrowserHash) == 0}
	hash := sha256.Sum256([]byte(browser))
	if p.ExpiresAt <= g.time() || !v.Free && subtle.ConstantTimeCompare(hash[:], p.BrowserHash) != 1 {
		return PageView{}, ErrPageGone
	}
	if v.Free {
		v.Link.Method = p.Link.Method
		return v, nil
	}
	v.Link, err = g.links().shown(p.Link)
	return v, err
}

// Watch tells of every change of a page's link attempt, to the browser that has the
// page, until the listener is closed.
func (g LinkPages) Watch(ctx context.Context, token, browser string) (*store.Listener, error) {
	v, err := g.Get(ctx, token, browser)
	if err == nil && v.Free {
		err = ErrPageGone
	}
	if err != nil {
		return nil, err
	}
	return g.db.Listen(store.LinkChanged, string(v.Link.DeviceID)), nil
}

// Bind gives a page to a browser that nobody has it before, and returns
// the browser's secret.
func (g LinkPages) Bind(ctx context.Context, token string) (browser string, err error) {
	browser = seal.NewToken()
	ok, err := g.db.LinkPages.Bind(ctx, sha256.Sum256([]byte(token)), sha256.Sum256([]byte(browser)), g.time())
	if err == nil && !ok {
		err = ErrPageGone
	}
	return browser, err
}
