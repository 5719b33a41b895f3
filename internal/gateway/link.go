package gateway

import (
	"cmp"
	"context"
	"fmt"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// NewLink describes a link attempt to open.
type NewLink struct {
	Method         string `json:"method"`              // postern.ByQR or postern.ByCode; "" is the first
	PhoneNumber    string `json:"phoneNumber"`         // of the phone to enter a code on
	ExpectedNumber string `json:"expectedPhoneNumber"` // only this number may be linked; "" any
	AllowNewNumber bool   `json:"allowNewNumber"`      // a device may change its number
}

// Open opens a link attempt and takes a slot of the plan. Codes follow
// from the session engine.
func (g Links) Open(ctx context.Context, c access.Caller, id postern.DeviceID, in NewLink, idem *Idempotency) (Created[postern.Link], error) {
	d, err := g.devices().Get(ctx, c, id)
	if err != nil {
		return Created[postern.Link]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Link, func(*store.Once) error, error) {
		if err := in.check(); err != nil {
			return postern.Link{}, nil, err
		}
		if err := g.linkRate.Take(ctx, string(id), "too many link attempts of this device; wait a moment"); err != nil {
			return postern.Link{}, nil, err
		}
		now := g.time()
		l := postern.Link{ID: postern.NewLinkID(), DeviceID: id, WorkspaceID: c.Workspace(), Method: in.Method, PhoneNumber: in.PhoneNumber, Status: postern.LinkPending, ExpiresAt: now.Add(linkTime)}
		return l, func(once *store.Once) error {
			return g.db.Links.Open(ctx, store.OpenLink{
				Link: l, ExpectedNumber: in.ExpectedNumber, AllowNewNumber: in.AllowNewNumber, Slots: c.Plan.Devices, At: now, Once: once,
				Acts: did(c, now, "device.link-opened", string(id), d.Name),
			})
		}, nil
	})
}

// check settles what is left open, and writes numbers in their one form.
func (in *NewLink) check() error {
	in.Method = cmp.Or(in.Method, postern.ByQR)
	for pointer, number := range map[string]*string{"/expectedPhoneNumber": &in.ExpectedNumber, "/phoneNumber": &in.PhoneNumber} {
		if *number == "" {
			continue
		}
		n, ok := postern.ParsePhone(*number)
		if !ok {
			return postern.Invalid(pointer, "a phone number is + and 7 to 15 digits")
		}
		*number = n
	}
	switch {
	case in.Method == postern.ByQR && in.PhoneNumber != "":
		return postern.Invalid("/phoneNumber", "it goes with method code; expectedPhoneNumber limits who may scan")
	case in.Method == postern.ByCode && in.PhoneNumber == "":
		return postern.Invalid("/phoneNumber", "name the phone that the code will be entered on")
	case in.Method == postern.ByCode && in.ExpectedNumber != "" && in.ExpectedNumber != in.PhoneNumber:
		return postern.Invalid("/expectedPhoneNumber", "with method code it is phoneNumber that will be linked")
	}
	return nil
}

// Get finds the newest link attempt of a device, with the code to show now.
func (g Links) Get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Link, error) {
	if _, err := g.devices().Get(ctx, c, id); err != nil {
		return postern.Link{}, err
	}
	return g.get(ctx, c.Workspace(), id)
}

func (g Links) get(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID) (postern.Link, error) {
	row, ok, err := g.db.Links.Latest(ctx, ws, id)
	if err != nil {
		return postern.Link{}, err
	}
	if !ok {
		return postern.Link{}, postern.Errorf(postern.NotFound, "no link attempt was ever opened for this device")
	}
	return g.shown(row)
}

// shown is an attempt with the code to show now.
func (g Links) shown(row store.LinkRow) (postern.Link, error) {
	l := row.Link
	if row.Passkey && l.Status == postern.LinkPending {
		l.Status = postern.LinkPasskey
	}
	if len(row.Code) == 0 || l.Status != postern.LinkPending {
		l.QRExpiresAt = 0
		return l, nil
	}
	code, err := g.box.Open(row.Code, codePlace(l.ID))
	if l.Method == postern.ByCode {
		l.PairingCode, l.QRExpiresAt = postern.Maybe(code), 0
	} else {
		l.QR = postern.Maybe(code)
	}
	return l, err
}

func codePlace(id postern.LinkID) string { return "link.code " + string(id) }

// Watch tells of every change of a device's link attempts until the
// listener is closed.
func (g Links) Watch(id postern.DeviceID) *store.Listener {
	return g.db.Listen(store.LinkChanged, string(id))
}

// AnswerPasskey would hand the owner's passkey to the network. No page of ours
// can ask a browser for a passkey of the network's own domain, so an attempt that
// wants one cannot go on.
func (g Links) AnswerPasskey(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	l, err := g.Get(ctx, c, id)
	switch {
	case err != nil:
		return err
	case !l.Status.Open():
		return postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device")
	case l.Status != postern.LinkPasskey:
		return postern.Errorf(postern.NoPasskeyWanted, "the link attempt is %s; the network did not ask for a passkey", l.Status)
	}
	return postern.Errorf(postern.PasskeyNotSupported, "a browser gives a passkey to the network's own pages only; turn the passkey off in the account's settings on the phone, and open a new link attempt")
}

// Cancel ends the open attempt and gives the slot back.
func (g Links) Cancel(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	d, err := g.devices().Get(ctx, c, id)
	if err != nil {
		return err
	}
	now := g.time()
	ended, err := g.db.Links.End(ctx, store.LinkEnd{
		DeviceID: id, Status: postern.LinkFailed, Reason: "canceled", At: now, Acts: did(c, now, "device.link-canceled", string(id), d.Name),
	})
	if err == nil && !ended {
		return postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device")
	}
	return err
}

// OpenOf finds the attempt the engine has to serve; ok is false when none
// is open.
func (g Links) OpenOf(ctx context.Context, d postern.Device) (l store.LinkRow, ok bool, err error) {
	l, ok, err = g.db.Links.Latest(ctx, d.WorkspaceID, d.ID)
	return l, ok && l.Status == postern.LinkPending, err
}

// ShowCode puts a new code on the attempt. The code is sealed: whoever reads
// it in its minute can take the account over.
func (g Links) ShowCode(l store.LinkRow, text string, expires postern.Time) {
	g.db.Links.SetCode(l.ID, l.DeviceID, g.box.Seal([]byte(text), codePlace(l.ID)), expires)
}

// RefusedError is why a phone that scanned a code is refused; its text is the
// attempt's reason.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// Scanned decides whether an account may be linked to the device, before any
// key of it is kept.
func (g Links) Scanned(ctx context.Context, d postern.Device, l store.LinkRow, account, number string) error {
	switch {
	case l.ExpectedNumber != "" && l.ExpectedNumber != number, l.PhoneNumber != "" && l.PhoneNumber != number:
		return RefusedError("unexpected-number")
	case d.PhoneNumber != "" && string(d.PhoneNumber) != number && !l.AllowNewNumber:
		return RefusedError("other-number")
	}
	if g.sandbox != nil {
		ok, err := g.db.Workspaces.ClaimNumber(ctx, d.WorkspaceID, number)
		if err != nil {
			return err
		}
		if !ok {
			return RefusedError("number-taken")
		}
	}
	return g.db.Links.Scanned(ctx, l.ID, account, number)
}

// Linked makes the device linked: the account's keys are durable.
func (g Links) Linked(ctx context.Context, d postern.Device, l store.LinkRow, account, number, displayName string) error {
	now := g.time()
	d.Status, d.StatusReason, d.PhoneNumber, d.DisplayName, d.LinkedAt = postern.Connecting, "", postern.Maybe(number), postern.Maybe(displayName), now
	e, err := d.Event(postern.DeviceLinked)
	if err != nil {
		return fmt.Errorf("describe the device: %w", err)
	}
	return g.db.Links.Finish(ctx, store.FinishLink{
		LinkID: l.ID, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: account, Number: number, DisplayName: displayName, At: now, Event: e,
	})
}

// End ends an attempt without a link.
func (g Links) End(ctx context.Context, l store.LinkRow, status postern.LinkStatus, reason string) error {
	_, err := g.db.Links.End(ctx, store.LinkEnd{DeviceID: l.DeviceID, LinkID: l.ID, Status: status, Reason: reason, At: g.time()})
	return err
}
