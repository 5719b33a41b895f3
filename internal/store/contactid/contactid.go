// Package contactid finds the contacts of people in the transactions of package store, by their numbers and LIDs, and
// adds those who are new.
//
// The network names a person by a number, by a LID that hides the number, or by both. What it says last is right: a
// LID belongs to the number with which it was seen last, and a number to its last LID. Two contacts become one if one
// of them has no number; two numbers never become one person, so that a wrong claim cannot mix the chats of two people.
package contactid

import (
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// Sighting is a person whom a device has met. Nobody is met if Who is empty.
type Sighting struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	Who         postern.Seen
	At          postern.Time
	Past        bool // its names may be out of date
}

// Identified is a contact whose number became known, or to which another one was added.
type Identified struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID // to be told
	Contact     postern.IdentifiedContact
}

// columns are the columns of a contact that [row] scans.
const columns = `c.id, c.number, c.lid, c.push_name, c.business_name, c.created_at`

// row is a contact as it is stored.
type row struct {
	id             postern.ContactID
	number, lid    string
	push, business string
	createdAt      postern.Time
}

func (r *row) into() []any {
	return []any{&r.id, &r.number, &r.lid, &r.push, &r.business, &r.createdAt}
}

// chat returns the direct chat with the contact.
func (r row) chat() string {
	if r.number != "" {
		return postern.ChatOfNumber(r.number)
	}
	return r.lid
}

// readKnown finds the contacts of people, with at most two rows for each of them.
var readKnown = db.NewStatement("ws, device, num, hidden, place",
	`SELECT @place, k.name, `+columns+`, EXISTS (SELECT 1 FROM contact_device d WHERE d.contact_id = c.id
		AND d.device_id = @device)
	FROM [@rows CROSS JOIN] contact_key k JOIN contact c ON c.id = k.contact_id
	WHERE k.workspace_id = @ws AND k.name IN (@num, @hidden)`)

// match is what is stored of a person.
type match struct {
	row

	names  int  // by which it was found
	others bool // there is another contact, too
	met    bool // the device knows it
}

// settles reports whether everything that was seen of a person is stored.
func (m match) settles(s Sighting) bool {
	w, names := s.Who, 0
	for _, name := range []string{w.Number, w.LID} {
		if name != "" {
			names++
		}
	}
	return !m.others && m.names == names && m.met && newName(s, m.push, w.Name) == m.push &&
		newName(s, m.business, w.Business) == m.business
}

// newName returns the name to keep of a known one and one that was seen.
func newName(s Sighting, known, seen string) string {
	if seen == "" || s.Past && known != "" {
		return known
	}
	return seen
}

// Found is the contact of a person. Its zero value is none.
type Found struct {
	ID     postern.ContactID
	Number string // "" while the network hides it
	LID    string // "" if it is not known
}

// Chat returns the direct chat with the contact.
func (f Found) Chat() string { return row{number: f.Number, lid: f.LID}.chat() }

func (r row) found() Found { return Found{r.id, r.number, r.lid} }

// Resolve returns the contacts of people, and what became known of them. It reads once for all of them, and writes
// only what is new: nothing about a person of whom everything is known.
//
// Single writer: change.
func Resolve(t *db.Tx, list []Sighting) (found []Found, news []Identified, err error) {
	matches, err := read(t, list)
	if err != nil {
		return nil, nil, err
	}
	found = make([]Found, len(list))
	for i, s := range list {
		switch {
		case s.Who.IsEmpty():
		case matches[i].settles(s):
			found[i] = matches[i].found()
		default:
			c, one, err := settle(t, s)
			if err != nil {
				return nil, nil, err
			}
			found[i], news = c.found(), append(news, one...)
		}
	}
	if len(news) > 0 && len(list) > 1 { // those that came first may have become a part of others
		if matches, err = read(t, list); err == nil {
			for i := range list {
				found[i] = matches[i].found()
			}
		}
	}
	return found, news, err
}

func read(t *db.Tx, list []Sighting) ([]match, error) {
	var rows [][]any
	for i, s := range list {
		if !s.Who.IsEmpty() {
			rows = append(rows, []any{s.WorkspaceID, s.DeviceID, s.Who.Number, s.Who.LID, int64(i)})
		}
	}
	matches := make([]match, len(list))
	err := t.EachRow(readKnown, rows, func(r *sql.Rows) error { return scanMatch(r, matches) })
	return matches, err
}

func scanMatch(r *sql.Rows, found []match) error {
	var place int
	var name string
	var m match
	dst := append([]any{&place, &name}, m.into()...)
	if err := r.Scan(append(dst, &m.met)...); err != nil {
		return err
	}
	was := found[place]
	m.names, m.others = was.names+1, was.others || was.names > 0 && was.id != m.id
	found[place] = m
	return nil
}

// settle stores what is new about a person. Another sighting of the same transaction may have come first, so it reads
// again.
func settle(t *db.Tx, s Sighting) (row, []Identified, error) {
	byNumber, err := find(t, s.WorkspaceID, s.Who.Number)
	if err != nil {
		return row{}, nil, err
	}
	byLID, err := find(t, s.WorkspaceID, s.Who.LID)
	if err != nil {
		return row{}, nil, err
	}
	c, merged, err := unite(t, s, byNumber, byLID)
	if err != nil {
		return row{}, nil, err
	}
	if err := errors.Join(rename(t, &c, s), meet(t, c.id, s.DeviceID)); err != nil {
		return row{}, nil, err
	}
	if s.Who.LID == "" || s.Who.Number == "" || byNumber.id == byLID.id && byNumber.id != "" {
		return c, nil, nil
	}
	identified := byLID.id != "" && byLID.number == ""
	news, err := joined(t, s, c, merged, identified)
	return c, news, err
}

// find returns the contact with a name; the zero row if there is none.
func find(t *db.Tx, ws postern.WorkspaceID, name string) (c row, err error) {
	if name == "" {
		return c, nil
	}
	err = t.Row(`SELECT `+columns+` FROM contact_key k JOIN contact c ON c.id = k.contact_id
		WHERE k.workspace_id = $1 AND k.name = $2`, []any{ws, name}, c.into()...)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, nil
	}
	return c, err
}

// unite returns the one contact of a person who was found by a number, by a LID, by both or not at all. merged is the
// contact that became a part of it; "" for none.
func unite(t *db.Tx, s Sighting, byNumber, byLID row) (c row, merged postern.ContactID, err error) {
	switch {
	case byNumber.id == "" && byLID.id == "":
		c, err = add(t, s)
	case byNumber.id == byLID.id, byLID.id == "" && s.Who.LID == "", byNumber.id == "" && s.Who.Number == "":
		if c = byNumber; c.id == "" {
			c = byLID
		}
	case byLID.id == "":
		c = byNumber
		err = claimLID(t, s.WorkspaceID, &c, s.Who.LID)
	case byNumber.id == "" && byLID.number == "":
		c = byLID
		err = learnNumber(t, s, &c)
	case byNumber.id == "": // the LID has another number now
		c, err = add(t, Sighting{s.WorkspaceID, s.DeviceID, postern.Seen{Number: s.Who.Number}, s.At, s.Past})
		err = errors.Join(err, moveLID(t, s.WorkspaceID, byLID, &c))
	case byLID.number == "":
		c, merged = byNumber, byLID.id
		err = merge(t, s.WorkspaceID, byLID, &c)
	default:
		c = byNumber
		err = moveLID(t, s.WorkspaceID, byLID, &c)
	}
	return c, merged, err
}

// add stores a new contact.
func add(t *db.Tx, s Sighting) (row, error) {
	c := row{id: postern.NewContactID(), number: s.Who.Number, lid: s.Who.LID, createdAt: s.At}
	err := t.Exec(`INSERT INTO contact (id, workspace_id, number, lid, push_name, business_name, merged_into, erased_at,
		created_at) VALUES ($1, $2, $3, $4, '', '', '', 0, $5)`, c.id, s.WorkspaceID, c.number, c.lid, s.At)
	return c, errors.Join(err, key(t, s.WorkspaceID, c.number, c.id), key(t, s.WorkspaceID, c.lid, c.id))
}

// key lets a contact be found by a name.
func key(t *db.Tx, ws postern.WorkspaceID, name string, id postern.ContactID) error {
	if name == "" {
		return nil
	}
	return t.Exec(`INSERT INTO contact_key (workspace_id, name, contact_id) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, name) DO UPDATE SET contact_id = excluded.contact_id`, ws, name, id)
}

// claimLID gives a contact a LID, in place of the one that it had.
func claimLID(t *db.Tx, ws postern.WorkspaceID, c *row, lid string) error {
	if c.lid != "" {
		if err := t.Exec(`DELETE FROM contact_key WHERE workspace_id = $1 AND name = $2`, ws, c.lid); err != nil {
			return err
		}
	}
	c.lid = lid
	return errors.Join(setNames(t, *c), key(t, ws, lid, c.id))
}

// moveLID takes a LID from the contact that had it, and gives it to another one.
func moveLID(t *db.Tx, ws postern.WorkspaceID, from row, to *row) error {
	lid := from.lid
	from.lid = ""
	if err := setNames(t, from); err != nil {
		return err
	}
	return claimLID(t, ws, to, lid)
}

// learnNumber stores the number of a contact that was known by its LID only.
func learnNumber(t *db.Tx, s Sighting, c *row) error {
	c.number = s.Who.Number
	return errors.Join(setNames(t, *c), key(t, s.WorkspaceID, c.number, c.id))
}

// merge makes a contact that has a LID and no number a part of another one. Its id keeps working.
func merge(t *db.Tx, ws postern.WorkspaceID, from row, to *row) error {
	return errors.Join(absorb(t, from, to), claimLID(t, ws, to, from.lid))
}

// absorb gives a contact what belongs to another one, which becomes a part of it.
func absorb(t *db.Tx, from row, to *row) error {
	if from.push != "" && to.push == "" {
		to.push = from.push
	}
	if from.business != "" && to.business == "" {
		to.business = from.business
	}
	for _, query := range []string{
		`UPDATE contact SET merged_into = $1 WHERE merged_into = $2 AND merged_into <> ''`,
		`UPDATE contact SET merged_into = $1, number = '', lid = '', push_name = '', business_name = '' WHERE id = $2`,
		`UPDATE contact_key SET contact_id = $1 WHERE contact_id = $2`,
		`INSERT INTO contact_device (contact_id, device_id, book_name)
			SELECT $1, device_id, '' FROM contact_device WHERE contact_id = $2
			ON CONFLICT (contact_id, device_id) DO NOTHING`,
	} {
		if err := t.Exec(query, to.id, from.id); err != nil {
			return err
		}
	}
	return errors.Join(t.Exec(`DELETE FROM contact_device WHERE contact_id = $1`, from.id), setNames(t, *to))
}

// setNames stores by which names a contact is known.
func setNames(t *db.Tx, c row) error {
	return t.Exec(`UPDATE contact SET number = $2, lid = $3, push_name = $4, business_name = $5 WHERE id = $1`,
		c.id, c.number, c.lid, c.push, c.business)
}

// rename stores the names that a person has now.
func rename(t *db.Tx, c *row, s Sighting) error {
	push, business := newName(s, c.push, s.Who.Name), newName(s, c.business, s.Who.Business)
	if push == c.push && business == c.business {
		return nil
	}
	c.push, c.business = push, business
	return setNames(t, *c)
}

// meet stores that a device knows a contact.
func meet(t *db.Tx, id postern.ContactID, device postern.DeviceID) error {
	return t.Exec(`INSERT INTO contact_device (contact_id, device_id, book_name) SELECT $1, id, '' FROM device
		WHERE id = $2 ON CONFLICT (contact_id, device_id) DO NOTHING`, id, device)
}
