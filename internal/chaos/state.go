package chaos

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers
	_ "modernc.org/sqlite"
)

// State is the part of a stopped gateway's database that the judge examines.
type State struct {
	Devices    map[string]string // id → number
	Sequences  map[string]int64  // id → sequence number of its newest event
	Messages   []Message
	Files      map[string]File // by id
	Events     []Event
	Deliveries []Delivery
	Used       int // units of quota spent, over all months
}

// Message is a row of the message table.
type Message struct {
	ID, Device, Direction, Status, Failure, NetworkID, Body string

	File string // id of its file; "" for none

	FrameLeft bool // if false for a message that has ended, its unit was refunded
}

// File is a row of the media table.
type File struct {
	Status, SHA256 string

	Stored bool // the bytes are in the storage, and have that hash
}

// Event is a row of the event log, with the content of its body.
type Event struct {
	ID, Device, Type, SHA256 string

	Sequence int64
	Says     Said
}

// Said is the part of an event's body that the judge compares with the ledgers.
type Said struct {
	EventID   string `json:"eventId"`
	Type      string `json:"type"`
	DeviceID  string `json:"deviceId"`
	Timestamp string `json:"timestamp"`
	Sequence  int64  `json:"sequence"`
	Message   struct {
		ID   string `json:"id"`
		Body string `json:"body"`
	} `json:"message"`
}

// Delivery is a row of the webhook queue.
type Delivery struct {
	ID, Endpoint, EventID, Status string

	Attempts int
}

// ReadState reads the database of a stopped server: the one with the URL, or without a
// URL the file in the data directory. The SQL is the harness's own, so that an incorrect
// query of the store cannot hide what it did to the rows. It reads the rows of one workspace,
// or with "" those of all.
func ReadState(ctx context.Context, dir, url, workspace string) (s State, err error) {
	db, err := open(dir, url)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	where := ""
	if workspace != "" {
		where = ` WHERE workspace_id = '` + workspace + `'`
	}
	s.Devices, s.Sequences, s.Files = map[string]string{}, map[string]int64{}, map[string]File{}
	return s, errors.Join(
		each(ctx, db, `SELECT id, phone_number, sequence FROM device`+where, func(r *sql.Rows) error {
			var id, number string
			var sequence int64
			err := r.Scan(&id, &number, &sequence)
			s.Devices[id], s.Sequences[id] = number, sequence
			return err
		}),
		each(ctx, db,
			`SELECT id, device_id, direction, status, error_code, network_id, body, frame_left, media_id
			FROM message`+where+` ORDER BY n`,
			func(r *sql.Rows) error {
				var m Message
				err := r.Scan(&m.ID, &m.Device, &m.Direction, &m.Status, &m.Failure, &m.NetworkID, &m.Body,
					&m.FrameLeft, &m.File)
				s.Messages = append(s.Messages, m)
				return err
			}),
		each(ctx, db, `SELECT id, workspace_id, status, hash FROM media`+where, func(r *sql.Rows) error {
			var id, workspace string
			var f File
			err := r.Scan(&id, &workspace, &f.Status, &f.SHA256)
			f.Stored = isStored(dir, workspace, f.SHA256)
			s.Files[id] = f
			return err
		}),
		each(ctx, db, `SELECT id, device_id, type, sequence, body FROM event`+where+` ORDER BY position`,
			func(r *sql.Rows) error {
				e, err := scanEvent(r)
				s.Events = append(s.Events, e)
				return err
			}),
		each(ctx, db, `SELECT `+deliveryColumns+` FROM delivery`+where+` ORDER BY n`, func(r *sql.Rows) error {
			d, err := scanDelivery(r)
			s.Deliveries = append(s.Deliveries, d)
			return err
		}),
		db.QueryRowContext(ctx, `SELECT coalesce(sum(messages), 0) FROM usage`+where).Scan(&s.Used),
	)
}

// Unsent lists the messages of a workspace, or with "" of all, that a running server has still to
// send. The list of the API would not do: it looks at the newest messages only.
func Unsent(ctx context.Context, dir, url, workspace string) (list []Message, err error) {
	db, err := open(dir, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	where := ""
	if workspace != "" {
		where = ` AND workspace_id = '` + workspace + `'`
	}
	err = each(ctx, db, `SELECT id, status, network_id FROM message
		WHERE about = '' AND status IN ('scheduled', 'queued', 'sending')`+where, func(r *sql.Rows) error {
		var m Message
		err := r.Scan(&m.ID, &m.Status, &m.NetworkID)
		list = append(list, m)
		return err
	})
	return list, err
}

// PendingFiles counts the files of a workspace, or with "" of all, that a running server has
// still to fetch.
func PendingFiles(ctx context.Context, dir, url, workspace string) (n int, err error) {
	db, err := open(dir, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	where := ""
	if workspace != "" {
		where = ` AND workspace_id = '` + workspace + `'`
	}
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM media WHERE status = 'pending'`+where).Scan(&n)
	return n, err
}

// isStored reports whether the data directory has a file with a hash.
func isStored(dir, workspace, hash string) bool {
	if len(hash) < 2 {
		return false
	}
	b, err := os.ReadFile(filepath.Join(dir, "media", workspace, hash[:2], hash)) //nolint:gosec // the harness names it
	return err == nil && Sum(b) == hash
}

// ReadPending lists the deliveries that have not ended in the database of a killed
// server.
func ReadPending(ctx context.Context, dir, url string) (list []Delivery, err error) {
	db, err := open(dir, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = each(ctx, db, `SELECT `+deliveryColumns+` FROM delivery WHERE status = 'pending' ORDER BY n`,
		func(r *sql.Rows) error {
			d, err := scanDelivery(r)
			list = append(list, d)
			return err
		})
	return list, err
}

func open(dir, url string) (*sql.DB, error) {
	if url != "" {
		return sql.Open("pgx", url)
	}
	return sql.Open("sqlite", "file:"+filepath.Join(dir, "postern.db")+"?mode=ro")
}

const deliveryColumns = `id, endpoint_id, event_id, status, attempts`

func scanDelivery(r *sql.Rows) (d Delivery, err error) {
	err = r.Scan(&d.ID, &d.Endpoint, &d.EventID, &d.Status, &d.Attempts)
	return d, err
}

func scanEvent(r *sql.Rows) (e Event, err error) {
	var body []byte
	if err := r.Scan(&e.ID, &e.Device, &e.Type, &e.Sequence, &body); err != nil {
		return e, err
	}
	e.SHA256 = Sum(body)
	if err := json.Unmarshal(body, &e.Says); err != nil {
		return e, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return e, nil
}

// Sum is the form in which the ledgers record bytes: their SHA-256 in hex.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func each(ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close() // rows.Err below reports errors
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
