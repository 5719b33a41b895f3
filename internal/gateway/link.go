package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"

	"postern/internal/access"
	"postern/internal/passkey"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/passkeys"
)

// NewLink describes a link attempt to open.
type NewLink struct {
	Method         string `json:"method"`              // postern.ByQR or postern.ByCode; "" means ByQR
	PhoneNumber    string `json:"phoneNumber"`         // of the phone on which a code is entered
	ExpectedNumber string `json:"expectedPhoneNumber"` // only this number may be linked; "" means any
	AllowNewNumber bool   `json:"allowNewNumber"`      // the device may be linked to another number than before
	AllowSecond    bool   `json:"allowSecond"`         // another device of the workspace may have the same number
}

// Open opens a link attempt and takes one of the plan's device slots. The session engine
// then provides the codes.
func (g Links) Open(
	ctx context.Context, c access.Caller, id postern.DeviceID, in NewLink, idem *Idempotency,
) (Created[postern.Link], error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return Created[postern.Link]{}, err
	}
	if err := in.check(); err != nil {
		return Created[postern.Link]{}, err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return Created[postern.Link]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Link, func(*store.Once) error, error) {
		err := g.linkRate.Take(ctx, string(id), "too many link attempts for this device; wait a minute")
		if err != nil {
			return postern.Link{}, nil, err
		}
		now := g.time()
		l := postern.Link{
			ID:          postern.NewLinkID(),
			DeviceID:    id,
			WorkspaceID: c.Workspace(),
			Method:      in.Method,
			PhoneNumber: in.PhoneNumber,
			Status:      postern.LinkPending,
			ExpiresAt:   now.Add(linkTime),
		}
		return l, func(once *store.Once) error {
			return g.db.Links.Open(ctx, store.OpenLink{
				Link: l, ExpectedNumber: in.ExpectedNumber, AllowNewNumber: in.AllowNewNumber, AllowSecond: in.AllowSecond,
				Slots: c.Plan.Devices,
				At:    now, Once: once,
				Acts: did(c, now, "device.link-opened", string(id), d.Name),
			})
		}, nil
	})
}

// check fills in defaults and normalizes the numbers.
func (in *NewLink) check() error {
	in.Method = cmp.Or(in.Method, postern.ByQR)
	numbers := map[string]*string{"/expectedPhoneNumber": &in.ExpectedNumber, "/phoneNumber": &in.PhoneNumber}
	for pointer, number := range numbers {
		if *number == "" {
			continue
		}
		n, err := postern.ParsePhone(*number)
		if err != nil {
			return postern.Invalid(pointer, "%v", err)
		}
		*number = n
	}
	switch {
	case in.Method == postern.ByQR && in.PhoneNumber != "":
		return postern.Invalid(
			"/phoneNumber", "this field is for method code; use expectedPhoneNumber to limit who may scan",
		)
	case in.Method == postern.ByCode && in.PhoneNumber == "":
		return postern.Invalid("/phoneNumber", "give the number of the phone on which the code will be entered")
	case in.Method == postern.ByCode && in.ExpectedNumber != "" && in.ExpectedNumber != in.PhoneNumber:
		return postern.Invalid("/expectedPhoneNumber", "with method code this must equal phoneNumber; leave it out")
	}
	return nil
}

// Get finds the newest link attempt of a device. The code that is valid now needs
// devices:write in addition, because anyone who sees it can link a phone of their own.
func (g Links) Get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return postern.Link{}, err
	}
	l, err := g.get(ctx, c, id)
	if c.Permit(postern.DevicesWrite) != nil {
		l.QR, l.PairingCode, l.QRExpiresAt, l.Passkey, l.ConfirmationCode = "", "", 0, nil, ""
	}
	return l, err
}

// Code finds the newest link attempt of a device for a picture of its code.
func (g Links) Code(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Link{}, err
	}
	return g.get(ctx, c, id)
}

// get finds the newest link attempt of a device that the caller may use.
func (g Links) get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return postern.Link{}, err
	}
	row, ok, err := g.db.Links.Latest(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Link{}, err
	}
	if !ok {
		return postern.Link{}, postern.Errorf(postern.NotFound, "no link attempt has been opened for this device")
	}
	return g.shown(row)
}

// shown returns a link attempt with the code that is valid now, or with what the network asks the owner for.
func (g Links) shown(row store.LinkRow) (postern.Link, error) {
	l := row.Link
	if row.Passkey && l.Status == postern.LinkPending {
		return g.withPasskey(row)
	}
	if len(row.Code) == 0 || l.Status != postern.LinkPending {
		l.QRExpiresAt = 0
		return l, nil
	}
	code, err := g.box.Open(row.Code, l.ID.CodePlace())
	if l.Method == postern.ByCode {
		l.PairingCode, l.QRExpiresAt = postern.Maybe(code), 0
	} else {
		l.QR = postern.Maybe(code)
	}
	return l, err
}

// withPasskey returns an attempt for which the network asks for a passkey.
func (g Links) withPasskey(row store.LinkRow) (postern.Link, error) {
	l := row.Link
	l.Status, l.QRExpiresAt = postern.LinkPasskey, 0
	data, err := g.passkeys().Open(row)
	if err != nil {
		return l, err
	}
	switch row.PasskeyStep {
	case passkeys.Wanted:
		l.Passkey = &postern.PasskeyRequest{}
		err = json.Unmarshal(data, &l.Passkey.PublicKey)
	case passkeys.Compare:
		l.Status, l.ConfirmationCode = postern.LinkConfirm, postern.Maybe(data)
	case passkeys.Confirmed:
		l.Status = postern.LinkConfirm
	}
	return l, err
}

// Watch reports every change of a device's link attempts until the listener is closed.
func (g Links) Watch(ctx context.Context, c access.Caller, id postern.DeviceID) (*store.Listener, error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return nil, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return nil, err
	}
	return g.db.Listen(store.LinkChanged, string(id)), nil
}

// AnswerPasskey hands the network the credential that it asks for. The attempt then continues by itself,
// and may ask the owner to compare a code.
func (g Links) AnswerPasskey(
	ctx context.Context, c access.Caller, id postern.DeviceID, credential postern.PasskeyCredential,
) (postern.Link, error) {
	row, err := g.openRow(ctx, c, id)
	if err != nil {
		return postern.Link{}, err
	}
	return g.answerPasskey(ctx, row, credential)
}

// Confirm says that the owner has compared the code: the phone shows the same one.
func (g Links) Confirm(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	row, err := g.openRow(ctx, c, id)
	if err != nil {
		return postern.Link{}, err
	}
	return g.confirm(ctx, row)
}

// openRow finds the open link attempt of a device that the caller may change.
func (g Links) openRow(ctx context.Context, c access.Caller, id postern.DeviceID) (store.LinkRow, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return store.LinkRow{}, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return store.LinkRow{}, err
	}
	row, ok, err := g.db.Links.Latest(ctx, c.Workspace(), id)
	if err == nil && (!ok || row.Status != postern.LinkPending) {
		err = errNoOpenLink
	}
	return row, err
}

var errNoOpenLink = postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device")

// answerPasskey checks a credential and records it for the server that has the connection.
func (g Links) answerPasskey(
	ctx context.Context, row store.LinkRow, credential postern.PasskeyCredential,
) (postern.Link, error) {
	l, err := g.shown(row)
	if err != nil {
		return l, err
	}
	if l.Passkey == nil {
		return l, notWanted(row, l)
	}
	if credential, err = passkey.Check(credential, l.Passkey.PublicKey); err != nil {
		return l, err
	}
	raw, err := json.Marshal(credential)
	if err != nil {
		return l, fmt.Errorf("encode a credential: %w", err)
	}
	ok, err := g.passkeys().Answer(ctx, row, raw)
	if err == nil && !ok {
		err = postern.Errorf(postern.NoPasskeyWanted, "the network no longer asks for a passkey; read the link attempt")
	}
	l.Passkey = nil
	return l, err
}

// notWanted says why an attempt takes no credential.
func notWanted(row store.LinkRow, l postern.Link) error {
	if row.PasskeyStep == passkeys.Answered {
		return postern.Errorf(
			postern.NoPasskeyWanted, "the network is already checking the passkey of this link attempt",
		)
	}
	return postern.Errorf(
		postern.NoPasskeyWanted, "the link attempt is %s; the network does not ask for a passkey", l.Status,
	)
}

// confirm records that the code was compared.
func (g Links) confirm(ctx context.Context, row store.LinkRow) (postern.Link, error) {
	l, err := g.shown(row)
	if err != nil {
		return l, err
	}
	ok, err := g.passkeys().Confirm(ctx, row)
	if err == nil && !ok {
		err = postern.Errorf(postern.NothingToConfirm, "the link attempt is %s; it has no code to compare", l.Status)
	}
	return l, err
}

func (g *core) passkeys() passkeys.Table { return passkeys.Of(g.db, g.box) }

// Cancel ends the open link attempt and frees its slot.
func (g Links) Cancel(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return err
	}
	now := g.time()
	ended, err := g.db.Links.End(ctx, store.LinkEnd{
		WorkspaceID: d.WorkspaceID, DeviceID: id, Status: postern.LinkFailed, Reason: "canceled", At: now,
		Acts: did(c, now, "device.link-canceled", string(id), d.Name),
	})
	if err == nil && !ended {
		return errNoOpenLink
	}
	return err
}

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
	Link      postern.Link // with the code that is valid now; only the method and the status while the page is free
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
		v.Link.Method, v.Link.Status = p.Link.Method, p.Link.Status
		if p.Link.Passkey && v.Link.Status == postern.LinkPending {
			v.Link.Status = postern.LinkPasskey
		}
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

// Answer hands the network the credential that it asks for, from the browser that has the page.
func (g LinkPages) Answer(ctx context.Context, token, browser string, credential postern.PasskeyCredential) error {
	row, err := g.openRow(ctx, token, browser)
	if err == nil {
		_, err = g.links().answerPasskey(ctx, row, credential)
	}
	return err
}

// Compared says whether the phone shows the same code as the page. If it does not, the attempt ends.
func (g LinkPages) Compared(ctx context.Context, token, browser string, same bool) error {
	row, err := g.openRow(ctx, token, browser)
	if err != nil {
		return err
	}
	if same {
		_, err = g.links().confirm(ctx, row)
		return err
	}
	if row.PasskeyStep != passkeys.Compare {
		return postern.Errorf(postern.NothingToConfirm, "there is no code to compare")
	}
	_, err = g.db.Links.End(ctx, store.LinkEnd{
		WorkspaceID: row.WorkspaceID, DeviceID: row.DeviceID, Status: postern.LinkFailed, Reason: "code-differs",
		At: g.time(),
	})
	return err
}

// openRow finds the attempt of a page for the browser that has it.
func (g LinkPages) openRow(ctx context.Context, token, browser string) (store.LinkRow, error) {
	v, err := g.Get(ctx, token, browser)
	if err == nil && v.Free {
		err = ErrPageGone
	}
	if err != nil {
		return store.LinkRow{}, err
	}
	row, ok, err := g.db.Links.Latest(ctx, v.Link.WorkspaceID, v.Link.DeviceID)
	if err == nil && (!ok || row.ID != v.Link.ID || row.Status != postern.LinkPending) {
		err = errNoOpenLink
	}
	return row, err
}
