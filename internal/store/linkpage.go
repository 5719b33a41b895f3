package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// OpenLinkPage makes the page of a device's open link attempt, in place of an
// earlier one, and keeps the attempt open as long as the page.
type OpenLinkPage struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	TokenHash   [32]byte
	ExpiresAt   postern.Time
	Once        *Once
	Acts        []Act
}

func (o OpenLinkPage) apply(t *db.Tx) error {
	if err := o.Once.claim(t); err != nil {
		return err
	}
	var link postern.LinkID
	err := t.Row(`UPDATE link SET expires_at = $3 WHERE workspace_id = $1 AND device_id = $2 AND status = 'pending' RETURNING id`, []any{o.WorkspaceID, o.DeviceID, o.ExpiresAt}, &link)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device; open one first")
	}
	if err != nil {
		return err
	}
	t.Wake(LinkChanged, string(o.DeviceID))
	if err := recordActs(t, o.Acts); err != nil {
		return err
	}
	if err := t.Exec(`DELETE FROM link_page WHERE device_id = $1`, o.DeviceID); err != nil {
		return err
	}
	return t.Exec(`INSERT INTO link_page (link_id, workspace_id, device_id, token_hash, browser_hash, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		link, o.WorkspaceID, o.DeviceID, o.TokenHash[:], []byte{}, o.ExpiresAt)
}

// Open makes the page of the open link attempt of a device.
func (s LinkPages) Open(ctx context.Context, o OpenLinkPage) error {
	return s.db.Do(ctx, db.Func(o.apply))
}

// LinkPage is the page of a link attempt.
type LinkPage struct {
	Link        LinkRow
	Workspace   string // its name
	BrowserHash []byte // of the browser that has the page; empty while none has
	ExpiresAt   postern.Time
}

// Get finds a page by its token.
func (s LinkPages) Get(ctx context.Context, tokenHash [32]byte) (p LinkPage, err error) {
	tail := []any{&p.Workspace, &p.BrowserHash, (*int64)(&p.ExpiresAt)}
	p.Link, err = scanLink(withTail{s.db.One(ctx, `SELECT `+linkColumns+`, w.name, p.browser_hash, p.expires_at
		FROM link_page p JOIN link l ON l.id = p.link_id JOIN workspace w ON w.id = p.workspace_id WHERE p.token_hash = $1`, tokenHash[:]), tail})
	if errors.Is(err, sql.ErrNoRows) {
		return p, postern.Errorf(postern.NotFound, "there is no such page")
	}
	return p, err
}

// Bind gives a page to a browser; ok is false when another has it, or
// its time is over.
func (s LinkPages) Bind(ctx context.Context, tokenHash, browserHash [32]byte, now postern.Time) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE link_page SET browser_hash = $2 WHERE token_hash = $1 AND length(browser_hash) = 0 AND expires_at > $3`, tokenHash[:], browserHash[:], now)
		ok = n == 1
		return err
	}))
	return ok, err
}
