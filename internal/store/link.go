package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// OpenLink opens a link attempt. The attempt takes a slot of the plan in the same
// transaction in which the slots are counted.
type OpenLink struct {
	Link           postern.Link
	ExpectedNumber string
	AllowNewNumber bool
	AllowSecond    bool
	Slots          int // of the plan
	At             postern.Time
	Once           *Once
	Acts           []Act
}

// check returns an error when the device has a link or an open attempt, or when no slot is
// free. The plan may have shrunk since the caller was authorized.
//
// Single writer: count.
func (o OpenLink) check(t *db.Tx) error {
	if err := o.checkDevice(t); err != nil {
		return err
	}
	var used int
	if err := t.Row(slotsUsed, []any{o.Link.WorkspaceID}, &used); err != nil {
		return err
	}
	slots, err := countSlots(t, o.Link.WorkspaceID)
	if slots = min(slots, o.Slots); err == nil && used >= slots {
		err = postern.Errorf(postern.DeviceLimit,
			"the plan allows %d linked devices, and %d are linked or being linked; unlink one or change the plan",
			slots, used)
	}
	return err
}

func (o OpenLink) checkDevice(t *db.Tx) error {
	var status postern.Status
	err := t.Row(`SELECT status FROM device WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0`,
		[]any{o.Link.WorkspaceID, o.Link.DeviceID}, &status)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return postern.Errorf(postern.NotFound, "there is no such device")
	case err != nil:
		return err
	case status == postern.Linking:
		return postern.Errorf(postern.LinkAlreadyOpen,
			"a link attempt is open for this device; read it or cancel it first")
	case status.HoldsSlot():
		return postern.Errorf(postern.DeviceAlreadyLinked, "the device is linked; unlink it first")
	}
	number := cmp.Or(o.ExpectedNumber, o.Link.PhoneNumber)
	if err := checkNumber(t, o.Link.WorkspaceID, o.Link.DeviceID, number, o.AllowSecond); err != nil {
		return err
	}
	list, err := queuedOf(t, unsendable, o.Link.DeviceID, 1)
	if err == nil && len(list) > 0 {
		err = errQueueLeft
	}
	return err
}

// checkNumber returns an error when another device of the workspace is linked to the number,
// or is about to be. "" is a number that is not known yet.
//
// Single writer: count.
func checkNumber(t *db.Tx, ws postern.WorkspaceID, device postern.DeviceID, number string, second bool) error {
	if second || number == "" {
		return nil
	}
	var others int
	err := t.Row(`SELECT (SELECT count(*) FROM device WHERE workspace_id = $1 AND id <> $2 AND phone_number = $3
		AND account <> '' AND deleted_at = 0 AND status IN `+slotStates+`)
		+ (SELECT count(*) FROM link WHERE workspace_id = $1 AND device_id <> $2 AND number = $3
		AND status = 'pending')`, []any{ws, device, number}, &others)
	if err == nil && others > 0 {
		err = postern.Errorf(postern.NumberAlreadyLinked,
			"another device of the workspace is linked to this number; unlink that one, or set allowSecond")
	}
	return err
}

func (o OpenLink) apply(t *db.Tx) error {
	if err := RecordActs(t, o.Acts); err != nil {
		return err
	}
	l := o.Link
	err := t.Exec(`INSERT INTO link (id, workspace_id, device_id, method, status, code, code_expires_at, allow_new,
		expected_number, account, number, reason, created_at, expires_at, ended_at, phone_number, allow_second)
		VALUES ($1, $2, $3, $4, 'pending', $9, 0, $5, $6, '', '', '', $7, $8, 0, $10, $11)`,
		l.ID, l.WorkspaceID, l.DeviceID, l.Method, o.AllowNewNumber, o.ExpectedNumber, o.At, l.ExpiresAt, []byte{},
		l.PhoneNumber, o.AllowSecond)
	if err != nil {
		return err
	}
	t.Wake(DeviceChanged, string(l.DeviceID))
	t.Wake(LinkChanged, string(l.DeviceID))
	err = changeDevice(t, `UPDATE device SET status = 'linking', status_reason = '', desired = 'link', crashes = 0, down_at = 0
		WHERE workspace_id = $1 AND id = $2`, l.WorkspaceID, l.DeviceID)
	if err != nil {
		return err
	}
	return recordLinking(t, l.WorkspaceID, l.DeviceID, o.At)
}

// recordLinking records that a link attempt was opened, or has ended without a link: the device says which.
func recordLinking(t *db.Tx, ws postern.WorkspaceID, id postern.DeviceID, at postern.Time) error {
	d, err := readDevice(t, ws, id)
	if err != nil {
		return err
	}
	e, err := d.Event(postern.DeviceLinking)
	if err != nil {
		return err
	}
	return recordEvent(t, e, at)
}

// Open opens a link attempt. It returns an error when the device has a link or an open
// attempt, or when all slots are taken.
func (s Links) Open(ctx context.Context, o OpenLink) error {
	for {
		err := s.doOnce(ctx, o.Link.WorkspaceID, o.Once, o.check, o.apply)
		if !errors.Is(err, errQueueLeft) {
			return err
		}
		if err := s.failQueued(ctx, o.Link.DeviceID, o.At); err != nil {
			return err
		}
	}
}

// errQueueLeft means that messages of the previous link have not failed yet. The new link
// must not send them.
var errQueueLeft = errors.New("messages of the previous link are queued")

// LinkRow is a link attempt with the fields that only the engine needs.
type LinkRow struct {
	postern.Link
	Code           []byte // sealed
	Passkey        bool   // the network asks for the owner's passkey
	PasskeyStep    int    // see package passkeys
	PasskeyData    []byte // sealed
	ExpectedNumber string
	AllowNewNumber bool
	AllowSecond    bool
	Account        string // once scanned
	Number         string // once scanned
}

const linkColumns = `l.id, l.workspace_id, l.device_id, l.method, l.status, l.code, l.code_expires_at, l.allow_new,
	l.expected_number, l.account, l.number, l.reason, l.expires_at, l.phone_number, l.passkey,
	l.allow_second, l.passkey_step, l.passkey_data`

func scanLink(s db.Scanner) (l LinkRow, err error) {
	err = s.Scan(&l.ID, &l.WorkspaceID, &l.DeviceID, &l.Method, &l.Status, &l.Code, &l.QRExpiresAt, &l.AllowNewNumber,
		&l.ExpectedNumber, &l.Account, &l.Number, &l.Reason, &l.ExpiresAt, &l.PhoneNumber, &l.Passkey,
		&l.AllowSecond, &l.PasskeyStep, &l.PasskeyData)
	return l, err
}

// Latest returns the open link attempt of a device, or the newest one when none is open; ok
// is false when the device never had one.
func (s Links) Latest(ctx context.Context, ws postern.WorkspaceID,
	id postern.DeviceID,
) (l LinkRow, ok bool, err error) {
	l, err = scanLink(s.db.One(ctx, `SELECT `+linkColumns+` FROM link l WHERE workspace_id = $1 AND device_id = $2
		ORDER BY CASE status WHEN 'pending' THEN 0 ELSE 1 END, created_at DESC, id DESC LIMIT 1`, ws, id))
	if errors.Is(err, sql.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// SetCode stores a new code without waiting for the disk; a code that is lost is replaced
// by the next one.
func (s Links) SetCode(id postern.LinkID, device postern.DeviceID, sealed []byte, expires postern.Time) {
	s.db.Later(db.Fenced(db.Func(func(t *db.Tx) error {
		t.Wake(LinkChanged, string(device))
		return t.Exec(`UPDATE link SET code = $2, code_expires_at = $3, passkey = 0, passkey_step = 0, passkey_data = $4
			WHERE id = $1 AND status = 'pending'`, id, sealed, expires, []byte{})
	})))
}

// Scanned records which account scanned the code. It is called before the keys of the
// account are stored, so that a crash between the two leaves a trace. It returns a
// NoOpenLink error when the attempt has ended, and a NumberAlreadyLinked error when another
// device has the number.
func (s Links) Scanned(ctx context.Context, l LinkRow, account, number string) error {
	return s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		if err := checkNumber(t, l.WorkspaceID, l.DeviceID, number, l.AllowSecond); err != nil {
			return err
		}
		n, err := t.Changed(`UPDATE link SET account = $2, number = $3
			WHERE id = $1 AND status = 'pending'`, l.ID, account, number)
		if err == nil && n == 0 {
			return postern.Errorf(postern.NoOpenLink, "the link attempt has ended")
		}
		return err
	})))
}

// FinishLink makes a device linked. When the number differs from the previous one, the
// history of the previous number is archived.
//
// Single writer: order.
type FinishLink struct {
	LinkID      postern.LinkID
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	Account     string
	Number      string
	DisplayName string
	At          postern.Time
	Event       postern.Event
}

func (o FinishLink) apply(t *db.Tx) error {
	n, err := t.Changed(`UPDATE link SET status = 'linked', code = $3, passkey_data = $3, account = '', ended_at = $2
		WHERE id = $1 AND status = 'pending'`, o.LinkID, o.At, []byte{})
	if err != nil {
		return err
	}
	if n == 0 {
		return postern.Errorf(postern.NoOpenLink, "the link attempt has ended")
	}
	t.Note(LinkEnded{postern.LinkLinked, ""})
	for _, statement := range []string{scheduleAgain, forgetTimers, forgetChats} {
		if err := t.Exec(statement, o.DeviceID, o.Number); err != nil {
			return err
		}
	}
	err = changeDevice(t, `UPDATE device SET status = 'connecting', status_reason = '', desired = 'connect', account = $3,
		phone_number = $4, display_name = $5, linked_at = $6, down_at = $6, limited_at = 0, limited_until = 0,
		phone_seen_at = $6, phone_unseen_at = 0,
		history_from = CASE WHEN phone_number IN ('', $4) THEN history_from ELSE (SELECT coalesce(max(n), 0) FROM message
		WHERE device_id = $2) END
		WHERE workspace_id = $1 AND id = $2`, o.WorkspaceID, o.DeviceID, o.Account, o.Number, o.DisplayName, o.At)
	if err != nil {
		return err
	}
	for _, table := range []string{ // they are read again
		"chat_group", "group_list", "chat_setting", "address_book", "channel", "label", "chat_label",
	} {
		if err := t.Exec(`DELETE FROM `+table+` WHERE device_id = $1`, o.DeviceID); err != nil {
			return err
		}
	}
	t.Wake(DeviceChanged, string(o.DeviceID))
	t.Wake(LinkChanged, string(o.DeviceID))
	return recordEvent(t, o.Event, o.At)
}

// scheduleAgain takes the messages that fell due during a link attempt out of the queue of a device that gets another
// number. They were accepted for the number before it, so they fail when they are found due; see [queueDue].
const scheduleAgain = `UPDATE message SET status = 'scheduled' WHERE device_id = $1 AND status IN ` + unsent + `
	AND frame_left = 0 AND send_at > 0 AND ` + otherNumber

// forgetTimers removes the timers of another number's chats.
const forgetTimers = `DELETE FROM chat_timer WHERE device_id = $1 AND ` + otherNumber

// forgetChats counts nothing as unread in the chats of another number, whose messages are archived.
const forgetChats = `UPDATE chat SET unread = 0, read_to = newest WHERE device_id = $1 AND ` + otherNumber

// otherNumber is the condition that the device $1 had a number other than $2.
const otherNumber = `EXISTS (SELECT 1 FROM device WHERE id = $1 AND phone_number NOT IN ('', $2))`

// Finish records that a phone scanned the code and that the keys are stored.
func (s Links) Finish(ctx context.Context, o FinishLink) error {
	return s.db.Do(ctx, db.Fenced(db.Func(o.apply)))
}

// LinkEnd is the end of a link attempt that did not make a link.
type LinkEnd struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	LinkID      postern.LinkID // "" for the open one
	Status      postern.LinkStatus
	Reason      string
	At          postern.Time
	Acts        []Act
}

// End ends the open attempt of a device without a link and releases its slot. ended is
// false when no attempt was open. Only the server that serves an attempt names it.
func (s Links) End(ctx context.Context, o LinkEnd) (ended bool, err error) {
	end := db.Write(db.Func(func(t *db.Tx) error {
		if ended, err = o.apply(t); err != nil || !ended {
			return err
		}
		if err := RecordActs(t, o.Acts); err != nil {
			return err
		}
		d, err := readDevice(t, o.WorkspaceID, o.DeviceID)
		if err != nil {
			return err
		}
		err = changeDevice(t, `UPDATE device SET status = 'unlinked', status_reason = $3, desired = $4
			WHERE workspace_id = $1 AND id = $2 AND status = 'linking'`,
			o.WorkspaceID, o.DeviceID, o.Reason, d.WithoutLink())
		if err != nil || d.Status != postern.Linking {
			return err
		}
		return recordLinking(t, o.WorkspaceID, o.DeviceID, o.At)
	}))
	if o.LinkID != "" {
		end = db.Fenced(end)
	}
	err = s.db.Do(ctx, end)
	return ended, err
}

// LinkEnded is the end of a link attempt.
type LinkEnded struct {
	Status postern.LinkStatus
	Reason string
}

// apply ends the attempt and leaves the device as it is.
func (o LinkEnd) apply(t *db.Tx) (ended bool, err error) {
	n, err := t.Changed(`UPDATE link SET status = $3, reason = $4, code = $6, passkey_data = $6, ended_at = $5 WHERE workspace_id = $1
		AND device_id = $2 AND status = 'pending' AND ($7 = '' OR id = $7)`,
		o.WorkspaceID, o.DeviceID, o.Status, o.Reason, o.At, []byte{}, o.LinkID)
	if n > 0 {
		t.Note(LinkEnded{o.Status, o.Reason})
		t.Wake(LinkChanged, string(o.DeviceID))
		t.Wake(DeviceChanged, string(o.DeviceID))
	}
	return n > 0, err
}

// failLink ends the open attempt of a device, if there is one.
func failLink(t *db.Tx, ws postern.WorkspaceID, id postern.DeviceID, reason string, at postern.Time) error {
	_, err := LinkEnd{WorkspaceID: ws, DeviceID: id, Status: postern.LinkFailed, Reason: reason, At: at}.apply(t)
	return err
}

// DropAccount records that all data of an account that a device had is deleted.
func (s Links) DropAccount(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, account string) error {
	return s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		t.Wake(DeviceChanged, string(id))
		return changeDevice(t, `UPDATE device SET account = '' WHERE workspace_id = $1 AND id = $2 AND account = $3`,
			ws, id, account)
	})))
}

// OpenLinkPage creates the page of a device's open link attempt, replacing an earlier page,
// and extends the attempt to the lifetime of the page.
type OpenLinkPage struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	TokenHash   [32]byte
	ExpiresAt   postern.Time
	Once        *Once
	Acts        []Act
}

// check returns an error when no attempt is open.
func (o OpenLinkPage) check(t *db.Tx) error {
	var link postern.LinkID
	err := t.Row(`SELECT id FROM link WHERE workspace_id = $1 AND device_id = $2 AND status = 'pending'`,
		[]any{o.WorkspaceID, o.DeviceID}, &link)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NoOpenLink, "no link attempt is open for this device; open one first")
	}
	return err
}

func (o OpenLinkPage) apply(t *db.Tx) error {
	var link postern.LinkID
	err := t.Row(`UPDATE link SET expires_at = $3 WHERE workspace_id = $1 AND device_id = $2 AND status = 'pending'
		RETURNING id`, []any{o.WorkspaceID, o.DeviceID, o.ExpiresAt}, &link)
	if err != nil {
		return err
	}
	t.Wake(LinkChanged, string(o.DeviceID))
	if err := RecordActs(t, o.Acts); err != nil {
		return err
	}
	if err := t.Exec(`DELETE FROM link_page WHERE device_id = $1`, o.DeviceID); err != nil {
		return err
	}
	return t.Exec(`INSERT INTO link_page (link_id, workspace_id, device_id, token_hash, browser_hash, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		link, o.WorkspaceID, o.DeviceID, o.TokenHash[:], []byte{}, o.ExpiresAt)
}

// Open creates the page of the open link attempt of a device. It returns a NoOpenLink error
// when no attempt is open.
func (s LinkPages) Open(ctx context.Context, o OpenLinkPage) error {
	return s.doOnce(ctx, o.WorkspaceID, o.Once, o.check, o.apply)
}

// LinkPage is the page of a link attempt.
type LinkPage struct {
	Link        LinkRow
	Workspace   string // its name
	BrowserHash []byte // of the browser that the page belongs to; empty before that
	ExpiresAt   postern.Time
}

// Get returns a page by the hash of its token.
func (s LinkPages) Get(ctx context.Context, tokenHash [32]byte) (p LinkPage, err error) {
	tail := []any{&p.Workspace, &p.BrowserHash, (*int64)(&p.ExpiresAt)}
	p.Link, err = scanLink(withTail{s.db.One(ctx, `SELECT `+linkColumns+`, w.name, p.browser_hash, p.expires_at
		FROM link_page p JOIN link l ON l.id = p.link_id JOIN workspace w ON w.id = p.workspace_id
		WHERE p.token_hash = $1`, tokenHash[:]), tail})
	if errors.Is(err, sql.ErrNoRows) {
		return p, postern.Errorf(postern.NotFound, "there is no such page")
	}
	return p, err
}

// Bind assigns a page to a browser; ok is false when the page already belongs to a browser
// or has expired.
func (s LinkPages) Bind(ctx context.Context, tokenHash, browserHash [32]byte, now postern.Time) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE link_page SET browser_hash = $2 WHERE token_hash = $1 AND length(browser_hash) = 0
			AND expires_at > $3`, tokenHash[:], browserHash[:], now)
		ok = n == 1
		return err
	}))
	return ok, err
}
