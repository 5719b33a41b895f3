package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// deviceColumns are what callers see of a device; engineColumns add what only the engine
// needs. They are apart because lists of devices are read often and each column costs.
const (
	deviceColumns = `id, name, mode, status, status_reason, phone_number, display_name, metadata, created_at, linked_at,
		connected_at, last_seen_at, pace_minute, pace_new_chats, receive, restricted_until, limited_at, limited_until,
		phone_seen_at, slowed`
	engineColumns = deviceColumns + `, workspace_id, desired, account, proxy_url, turn, crashes`
)

// scanDevice reads deviceColumns into d. The conversions to basic types keep database/sql
// from using reflection for each column of each row.
func scanDevice(s db.Scanner, d *postern.Device) error {
	var perMinute, newChats, receive, limited, slowed int64
	err := s.Scan((*string)(&d.ID), &d.Name, &d.Mode, (*string)(&d.Status), (*string)(&d.StatusReason),
		(*string)(&d.PhoneNumber), (*string)(&d.DisplayName),
		jsonColumn{&d.Metadata}, (*int64)(&d.CreatedAt), (*int64)(&d.LinkedAt), (*int64)(&d.ConnectedAt),
		(*int64)(&d.LastSeenAt), &perMinute, &newChats, &receive, (*int64)(&d.RestrictedUntil), &limited,
		(*int64)(&d.NewChats.Until), (*int64)(&d.PhoneSeenAt), &slowed)
	d.NewChats.Slowed = postern.Slowdown(slowed)
	d.NewChats.Allowed = limited == 0
	if d.Status != postern.Restricted {
		d.RestrictedUntil = 0 // of an earlier restriction
	}
	if perMinute != 0 || newChats != 0 {
		d.Pace = &postern.Pace{PerMinute: postern.Rate(perMinute), NewChatsPerMinute: postern.Rate(newChats)}
	}
	receiveColumn{&d.Receive}.set(receive)
	return err
}

// scanEngineDevice reads engineColumns.
func scanEngineDevice(s db.Scanner) (d postern.Device, err error) {
	err = scanDevice(withTail{s, []any{
		(*string)(&d.WorkspaceID), (*string)(&d.Desired), &d.Account, &d.Proxy,
		&d.Turn, &d.Crashes,
	}},
		&d)
	return d, err
}

// receiveColumn reads and writes the kinds of chats that a device receives as bits.
type receiveColumn struct{ r *postern.Receive }

func (c receiveColumn) kinds() []*bool {
	return []*bool{&c.r.Direct, &c.r.Groups, &c.r.Channels, &c.r.Status, &c.r.Calls, &c.r.ViewOnce, &c.r.History}
}

// The bits for the mode of files; none is eager.
const (
	lazyMedia = 1 << 7
	noMedia   = 1 << 8
)

func (c receiveColumn) set(bits int64) {
	for i, kind := range c.kinds() {
		*kind = bits&(1<<i) != 0
	}
	c.r.Media = postern.MediaEager
	switch {
	case bits&noMedia != 0:
		c.r.Media = postern.MediaOff
	case bits&lazyMedia != 0:
		c.r.Media = postern.MediaLazy
	}
}

func (c receiveColumn) bits() (n int64) {
	for i, kind := range c.kinds() {
		if *kind {
			n |= 1 << i
		}
	}
	switch c.r.Media {
	case postern.MediaOff:
		n |= noMedia
	case postern.MediaLazy:
		n |= lazyMedia
	}
	return n
}

// Create adds a device that is not linked yet. When the plan allows no more devices, it
// returns a ResourceLimit error.
func (s Devices) Create(ctx context.Context, d postern.Device, once *Once, acts ...Act) error {
	check := func(t *db.Tx) error { return deviceCap().Check(t, d.WorkspaceID) }
	return s.doOnce(ctx, d.WorkspaceID, once, check, func(t *db.Tx) error {
		if err := RecordActs(t, acts); err != nil {
			return err
		}
		return changeDevice(t, `INSERT INTO device (`+engineColumns+`, sequence, last_event_at, deleted_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 0, 0, 0, 0, $17, $18, $19, $20,
			$21, $22, 0, 0, 0)`,
			d.ID, d.Name, d.Mode, d.Status, d.StatusReason, d.PhoneNumber, d.DisplayName, asJSON(d.Metadata),
			d.CreatedAt, d.LinkedAt, d.ConnectedAt, d.LastSeenAt, d.Pace.Or(postern.Pace{}).PerMinute,
			d.Pace.Or(postern.Pace{}).NewChatsPerMinute, receiveColumn{&d.Receive}.bits(), d.RestrictedUntil,
			d.WorkspaceID, d.Desired, d.Account, d.Proxy, d.Turn, d.Crashes)
	})
}

// Change applies change to the settings of a device and returns the result. change receives
// the current device within the transaction and may be called more than once; when it
// returns an error, the device stays as it was.
//
// Single writer: change.
func (s Devices) Change(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID,
	change func(*postern.Device) ([]Act, error),
) (d postern.Device, err error) {
	err = s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		if d, err = readDevice(t, ws, id); err != nil {
			return err
		}
		proxy := d.Proxy
		acts, err := change(&d)
		if err == nil {
			err = RecordActs(t, acts)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(proxy, d.Proxy) {
			d.Turn++
			if d.Status == postern.Connected {
				d.Status = postern.Connecting // the connection through the old proxy ends
			}
		}
		pace := d.Pace.Or(postern.Pace{})
		t.Wake(DeviceChanged, string(id))
		return changeDevice(t, `UPDATE device SET name = $3, metadata = $4, pace_minute = $5, pace_new_chats = $6,
			receive = $7, proxy_url = $8, turn = $9, status = $10,
			down_at = CASE WHEN status = 'connected' AND $10 = 'connecting' THEN $11 ELSE down_at END
			WHERE workspace_id = $1 AND id = $2`,
			ws, id, d.Name, asJSON(d.Metadata), pace.PerMinute, pace.NewChatsPerMinute,
			receiveColumn{&d.Receive}.bits(),
			d.Proxy, d.Turn, d.Status, postern.TimeOf(s.db.Now()))
	}))
	return d, err
}

// readDevice returns a device of the workspace that is not deleted.
func readDevice(t *db.Tx, ws postern.WorkspaceID, id postern.DeviceID) (postern.Device, error) {
	d, err := scanEngineDevice(t.One(`SELECT `+engineColumns+` FROM device WHERE workspace_id = $1 AND id = $2
		AND deleted_at = 0`, ws, id))
	if errors.Is(err, sql.ErrNoRows) {
		return d, postern.Errorf(postern.NotFound, "there is no such device")
	}
	return d, err
}

// Page selects a part of a list.
type Page struct {
	After string // id of the last row seen; "" starts at the beginning
	Limit int
}

// List returns a workspace's devices, newest first. When only is not nil, the list is
// limited to those ids. The caller must not modify the Metadata and the Pace of a device.
func (s Devices) List(ctx context.Context, ws postern.WorkspaceID, only []postern.DeviceID,
	p Page,
) ([]postern.Device, error) {
	q := deviceQuery{workspace: ws, only: textList(only), page: p}
	return s.cached(q, func() ([]postern.Device, error) { return s.read(ctx, q) })
}

func (s Devices) read(ctx context.Context, q deviceQuery) (list []postern.Device, err error) {
	list = make([]postern.Device, 0, min(q.page.Limit, listGuess))
	err = s.db.Rows(ctx, `SELECT `+deviceColumns+` FROM device WHERE workspace_id = $1 AND deleted_at = 0
		AND ($2 = '' OR id < $2)
		AND ($3 = 'null' OR id IN `+s.db.InList(3)+`) ORDER BY id DESC LIMIT $4 + 0`,
		[]any{q.workspace, q.page.After, q.only, q.page.Limit}, func(r *sql.Rows) error {
			list = append(list, postern.Device{WorkspaceID: q.workspace})
			return scanDevice(r, &list[len(list)-1])
		})
	return list, err
}

// Queued counts the messages that wait to be sent, up to [postern.MaxQueued] of each device of a workspace, or of the
// one with an id. Devices without any are left out.
func (s Devices) Queued(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID,
) (map[postern.DeviceID]int, error) {
	queued := map[postern.DeviceID]int{}
	err := s.db.Rows(ctx, `SELECT id, waiting FROM (SELECT d.id, (SELECT count(*) FROM (SELECT 1 AS one FROM message m
			WHERE m.device_id = d.id AND m.status IN ('queued', 'sending') AND m.about = '' LIMIT $3 + 0) AS counted) AS waiting
		FROM device d WHERE d.workspace_id = $1 AND d.deleted_at = 0 AND (CAST($2 AS TEXT) = '' OR d.id = $2)) AS queue
		WHERE waiting > 0`,
		[]any{ws, id, postern.MaxQueued}, func(r *sql.Rows) error {
			var device postern.DeviceID
			var n int
			err := r.Scan(&device, &n)
			queued[device] = n
			return err
		})
	return queued, err
}

// Get returns a device of the workspace. Like List, it leaves out the fields that only the
// session engine needs, and the caller must not modify its Metadata and Pace.
func (s Devices) Get(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID) (postern.Device, error) {
	list, err := s.cached(deviceQuery{workspace: ws, id: id}, func() ([]postern.Device, error) {
		d := postern.Device{WorkspaceID: ws}
		err := scanDevice(s.db.One(ctx, `SELECT `+deviceColumns+` FROM device WHERE workspace_id = $1 AND id = $2
			AND deleted_at = 0`, ws, id), &d)
		return []postern.Device{d}, err
	})
	if err == nil {
		return list[0], nil
	}
	return postern.Device{}, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM device
		WHERE id = $1 AND workspace_id <> $2 AND deleted_at = 0`, id, ws), "device")
}

// AtWork lists, over all workspaces, the devices that the session engine has to act on:
// those whose desired state is not idle.
func (s Devices) AtWork(ctx context.Context) (list []postern.Device, err error) {
	err = s.db.Rows(ctx, `SELECT `+engineColumns+` FROM device WHERE desired <> 'idle'
		ORDER BY id`, nil, func(r *sql.Rows) error {
		d, err := scanEngineDevice(r)
		list = append(list, d)
		return err
	})
	return list, err
}

// ForEngine returns a device of any workspace by its id, even a deleted one.
func (s Devices) ForEngine(ctx context.Context, id postern.DeviceID) (postern.Device, error) {
	d, err := scanEngineDevice(s.db.One(ctx, `SELECT `+engineColumns+` FROM device WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return d, postern.Errorf(postern.NotFound, "there is no such device")
	}
	return d, err
}

// CountLinked counts, over all workspaces, the devices that hold a link.
func (s Devices) CountLinked(ctx context.Context) (n int, err error) {
	err = s.db.Row(ctx, `SELECT count(*) FROM device WHERE account <> ''`, nil, &n)
	return n, err
}

// ResetSessions marks all connected devices as connecting. It is called at start, when no
// session of this process is live yet but a previous process may have left devices marked
// as connected. A server that shares the database resets the devices that it owns.
func (s Devices) ResetSessions(ctx context.Context) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		ours, args := "", []any(nil)
		if n := s.node.Load(); n != nil {
			ours, args = ` AND owner = $1`, []any{n.ID}
		}
		return changeDevice(t, `UPDATE device SET status = 'connecting', status_reason = '', down_at = last_seen_at
			WHERE status = 'connected'`+ours, args...)
	}))
}

// MaxCrashes is how many crashes of the process quarantine the device that was being
// processed at the time.
const MaxCrashes = 3

// crashMemory is how long a crash counts: the next one after that is the first again.
const crashMemory = 24 * time.Hour

// CountCrash counts a crash of the process for each of the devices, and returns those that
// exist.
func (s Devices) CountCrash(ctx context.Context, ids []postern.DeviceID, at postern.Time) (list []postern.Device,
	err error,
) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := changeDevice(t, `UPDATE device SET crashes = CASE WHEN crashed_at < $2 THEN 1 ELSE crashes + 1 END,
			crashed_at = $3 WHERE id IN `+t.InList(1), asJSON(ids), at.Add(-crashMemory), at); err != nil {
			return err
		}
		list = nil
		return t.Rows(`SELECT `+engineColumns+` FROM device WHERE id IN `+t.InList(1)+` ORDER BY id`,
			[]any{asJSON(ids)}, func(r *sql.Rows) error {
				d, err := scanEngineDevice(r)
				list = append(list, d)
				return err
			})
	}))
	return list, err
}

// slotStates are the states for which [postern.Status.HoldsSlot] is true.
const (
	slotStates = `('linking', 'connecting', 'connected', 'disconnected', 'paused', 'restricted', 'conflict')`
	slotsUsed  = `SELECT count(*) FROM device WHERE workspace_id = $1 AND deleted_at = 0 AND status IN ` + slotStates
)

// SetDeviceState is a change of the state of a device's session, with the event that
// reports it.
type SetDeviceState struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	Status      postern.Status
	Reason      string
	Until       postern.Time     // when a restriction ends; 0 if that is unknown
	Desired     postern.Desired  // "" keeps it
	DisplayName string           // "" keeps it
	DropAccount bool             // the link no longer exists
	FailQueued  bool             // the device loses its link: messages still to be sent fail after the change
	From        []postern.Status // the state must be one of these; nil for any
	FromDesired postern.Desired  // the desired state must be this; "" for any
	At          postern.Time
	Event       *postern.Event
}

// apply changes the state if it is still one of those required.
//
// Single writer: change.
func (o SetDeviceState) apply(t *db.Tx) error {
	var have postern.Status
	var desired postern.Desired
	err := t.Row(`SELECT status, desired FROM device WHERE workspace_id = $1 AND id = $2`,
		[]any{o.WorkspaceID, o.DeviceID}, &have, &desired)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // the device was deleted
	}
	if err != nil {
		return err
	}
	if o.From != nil && !slices.Contains(o.From, have) || o.FromDesired != "" && o.FromDesired != desired {
		return nil // another operation has changed the state
	}
	if err := o.update(t); err != nil {
		return err
	}
	t.Wake(DeviceChanged, string(o.DeviceID))
	t.Note(DeviceMoved{o.Status, o.Reason})
	if o.Event == nil {
		return nil
	}
	return recordEvent(t, *o.Event, o.At)
}

func (o SetDeviceState) update(t *db.Tx) error {
	return changeDevice(t, `UPDATE device SET status = $3, status_reason = $4,
		desired = CASE WHEN $5 = '' THEN desired ELSE $5 END,
		display_name = CASE WHEN $6 = '' THEN display_name ELSE $6 END,
		account = CASE WHEN $7 = 1 THEN '' ELSE account END,
		connected_at = CASE WHEN $3 = 'connected' THEN $8 ELSE connected_at END,
		down_at = CASE WHEN $3 IN ('connected', 'unlinked', 'paused') THEN 0 WHEN down_at = 0 THEN $8 ELSE down_at END,
		last_seen_at = CASE WHEN $3 = 'connected' THEN $8 ELSE last_seen_at END, restricted_until = $9
		WHERE workspace_id = $1 AND id = $2`,
		o.WorkspaceID, o.DeviceID, o.Status, o.Reason, o.Desired, o.DisplayName, o.DropAccount, o.At, o.Until)
}

// SeenDevice says when the network last sent something to a device.
type SeenDevice struct {
	DeviceID postern.DeviceID
	At       postern.Time
}

var saveSeen = newDeviceStatement("seen_device, seen_at", `UPDATE device SET last_seen_at = @seen_at
	[FROM @rows] WHERE id = @seen_device AND status = 'connected' AND last_seen_at < @seen_at`)

// Seen stores when devices were last seen. It leaves those that are not connected as they are, and no time goes back.
func (s Devices) Seen(ctx context.Context, list []SeenDevice) error {
	for some := range slices.Chunk(list, purgeChunk) {
		rows := make([][]any, len(some))
		for i, one := range some {
			rows[i] = []any{one.DeviceID, one.At}
		}
		if err := s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
			return saveSeen.changeEach(t, rows)
		}))); err != nil {
			return err
		}
	}
	return nil
}

// DeviceMoved is a change of a device's state.
type DeviceMoved struct {
	Status postern.Status
	Reason string
}

// SetState records a change of a device's session. It does nothing when the device no
// longer exists or is not in one of the states that From and FromDesired require.
func (s Devices) SetState(ctx context.Context, o SetDeviceState) error {
	err := s.db.Do(ctx, db.Fenced(db.Func(o.apply)))
	if err == nil && o.FailQueued {
		err = s.failQueued(ctx, o.DeviceID, o.At)
	}
	return err
}

// RequestUnlink marks a device as unlinked and asks the engine to remove its link at the
// network as soon as the network can be reached.
func (s Devices) RequestUnlink(ctx context.Context, o SetDeviceState, acts ...Act) error {
	err := s.db.Do(ctx, db.FuncOf(string(o.WorkspaceID), func(t *db.Tx) error {
		d, err := readDevice(t, o.WorkspaceID, o.DeviceID)
		if err != nil {
			return err
		}
		if o.From != nil && !slices.Contains(o.From, d.Status) {
			return postern.Errorf(postern.NotLinked, "the device is %s; there is no link to remove", d.Status)
		}
		if err := RecordActs(t, acts); err != nil {
			return err
		}
		return o.apply(t)
	}))
	if err == nil && o.FailQueued {
		err = s.failQueued(ctx, o.DeviceID, o.At)
	}
	return err
}

// RequestDelete hides a device at once and asks the engine to remove its link and all its
// data. event reports the end of the link; it is nil when the device had none.
func (s Devices) RequestDelete(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, event *postern.Event,
	at postern.Time, acts ...Act,
) error {
	err := s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		n, err := changeDevices(t, `UPDATE device
			SET status = 'unlinked', status_reason = 'deleted', desired = 'delete', deleted_at = $3 WHERE workspace_id = $1
			AND id = $2 AND deleted_at = 0`, ws, id, at)
		if err != nil || n == 0 {
			return err
		}
		t.Wake(DeviceChanged, string(id))
		if err := errors.Join(failLink(t, ws, id, "deleted", at), RecordActs(t, acts)); err != nil || event == nil {
			return err
		}
		return recordEvent(t, *event, at)
	}))
	if err != nil {
		return err
	}
	return s.failAll(ctx, id, at)
}

// deviceCache holds the results of reads of devices until a commit changes a device:
// devices are read with every request and change rarely. It is used only with SQLite, where
// no process but this one can change a row.
//
// Single writer: cache.
type deviceCache struct {
	generation   atomic.Uint64 // incremented after each commit that changed a device, before its callers are answered
	hits, misses atomic.Int64

	mu    sync.Mutex
	of    uint64 // the generation in which found was read
	bytes int    // estimated memory of found
	found map[deviceQuery][]postern.Device
}

// deviceQuery is everything that the result of a read of devices depends on.
type deviceQuery struct {
	workspace postern.WorkspaceID
	id        postern.DeviceID // of one device; "" for a list
	only      string
	page      Page
}

// newDeviceCache returns the cache of a database, or nil with PostgreSQL.
func newDeviceCache(engine *db.DB) *deviceCache {
	if engine.Postgres() {
		return nil
	}
	c := &deviceCache{}
	engine.Invalidate(DeviceRow, func() { c.generation.Add(1) })
	return c
}

// changeDevices runs a statement that changes columns that reads of devices show, and
// returns the number of rows it changed.
func changeDevices(t *db.Tx, query string, args ...any) (int64, error) {
	t.Wake(DeviceRow, "")
	return t.Changed(query, args...)
}

// deviceStatement changes columns that reads of devices show, for many devices.
type deviceStatement struct{ *db.Statement }

func newDeviceStatement(columns, text string) deviceStatement {
	return deviceStatement{db.NewStatement(columns, text)}
}

func (s deviceStatement) changeEach(t *db.Tx, rows [][]any) error {
	t.Wake(DeviceRow, "")
	return t.Each(s.Statement, rows)
}

// changeDevice is [changeDevices] for callers who do not need the number.
func changeDevice(t *db.Tx, query string, args ...any) error {
	_, err := changeDevices(t, query, args...)
	return err
}

// cached returns the result of a read of devices, from the cache if possible.
func (s Devices) cached(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	if s.cache == nil {
		return read()
	}
	return s.cache.get(q, read)
}

// get returns a result from the cache, or reads it. The caller may modify the slice and its
// devices, but not what they point to: the cache shares their Metadata and Pace.
func (c *deviceCache) get(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	now := c.generation.Load() // before reading, so that a commit during the read makes the result stale
	if list, ok := c.look(q, now); ok {
		c.hits.Add(1)
		return list, nil
	}
	c.misses.Add(1)
	list, err := read()
	if err == nil {
		c.put(q, now, slices.Clone(list))
	}
	return list, err
}

func (c *deviceCache) look(q deviceQuery, now uint64) ([]postern.Device, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, ok := c.found[q]
	return slices.Clone(list), ok && c.of == now
}

func (c *deviceCache) put(q deviceQuery, now uint64, list []postern.Device) {
	size := sizeOf(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now < c.of || size > cacheBytes/16 {
		return
	}
	if c.found == nil || now > c.of || c.bytes+size > cacheBytes {
		c.of, c.bytes, c.found = now, 0, map[deviceQuery][]postern.Device{}
	}
	c.found[q] = list
	c.bytes += size
}

// sizeOf estimates the memory of a list.
func sizeOf(list []postern.Device) int {
	const row, entry = 512, 64
	n := row
	for _, d := range list {
		n += row
		for name, value := range d.Metadata {
			n += entry + len(name) + len(value)
		}
	}
	return n
}
