package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// MediaRow is a file with what only the server knows of it.
type MediaRow struct {
	postern.Media

	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID  // of its message; "" for an upload
	MessageID   postern.MessageID // of the message that it came with; "" for files to send
	Source      []byte            // sealed: where it is fetched; empty for an upload
	Attempts    int               // to fetch it, since it was last asked for
	Asked       int               // how often the phone was asked to upload it again
	NextAt      postern.Time      // when a pending one is fetched
	CreatedAt   postern.Time
	UsedAt      postern.Time // when the last message with it expires, or its creation
	Thumbnail   []byte       // a small JPEG of a photo that is added; it is read with [Blobs.Thumbnail]
}

const mediaColumns = `id, workspace_id, device_id, message_id, hash, status, object, source, attempts, next_at, ` +
	`created_at, used_at, asked`

var addMedia = db.NewStatement(mediaColumns, `INSERT INTO media (`+mediaColumns+`) @values`)

func (m MediaRow) row() []any {
	hash := ""
	if m.Status == postern.MediaReady {
		hash = m.SHA256
	}
	return []any{
		m.ID, m.WorkspaceID, m.DeviceID, m.MessageID, hash, m.Status, asJSON(m.Media), notNull(m.Source), m.Attempts,
		m.NextAt, m.CreatedAt, m.UsedAt, m.Asked,
	}
}

func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func scanMedia(s db.Scanner) (m MediaRow, err error) {
	var hash, status string
	err = s.Scan(&m.ID, &m.WorkspaceID, &m.DeviceID, &m.MessageID, &hash, &status, jsonColumn{&m.Media}, &m.Source,
		&m.Attempts, &m.NextAt, &m.CreatedAt, &m.UsedAt, &m.Asked)
	return m, err
}

// Add adds a file. If it is ready and the workspace has no room for its blob, it returns a
// ResourceLimit error.
func (s Media) Add(ctx context.Context, m MediaRow, once *Once) error {
	check := func(t *db.Tx) error { return checkStorage(t, m) }
	return s.doOnce(ctx, m.WorkspaceID, once, check, func(t *db.Tx) error {
		if err := addBlob(t, m); err != nil {
			return err
		}
		err := t.Each(addMedia, [][]any{m.row()})
		return err
	})
}

// Get returns a file of the workspace.
func (s Media) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MediaID) (MediaRow, error) {
	m, err := scanMedia(s.db.One(ctx, `SELECT `+mediaColumns+` FROM media WHERE workspace_id = $1 AND id = $2`, ws, id))
	return m, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM media WHERE id = $1 AND workspace_id <> $2`, id, ws),
		"file")
}

// Waiting returns up to limit files of received messages of a device that are not fetched yet,
// in the order of the time at which that is to be tried.
func (s Media) Waiting(ctx context.Context, device postern.DeviceID, limit int) ([]MediaRow, error) {
	return s.list(ctx, `device_id = $1 AND status = 'pending' AND message_id <> '' ORDER BY next_at LIMIT $2 + 0`,
		device, limit)
}

// Fetching returns the files to send that are not fetched yet: up to perWorkspace of each
// workspace and limit in all, in the order of the time at which that is to be tried.
func (s Media) Fetching(ctx context.Context, perWorkspace, limit int) ([]MediaRow, error) {
	return s.list(ctx, `id IN (`+s.firstToSend()+`) ORDER BY next_at, id LIMIT $2 + 0`, perWorkspace, limit)
}

// firstToSend selects the first $1 files of each workspace that are not fetched yet. It goes from workspace to workspace
// in their index, however many files each of them has.
func (s Media) firstToSend() string {
	const toSend = `media k WHERE k.status = 'pending' AND k.message_id = ''`
	const spaces = `WITH RECURSIVE spaces (id) AS (SELECT min(k.workspace_id) FROM ` + toSend + `
		UNION ALL SELECT (SELECT min(k.workspace_id) FROM ` + toSend + ` AND k.workspace_id > spaces.id)
		FROM spaces WHERE id IS NOT NULL) SELECT f.id FROM spaces `
	const first = `(SELECT k.id FROM ` + toSend + ` AND k.workspace_id = spaces.id ORDER BY k.next_at, k.id LIMIT $1 + 0)`
	if s.db.Postgres() {
		return spaces + `CROSS JOIN LATERAL ` + first + ` AS f`
	}
	return spaces + `CROSS JOIN media f WHERE f.id IN ` + first
}

func (s Media) list(ctx context.Context, where string, args ...any) (list []MediaRow, err error) {
	err = s.db.Rows(ctx, `SELECT `+mediaColumns+` FROM media WHERE `+where, args, func(r *sql.Rows) error {
		m, err := scanMedia(r)
		list = append(list, m)
		return err
	})
	return list, err
}

// Postpone changes when a pending file is fetched next, and the attempts so far.
func (s Media) Postpone(ctx context.Context, m MediaRow, next postern.Time) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE media SET attempts = $2, asked = $3, next_at = $4 WHERE id = $1 AND status = 'pending'`,
			m.ID, m.Attempts, m.Asked, next)
	}))
}

// Offer changes where a pending file is fetched, which is due now.
func (s Media) Offer(ctx context.Context, id postern.MediaID, source []byte, now postern.Time) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE media SET source = $2, attempts = 0, next_at = $3 WHERE id = $1 AND status = 'pending'`,
			id, source, now)
	}))
}

// OfMessage returns the pending file of a received message.
func (s Media) OfMessage(ctx context.Context, device postern.DeviceID, networkID string) (MediaRow, bool, error) {
	m, err := scanMedia(s.db.One(ctx, `SELECT `+mediaColumns+` FROM media WHERE status = 'pending' AND message_id <> ''
		AND id IN (SELECT media_id FROM message WHERE device_id = $1 AND network_id = $2 AND media_id <> '')
		LIMIT 1`, device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}

// UntilAsked is for how long a file is not fetched that is to be fetched when somebody asks for it: longer than it is kept.
const UntilAsked = 100 * 365 * 24 * time.Hour

// IsAsleep reports whether a pending file is fetched when somebody asks for it, and nobody has.
func (m MediaRow) IsAsleep(now postern.Time) bool { return m.NextAt > now.Add(UntilAsked/2) }

// Awake lets a file be fetched that was not before, because nobody had asked for it.
func (s Media) Awake(ctx context.Context, m MediaRow, now postern.Time) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		t.Wake(MediaWanted, string(m.DeviceID))
		return t.Exec(`UPDATE media SET next_at = $2 WHERE id = $1 AND status = 'pending' AND next_at > $2`, m.ID, now)
	}))
}

// Again makes a failed file pending, to be fetched at once.
func (s Media) Again(ctx context.Context, m MediaRow, now postern.Time) error {
	m.Status, m.Recoverable = postern.MediaPending, false
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE media SET status = 'pending', object = $2, attempts = 0, asked = 0, next_at = $3
			WHERE id = $1 AND status = 'failed'`, m.ID, asJSON(m.Media), now)
		if n > 0 {
			t.Wake(MediaWanted, string(m.DeviceID))
		}
		return err
	}))
}

// ErrSettled means that a file is not pending any more.
var ErrSettled = errors.New("the file is not pending")

// Settle ends the fetching of a pending file: it is ready or failed now. The message that it
// came with has an event about it, and the device that is to send it is woken. If the file has failed, the messages that
// wait for it end, even if their device is not connected or they are scheduled. The error is
// ResourceLimit if the workspace has no room for the blob of a file that is ready, and
// [ErrSettled] if the file was removed meanwhile.
func (s Media) Settle(ctx context.Context, m MediaRow, now postern.Time) error {
	failed := 0
	err := s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := checkStorage(t, m); err != nil {
			return err
		}
		row := m.row()
		n, err := t.Changed(`UPDATE media SET hash = $2, status = $3, object = $4 WHERE id = $1 AND status = 'pending'`,
			m.ID, row[4], m.Status, asJSON(m.Media))
		if err == nil && n == 0 {
			err = ErrSettled
		}
		if err == nil {
			err = addBlob(t, m)
		}
		if err != nil {
			return err
		}
		if failed, err = failWithFile(t, m, now); err != nil {
			return err
		}
		if err := wakeSenders(t, m.ID); err != nil || m.MessageID == "" {
			return err
		}
		return recordSettled(t, m, now)
	}))
	for err == nil && failed == purgeChunk {
		err = s.db.Do(ctx, db.Func(func(t *db.Tx) (err error) {
			failed, err = failWithFile(t, m, now)
			return err
		}))
	}
	return err
}

// failWithFile ends messages that wait for a file that has failed, and returns how many, at most [purgeChunk]. Only what
// is queued can be finished, so scheduled messages are queued first.
func failWithFile(t *db.Tx, m MediaRow, now postern.Time) (int, error) {
	if m.Status != postern.MediaFailed {
		return 0, nil
	}
	var failed []FinishOutbound
	err := t.Rows(`UPDATE message SET status = 'queued' WHERE id IN (SELECT id FROM message WHERE media_id = $1
		AND media_id <> '' AND status IN `+kept+` AND frame_left = 0 LIMIT $2 + 0) RETURNING id`,
		[]any{m.ID, purgeChunk}, func(r *sql.Rows) error {
			o := FinishOutbound{
				Status: postern.Failed, Refund: true, At: now,
				Failure: postern.Failure{Code: postern.MediaUnusable, Detail: m.Detail},
			}
			err := r.Scan(&o.MessageID)
			failed = append(failed, o)
			return err
		})
	if err != nil || len(failed) == 0 {
		return 0, err
	}
	return len(failed), db.WriteNow(t, failed...)
}

// sendersOf is the query for the devices that have messages with files of a list to send.
func sendersOf(files string) string {
	return `SELECT DISTINCT device_id FROM message WHERE media_id IN ` + files + ` AND media_id <> ''
		AND status IN ` + unsent
}

// wakeSenders wakes the devices that have messages with some files to send.
func wakeSenders(t *db.Tx, files ...postern.MediaID) error {
	return t.Rows(sendersOf(t.InList(1)), []any{asJSON(files)}, func(r *sql.Rows) error {
		var device string
		err := r.Scan(&device)
		t.Wake(OutboundQueued, device)
		return err
	})
}

// Wanted reports whether a message with a file is still to be sent.
func (s Media) Wanted(ctx context.Context, id postern.MediaID) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM message WHERE media_id = $1 AND media_id <> '' AND status IN `+kept, id)()
}

func recordSettled(t *db.Tx, m MediaRow, now postern.Time) error {
	message, err := scanMessage(t.One(`SELECT `+messageColumns+` FROM message WHERE id = $1`, m.MessageID))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	kind := postern.MediaReadyEv
	if m.Status == postern.MediaFailed {
		kind = postern.MediaFailedEv
	}
	e, err := message.Event(kind)
	if err != nil {
		return err
	}
	return recordEvents(t, []eventAt{{e, now}})
}

// Expire removes a file's bytes from the database's point of view: messages show it as expired.
// A sweep of the storage removes the bytes, if no other file has the same ones.
func (s Media) Expire(ctx context.Context, list ...MediaRow) error {
	return s.expireUnused(ctx, math.MaxInt64, list)
}

// expireUnused expires those of some files that were last used before a time.
func (s Media) expireUnused(ctx context.Context, before postern.Time, list []MediaRow) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error { return expireFiles(t, before, list) }))
}

var expireMedia = db.NewStatement("file, content, before, nothing", `UPDATE media SET status = 'expired', hash = '',
	object = @content, source = @nothing [FROM @rows] WHERE id = @file AND used_at < @before`)

func expireFiles(t *db.Tx, before postern.Time, list []MediaRow) error {
	rows, ids := make([][]any, len(list)), make([]postern.MediaID, len(list))
	for i, m := range list {
		m.Status, m.Recoverable = postern.MediaExpired, false
		rows[i], ids[i] = []any{m.ID, asJSON(m.Media), before, []byte{}}, m.ID
	}
	if err := t.Each(expireMedia, rows); err != nil {
		return err
	}
	return wakeSenders(t, ids...)
}

// RemoveOld expires a chunk of the workspace's files to send whose last message expired before
// one time, and of its received files from before another time. It removes the rows of expired
// files that no message shows. more is false when nothing is left to do.
func (s Media) RemoveOld(ctx context.Context, ws postern.WorkspaceID,
	sent, received postern.Time,
) (more bool, err error) {
	const old = `workspace_id = $1 AND status <> 'expired' AND used_at < $2
		AND (message_id <> '') = (CAST($3 AS BIGINT) = 1) ORDER BY used_at LIMIT $4 + 0`
	for i, before := range []postern.Time{sent, received} {
		list, err := s.list(ctx, old, ws, before, i, purgeChunk)
		if err == nil && len(list) > 0 {
			err = s.expireUnused(ctx, before, list)
		}
		if err != nil || len(list) == purgeChunk {
			return err == nil, err
		}
	}
	return s.removeUnshown(ctx, ws)
}

const unshown = `SELECT id FROM media WHERE workspace_id = $1 AND status = 'expired'
	AND NOT EXISTS (SELECT 1 FROM message m WHERE m.media_id = media.id AND m.media_id <> '') LIMIT $2 + 0`

func (s Media) removeUnshown(ctx context.Context, ws postern.WorkspaceID) (more bool, err error) {
	var ids []string
	err = s.db.Rows(ctx, unshown, []any{ws, purgeChunk}, addID(&ids))
	if err != nil || len(ids) == 0 {
		return false, err // the common case costs no write
	}
	return len(ids) == purgeChunk, s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(t.Exec(`DELETE FROM media_upload WHERE media_id IN `+t.InList(1), asJSON(ids)),
			t.Exec(`DELETE FROM media WHERE id IN `+t.InList(1)+` AND status = 'expired'
				AND NOT EXISTS (SELECT 1 FROM message m WHERE m.media_id = media.id AND m.media_id <> '')`, asJSON(ids)))
	}))
}

// purgeFiles expires a chunk of the files of a device, and forgets what it has uploaded.
func purgeFiles(t *db.Tx, device postern.DeviceID) (found bool, err error) {
	var list []MediaRow
	err = t.Rows(`SELECT `+mediaColumns+` FROM media WHERE device_id = $1 AND device_id <> '' AND status <> 'expired'
		LIMIT $2 + 0`, []any{device, purgeChunk}, func(r *sql.Rows) error {
		m, err := scanMedia(r)
		list = append(list, m)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(list) == 0 {
		return false, t.Exec(`DELETE FROM media_upload WHERE device_id = $1`, device)
	}
	return true, expireFiles(t, math.MaxInt64, list)
}

const blobHolders = `SELECT count(*) FROM media WHERE workspace_id = $1 AND hash = $2 AND hash <> ''`

// Held reports whether a file of the workspace has this blob.
func (s Blobs) Held(ctx context.Context, ws postern.WorkspaceID, hash string) (bool, error) {
	held, err := s.exists(ctx, blobHolders, ws, hash)()
	return holds(hash, held), err
}

// Thumbnail returns the small JPEG that was made of a photo when it was stored; it is empty if there is
// none.
func (s Blobs) Thumbnail(ctx context.Context, ws postern.WorkspaceID, hash string) (jpeg []byte, err error) {
	err = s.db.Row(ctx, `SELECT thumbnail FROM blob WHERE workspace_id = $1 AND hash = $2`, []any{ws, hash}, &jpeg)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return jpeg, err
}

// Release stops counting a blob if no file uses it, and reports whether it did. A file that is being
// added at that time counts as a user.
//
// Single writer: count.
func (s Blobs) Release(ctx context.Context, ws postern.WorkspaceID, hash string) (free bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var n int
		if err := t.Row(blobHolders, []any{ws, hash}, &n); err != nil {
			return err
		}
		if free = !holds(hash, n > 0); !free {
			return nil
		}
		var size int64
		err := t.Row(`DELETE FROM blob WHERE workspace_id = $1 AND hash = $2 RETURNING size`, []any{ws, hash}, &size)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // it was stored for a file that was not added
		}
		if err != nil {
			return err
		}
		return countBytes(t, ws, -released(size))
	}))
	return free && err == nil, err
}

// Unheld calls free for each blob that is counted and that no file has.
func (s Blobs) Unheld(ctx context.Context, free func(ws postern.WorkspaceID, hash string) error) error {
	last, more := blobPlace{}, true
	for more {
		var found []blobPlace
		var err error
		if found, last, more, err = s.unheldAfter(ctx, last); err != nil {
			return err
		}
		for _, b := range found {
			if err := free(b.ws, b.hash); err != nil {
				return err
			}
		}
	}
	return nil
}

type blobPlace struct {
	ws   postern.WorkspaceID
	hash string
}

// unheldAfter looks at a chunk of the blobs that follow a place, and returns those that no file has.
func (s Blobs) unheldAfter(ctx context.Context, after blobPlace) (found []blobPlace, last blobPlace, more bool,
	err error,
) {
	n := 0
	err = s.db.Rows(ctx, `SELECT b.workspace_id, b.hash, (SELECT count(*) FROM (SELECT 1 FROM media m
		WHERE m.workspace_id = b.workspace_id AND m.hash = b.hash AND m.hash <> '' LIMIT 1) AS one) FROM blob b
		WHERE (b.workspace_id, b.hash) > ($1, $2) ORDER BY b.workspace_id, b.hash LIMIT $3 + 0`,
		[]any{after.ws, after.hash, purgeChunk}, func(r *sql.Rows) error {
			held := 0
			err := r.Scan(&last.ws, &last.hash, &held)
			if n++; held == 0 {
				found = append(found, last)
			}
			return err
		})
	return found, last, n == purgeChunk, err
}

const storageOf = `SELECT ` + workspaceColumns + `, coalesce((SELECT bytes FROM storage WHERE workspace_id = w.id), 0)
	FROM workspace w WHERE w.id = $1`

func scanStorage(row db.Scanner) (u postern.Storage, err error) {
	w, err := scanWorkspace(withTail{row, []any{&u.Used}})
	plan, _ := w.Entitlement()
	u.Limit = plan.Caps.Bytes
	return u, err
}

// Storage returns how many bytes of files a workspace stores, and may store.
func (s Blobs) Storage(ctx context.Context, ws postern.WorkspaceID) (postern.Storage, error) {
	return scanStorage(s.db.One(ctx, storageOf, ws))
}

// Each calls do for each blob.
func (s Blobs) Each(ctx context.Context, do func(ws postern.WorkspaceID, hash string, size int64) error) error {
	return s.db.Rows(ctx, `SELECT workspace_id, hash, size FROM blob`, nil, func(r *sql.Rows) error {
		var (
			ws   postern.WorkspaceID
			hash string
			size int64
		)
		if err := r.Scan(&ws, &hash, &size); err != nil {
			return err
		}
		return do(ws, hash, size)
	})
}

const blobsLike = `SELECT count(*) FROM blob WHERE workspace_id = $1 AND hash = $2`

// checkStorage returns a ResourceLimit error if there is no room for the blob of a file that is
// ready. A blob that another file has needs none.
//
// Single writer: count.
func checkStorage(t *db.Tx, m MediaRow) error {
	var stored int
	if m.Status != postern.MediaReady {
		return nil
	}
	if err := t.Row(blobsLike, []any{m.WorkspaceID, m.SHA256}, &stored); err != nil || stored > 0 {
		return err
	}
	u, err := scanStorage(t.One(storageOf, m.WorkspaceID))
	if err != nil {
		return err
	}
	return u.Check(m.Size)
}

// addBlob counts the blob of a file that is ready, unless it is counted already.
func addBlob(t *db.Tx, m MediaRow) error {
	if m.Status != postern.MediaReady {
		return nil
	}
	n, err := t.Changed(`INSERT INTO blob (workspace_id, hash, size, thumbnail) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, hash) DO NOTHING`, m.WorkspaceID, m.SHA256, m.Size, notNull(m.Thumbnail))
	if err != nil || n == 0 {
		return err
	}
	return countBytes(t, m.WorkspaceID, m.Size)
}

// countBytes adds to the stored bytes of a workspace.
func countBytes(t *db.Tx, ws postern.WorkspaceID, n int64) error {
	return t.Exec(`INSERT INTO storage (workspace_id, bytes) VALUES ($1, $2)
		ON CONFLICT (workspace_id) DO UPDATE SET bytes = storage.bytes + excluded.bytes`, ws, n)
}

// Upload returns what the network knows of a file that a device has uploaded for messages of a
// kind since a time; ok is false if there is nothing.
func (s Media) Upload(ctx context.Context, id postern.MediaID, device postern.DeviceID, kind postern.Kind,
	since postern.Time,
) (sealed []byte, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT upload FROM media_upload WHERE media_id = $1 AND device_id = $2 AND kind = $3
		AND created_at >= $4`, []any{id, device, kind, since}, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return sealed, err == nil, err
}

// VideoUpload returns what the network knows of a file of the workspace that was uploaded as a
// video; nil if it was not.
func (s Media) VideoUpload(ctx context.Context, ws postern.WorkspaceID, id postern.MediaID) (sealed []byte, err error) {
	err = s.db.Row(ctx, `SELECT u.upload FROM media_upload u JOIN media m ON m.id = u.media_id
		WHERE m.workspace_id = $1 AND m.id = $2 AND u.kind = 'video' ORDER BY u.created_at DESC LIMIT 1`,
		[]any{ws, id}, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return sealed, err
}

// SetUpload stores what the network knows of a file.
func (s Media) SetUpload(ctx context.Context, id postern.MediaID, device postern.DeviceID, kind postern.Kind,
	sealed []byte, now postern.Time,
) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`INSERT INTO media_upload (media_id, device_id, kind, upload, created_at)
			SELECT id, $2, $3, $4, $5 FROM media WHERE id = $1
			ON CONFLICT (media_id, device_id, kind) DO UPDATE SET upload = excluded.upload, created_at = excluded.created_at`,
			id, device, kind, sealed, now)
	}))
}

// addFiles adds the files of the messages that are new.
func addFiles(t *db.Tx, list []db.Pending[RecordInbound], numbers []int64) error {
	var rows [][]any
	for i, p := range list {
		if f := p.Value.File; f != nil && numbers[i] != 0 {
			rows = append(rows, f.row())
			t.Wake(MediaWanted, string(f.DeviceID))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return t.Each(addMedia, rows)
}

var readFiles = db.NewStatement("workspace, file", `SELECT id FROM media [, @rows]
	WHERE workspace_id = @workspace AND id = @file AND status IN ('pending', 'ready')`)

// usable returns the existing files among those of the messages that can be sent.
func usable(t *db.Tx, list []db.Pending[QueueMessage]) (map[postern.MediaID]bool, error) {
	var rows [][]any
	for _, p := range list {
		if f := p.Value.Message.Content.Media; f != nil && p.Value.NewFile == nil {
			rows = append(rows, []any{p.Value.Message.WorkspaceID, f.ID})
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	found := map[postern.MediaID]bool{}
	err := t.EachRow(readFiles, rows, func(r *sql.Rows) error {
		var id postern.MediaID
		err := r.Scan(&id)
		found[id] = true
		return err
	})
	return found, err
}

// checkFile refuses a message whose file was removed.
func (o QueueMessage) checkFile(usable map[postern.MediaID]bool) error {
	f := o.Message.Content.Media
	if f == nil || o.NewFile != nil || usable[f.ID] {
		return nil
	}
	return postern.Invalid("/media/id", "the file was removed; upload it again")
}

var keepFiles = db.NewStatement("file, until", `UPDATE media SET used_at = @until [FROM @rows]
	WHERE id = @file AND used_at < @until`)

// useFiles keeps the files of accepted messages until the messages expire, and adds new ones.
//
// Single writer: count. No file is removed between the check and this.
func useFiles(t *db.Tx, list []db.Pending[QueueMessage]) error {
	until, added := map[postern.MediaID]postern.Time{}, [][]any(nil)
	for _, p := range list {
		switch m := p.Value.Message; {
		case p.Value.NewFile != nil:
			added = append(added, p.Value.NewFile.row())
			t.Wake(MediaWanted, "")
		case m.Content.Media != nil:
			id := m.Content.Media.ID
			until[id] = max(until[id], m.ExpiresAt)
		}
	}
	if len(added) > 0 {
		if err := t.Each(addMedia, added); err != nil {
			return err
		}
	}
	if len(until) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(until))
	for id, at := range until {
		rows = append(rows, []any{id, at})
	}
	return t.Each(keepFiles, rows)
}
