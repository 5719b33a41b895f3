package chaos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers
	_ "modernc.org/sqlite"
)

// State is the part of a stopped gateway's database that the judge examines.
type State struct {
	Devices    map[string]string // id → number
	Sequences  map[string]int64  // id → sequence number of its newest event
	Messages   []Message
	Actions    []Action
	Files      map[string]File  // by id
	Orphans    []string         // stored contents that belong to no file
	Stored     map[string]int64 // sizes of the stored contents, by hash
	Blobs      map[string]int64 // sizes of the contents that are counted, by hash
	Bytes      int64            // the count of their bytes
	Events     []Event
	Deliveries []Delivery
	Groups     []Group
	Chats      []Chat
	Book       map[Entered]string // names in the address books of phones
	Used       int                // units of quota spent, over all months
}

// Message is a row of the message table that is no action.
type Message struct {
	ID, Device, Chat, Direction, Status, Failure, NetworkID string

	Body string // as it was written: the text, or the question of a poll
	Edit string // the text that has taken its place; "" for none

	File string // id of its file; "" for none

	FrameLeft bool // if false for a message that has ended, its unit was refunded

	SentAt int64 // milliseconds; when it was accepted, if it was not sent

	N     int64 // its place among the messages and actions of its chat
	Shows Shows // what actions have made of it
}

// Shows is what a message shows of the actions on it.
type Shows struct {
	Reactions []Reaction `json:"reactions"`
	Votes     []Vote     `json:"votes"`
	DeletedAt string     `json:"deletedAt"`
	StarredAt string     `json:"starredAt"`
}

// Reaction is somebody's emoji on a message.
type Reaction struct {
	From  string `json:"from"` // number
	Emoji string `json:"emoji"`
}

// Vote is somebody's choice in a poll.
type Vote struct {
	From    string   `json:"from"` // number
	Options []string `json:"options"`
}

// Poll is the poll of a message, or as a vote the options that it chooses.
type Poll struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

// Action is a row of the message table that acts on another message.
type Action struct {
	ID, Device, Chat, Direction, Status, Failure, NetworkID string

	About string // id on the network of the message
	Kind  string // as the vendor's ledger names it
	Text  string // as in Act; of a received vote, the hash of the option
	N     int64  // as in Message
	Phone bool   // the owner did it on the phone
	Ended int64  // milliseconds; when sending it was done or given up
}

// editMark begins what an edit adds to a text, so that the text as it was written remains known.
const editMark = "~"

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
		ID       string   `json:"id"`
		Body     string   `json:"body"`
		Poll     Poll     `json:"poll"`
		Reaction Reaction `json:"reaction"`
		Vote     Vote     `json:"vote"`
	} `json:"message"`
	Group SaidOfGroup `json:"group"`
}

// written returns the text of the event's message as it was written.
func (s Said) written() string {
	body, _, _ := strings.Cut(cmp.Or(s.Message.Body, s.Message.Poll.Question), editMark)
	return body
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
	where := whereWorkspace(workspace)
	hashes := map[string]bool{}
	s.Devices, s.Sequences, s.Files = map[string]string{}, map[string]int64{}, map[string]File{}
	s.Blobs, s.Stored = map[string]int64{}, stored(dir, workspace)
	err = errors.Join(
		each(ctx, db, `SELECT id, phone_number, sequence FROM device`+where, func(r *sql.Rows) error {
			var id, number string
			var sequence int64
			err := r.Scan(&id, &number, &sequence)
			s.Devices[id], s.Sequences[id] = number, sequence
			return err
		}),
		each(ctx, db, `SELECT `+messageColumns+` FROM message`+where+` ORDER BY n`, s.scanMessage),
		each(ctx, db, `SELECT id, workspace_id, status, hash FROM media`+where, func(r *sql.Rows) error {
			var id, workspace string
			var f File
			err := r.Scan(&id, &workspace, &f.Status, &f.SHA256)
			f.Stored = isStored(dir, workspace, f.SHA256)
			s.Files[id], hashes[f.SHA256] = f, true
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
		each(ctx, db, `SELECT hash, size FROM blob`+where, func(r *sql.Rows) error {
			var hash string
			var size int64
			err := r.Scan(&hash, &size)
			s.Blobs[hash] = size
			return err
		}),
		s.readGroups(ctx, db, where),
		db.QueryRowContext(ctx, `SELECT coalesce(sum(messages), 0) FROM usage`+where).Scan(&s.Used),
		db.QueryRowContext(ctx, `SELECT coalesce(sum(bytes), 0) FROM storage`+where).Scan(&s.Bytes),
	)
	for hash := range s.Stored {
		if !hashes[hash] {
			s.Orphans = append(s.Orphans, hash)
		}
	}
	return s, err
}

// whereWorkspace selects the rows of one workspace, or with "" of all.
func whereWorkspace(workspace string) string {
	if workspace == "" {
		return ""
	}
	return ` WHERE workspace_id = '` + workspace + `'`
}

const messageColumns = `id, device_id, chat_id, direction, status, error_code, network_id, body, frame_left, media_id,
	n, about, type, extra, state, source, CASE WHEN sent_at > 0 THEN sent_at ELSE created_at END, finished_at`

// scanMessage reads a message or an action.
func (s *State) scanMessage(r *sql.Rows) error {
	var m Message
	var about, kind, extra, state, source string
	var ended int64
	err := r.Scan(&m.ID, &m.Device, &m.Chat, &m.Direction, &m.Status, &m.Failure, &m.NetworkID, &m.Body, &m.FrameLeft,
		&m.File, &m.N, &about, &kind, &extra, &state, &source, &m.SentAt, &ended)
	var more struct {
		Poll Poll `json:"poll"`
	}
	if extra != "" {
		err = errors.Join(err, json.Unmarshal([]byte(extra), &more))
	}
	if state != "" {
		err = errors.Join(err, json.Unmarshal([]byte(state), &m.Shows))
	}
	if about != "" {
		s.Actions = append(s.Actions, Action{
			ID: m.ID, Device: m.Device, Chat: m.Chat, Direction: m.Direction, Status: m.Status, Failure: m.Failure,
			NetworkID: m.NetworkID, About: about, Kind: kind, Text: cmp.Or(m.Body, strings.Join(more.Poll.Options, ",")),
			N: m.N, Phone: source == "phone", Ended: ended,
		})
		return err
	}
	if body, _, edited := strings.Cut(m.Body, editMark); edited {
		m.Body, m.Edit = body, m.Body
	}
	m.Body = cmp.Or(m.Body, more.Poll.Question)
	s.Messages = append(s.Messages, m)
	return err
}

// stored returns the sizes of the stored contents, by hash.
func stored(dir, workspace string) map[string]int64 {
	names, _ := filepath.Glob(filepath.Join(dir, "media", cmp.Or(workspace, "*"), "*", "*")) // the pattern is valid
	sizes := map[string]int64{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			sizes[filepath.Base(name)] = info.Size()
		}
	}
	return sizes
}

// Unsent lists the messages and actions of a workspace, or with "" of all, that a running server has still to
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
		WHERE status IN ('scheduled', 'queued', 'sending')`+where, func(r *sql.Rows) error {
		var m Message
		err := r.Scan(&m.ID, &m.Status, &m.NetworkID)
		list = append(list, m)
		return err
	})
	return list, err
}

// Owned is a device, and the server that works for it.
type Owned struct{ Device, Status, Owner string }

// Owners lists the linked devices in the database with a URL.
func Owners(ctx context.Context, url string) (list []Owned, err error) {
	db, err := open("", url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = each(ctx, db, `SELECT id, status, owner FROM device WHERE status <> 'unlinked'`, func(r *sql.Rows) error {
		var d Owned
		err := r.Scan(&d.Device, &d.Status, &d.Owner)
		list = append(list, d)
		return err
	})
	return list, err
}

// Version is the number of the newest migration of the PostgreSQL database with a URL.
func Version(ctx context.Context, url string) (v int64, err error) {
	db, err := open("", url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
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

// Taken lists the ids on the network of the actions that a running server has received.
func Taken(ctx context.Context, dir, url string) (ids map[string]bool, err error) {
	db, err := open(dir, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ids = map[string]bool{}
	return ids, each(ctx, db, `SELECT network_id FROM message WHERE about <> '' AND direction = 'inbound'`,
		func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			ids[id] = true
			return err
		})
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
