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

// LinkPage is a page that shows a link attempt to the person holding the phone.
type LinkPage struct {
	Token     string       `json:"token"`
	ExpiresAt postern.Time `json:"expiresAt"`
}

// Open creates a page for the open link attempt of a device and replaces an earlier page.
// The attempt stays open as long as its page.
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
				WorkspaceID: c.Workspace(), DeviceID: id, TokenHash: sha256.Sum256([]byte(p.Token)),
				ExpiresAt: p.ExpiresAt, Once: once,
				Acts: did(c, now, "device.link-shared", string(id), d.Name),
			})
		}, nil
	})
}

// PageView is what a browser may see of a link page.
type PageView struct {
	Workspace string       // name of the workspace
	Free      bool         // no browser has claimed the page; the attempt is not shown
	Link      postern.Link // with the code that is valid now; only the method while the page is free
}

// ErrPageGone means that a page has expired or belongs to another browser.
var ErrPageGone = postern.Errorf(postern.NoOpenLink, "this page has expired, or was opened in another browser")

// Get returns what the browser with a secret may see of a page.
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

// Watch reports every change of a page's link attempt until the listener is closed, to the
// browser that has the page.
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

// Bind gives a free page to a browser and returns the browser's secret.
func (g LinkPages) Bind(ctx context.Context, token string) (browser string, err error) {
	browser = seal.NewToken()
	ok, err := g.db.LinkPages.Bind(ctx, sha256.Sum256([]byte(token)), sha256.Sum256([]byte(browser)), g.time())
	if err == nil && !ok {
		err = ErrPageGone
	}
	return browser, err
}
