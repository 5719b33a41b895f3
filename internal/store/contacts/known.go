package contacts

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
)

// Query selects contacts of a workspace.
type Query struct {
	WorkspaceID postern.WorkspaceID
	// Devices limit the contacts to those that one of them knows, and what is said of them to what these devices know.
	// Nil: all devices.
	Devices []postern.DeviceID
	Only    []postern.DeviceID // further limits which contacts are listed; nil does not
	Name    string             // a number or a LID by which the contact is known; "" for any
	Text    string             // a part of a name; "" for any. Of the newest [Searched] contacts
	store.Page
}

// Searched is how many contacts a search for a part of a name reads.
const Searched = 5000

// searchedEntries is how many entries of address books it reads.
const searchedEntries = 200_000

// List returns contacts, newest first.
func (t Table) List(ctx context.Context, q Query) (list []postern.KnownContact, err error) {
	ids, err := t.page(ctx, q)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return t.named(ctx, q, ids)
}

// behindAll is behind the id of every contact. A page that begins at a place is found in the index by it.
const behindAll = "zz"

// page returns the ids of contacts, newest first.
func (t Table) page(ctx context.Context, q Query) (ids []string, err error) {
	only := q.Only
	if only == nil {
		only = q.Devices
	}
	switch {
	case q.Name != "":
		id, err := t.Named(ctx, q.WorkspaceID, "", q.Name)
		if err != nil || id.ID == "" || q.After != "" {
			return nil, err
		}
		return []string{string(id.ID)}, nil
	case q.Text != "":
		return t.called(ctx, q, only)
	case only == nil:
		return t.ids(ctx, `SELECT id FROM contact WHERE workspace_id = $1 AND merged_into = '' AND erased_at = 0
			AND id < $2 ORDER BY id DESC LIMIT $3 + 0`, q.WorkspaceID, cmp.Or(q.After, behindAll), q.Limit)
	}
	for _, device := range only {
		some, err := t.ids(ctx, `SELECT contact_id FROM contact_device WHERE device_id = $1 AND contact_id < $2
			ORDER BY contact_id DESC LIMIT $3 + 0`, device, cmp.Or(q.After, behindAll), q.Limit)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
	ids = slices.Compact(ids)
	return ids[:min(len(ids), q.Limit)], nil
}

// called returns the ids of contacts of which a name contains a text: the name that they gave themselves, the one that
// the network verified, or one in the address book of a device that knows the contact, also if another one is shown.
// Matching entries are found first, because there are more pairs of a contact and a device than entries. SQLite ignores
// the case of a to z only.
func (t Table) called(ctx context.Context, q Query, only []postern.DeviceID) (ids []string, err error) {
	if only != nil && len(only) == 0 {
		return nil, nil
	}
	devices, err := json.Marshal(only) // "null" for any
	if err != nil {
		return nil, err
	}
	like := ` LIKE $4 ESCAPE '\'`
	if t.db.Postgres() {
		like = " I" + like[1:]
	}
	entries := `SELECT k.contact_id FROM (SELECT b.device_id, b.entry, b.other, b.name FROM device d
			JOIN address_book b ON b.device_id = d.id
			WHERE d.workspace_id = $1 AND ($6 = 'null' OR d.id IN ` + t.db.InList(6) + `) LIMIT $7 + 0) AS b
		JOIN contact_key k ON k.workspace_id = $1 AND k.name IN (b.entry, b.other)
		JOIN contact_device d ON d.contact_id = k.contact_id AND d.device_id = b.device_id
		WHERE b.name`
	part := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Text) + "%"
	return t.ids(ctx, `SELECT id FROM (SELECT id, push_name, business_name FROM contact
			WHERE workspace_id = $1 AND merged_into = '' AND erased_at = 0 AND id < $2
			ORDER BY id DESC LIMIT $5 + 0) AS newest
		WHERE ($6 = 'null' OR EXISTS (SELECT 1 FROM contact_device d WHERE d.contact_id = newest.id
			AND d.device_id IN `+t.db.InList(6)+`)) AND (push_name`+like+` OR business_name`+like+`
			OR id IN (`+entries+like+`))
		ORDER BY id DESC LIMIT $3 + 0`, q.WorkspaceID, cmp.Or(q.After, behindAll), q.Limit, part,
		Searched, string(devices), searchedEntries)
}

func (t Table) ids(ctx context.Context, query string, args ...any) (ids []string, err error) {
	err = t.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// named reads the contacts with some ids, newest first, with what the devices of a query know of them.
func (t Table) named(ctx context.Context, q Query, ids []string) ([]postern.KnownContact, error) {
	raw, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	known, err := t.books(ctx, q, string(raw))
	if err != nil {
		return nil, err
	}
	var list []postern.KnownContact
	err = t.db.Rows(ctx, `SELECT id, number, lid, push_name, business_name, created_at FROM contact
		WHERE workspace_id = $1 AND id IN `+t.db.InList(2)+` AND merged_into = '' AND erased_at = 0 ORDER BY id DESC`,
		[]any{q.WorkspaceID, string(raw)}, func(r *sql.Rows) error {
			var c postern.KnownContact
			err := r.Scan(&c.ID, &c.PhoneNumber, &c.LID, &c.Names.Own, &c.Names.Business, &c.CreatedAt)
			if by := known[c.ID]; q.covers(by.devices) {
				c.Names.AddressBook, c.DeviceIDs = postern.Maybe(by.name), by.devices
				list = append(list, c.Complete())
			}
			return err
		})
	return list, err
}

// covers reports whether a contact that some devices know is among those of a query.
func (q Query) covers(devices []postern.DeviceID) bool {
	if q.Only != nil && !slices.ContainsFunc(devices, func(d postern.DeviceID) bool { return slices.Contains(q.Only, d) }) {
		return false
	}
	return q.Devices == nil || len(devices) > 0
}

// knowledge is what devices know of a contact.
type knowledge struct {
	name    string // in the address books of their accounts
	devices []postern.DeviceID
}

// books returns what the devices of a query know of contacts.
func (t Table) books(ctx context.Context, q Query, ids string) (map[postern.ContactID]knowledge, error) {
	known := map[postern.ContactID]knowledge{}
	names, err := t.bookNames(ctx, ids)
	if err != nil {
		return nil, err
	}
	err = t.db.Rows(ctx, `SELECT contact_id, device_id FROM contact_device
		WHERE contact_id IN `+t.db.InList(1)+` ORDER BY contact_id, device_id`, []any{ids}, func(r *sql.Rows) error {
		var of inBook
		if err := r.Scan(&of.contact, &of.device); err != nil || q.Devices != nil && !slices.Contains(q.Devices, of.device) {
			return err
		}
		k := known[of.contact]
		k.name, k.devices = cmp.Or(k.name, names[of]), append(k.devices, of.device)
		known[of.contact] = k
		return nil
	})
	return known, err
}

// inBook is a contact in the address book of a device's account.
type inBook struct {
	contact postern.ContactID
	device  postern.DeviceID
}

// bookNames returns what the address books of all devices call contacts. As in contactid, an entry of the person comes
// before one that only says that it is about the person, too.
func (t Table) bookNames(ctx context.Context, ids string) (map[inBook]string, error) {
	names := map[inBook]string{}
	entries := func(place, column string) string {
		return `SELECT d.contact_id, d.device_id, b.name, ` + place + ` AS place, b.entry FROM contact_device d
			JOIN contact_key k ON k.contact_id = d.contact_id
			JOIN address_book b ON b.device_id = d.device_id AND b.` + column + ` = k.name
			WHERE d.contact_id IN ` + t.db.InList(1)
	}
	err := t.db.Rows(ctx, entries("0", "entry")+` UNION ALL `+entries("1", "other")+` AND b.other <> ''
		ORDER BY place, entry`, []any{ids}, func(r *sql.Rows) error {
		var of inBook
		var name, entry string
		var place int
		err := r.Scan(&of.contact, &of.device, &name, &place, &entry)
		if _, ok := names[of]; !ok {
			names[of] = name
		}
		return err
	})
	return names, err
}

// Get returns a contact. The id of one that was merged into it finds it, too.
func (t Table) Get(ctx context.Context, q Query, id postern.ContactID) (postern.KnownContact, error) {
	var ws postern.WorkspaceID
	var merged postern.ContactID
	err := t.db.One(ctx, `SELECT workspace_id, merged_into FROM contact WHERE id = $1`, id).Scan(&ws, &merged)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.KnownContact{}, postern.Errorf(postern.NotFound, "there is no such contact")
	}
	if err != nil {
		return postern.KnownContact{}, err
	}
	if ws != q.WorkspaceID {
		return postern.KnownContact{}, postern.Errorf(postern.ResourceNotAllowed, "this key may not use that contact")
	}
	all := Query{WorkspaceID: q.WorkspaceID}
	list, err := t.named(ctx, all, []string{string(cmp.Or(merged, id))})
	if err != nil {
		return postern.KnownContact{}, err
	}
	if len(list) == 0 {
		return postern.KnownContact{}, postern.Errorf(postern.NotFound, "there is no such contact")
	}
	if q.Devices == nil {
		return list[0], nil
	}
	if list, err = t.named(ctx, q, []string{string(list[0].ID)}); err == nil && len(list) == 0 {
		return postern.KnownContact{}, postern.Errorf(postern.ResourceNotAllowed, "this key may not use that contact")
	}
	if err != nil {
		return postern.KnownContact{}, err
	}
	return list[0], nil
}

// Named returns the contact that is known by a number or a LID; the zero value if there is none. Of the devices that know
// it, it returns one, if that does.
func (t Table) Named(
	ctx context.Context, ws postern.WorkspaceID, one postern.DeviceID, name string,
) (c postern.KnownContact, err error) {
	var met int
	err = t.db.One(ctx, `SELECT c.id, c.number, c.lid, (SELECT count(*) FROM contact_device d
		WHERE d.contact_id = c.id AND d.device_id = $3) FROM contact_key k JOIN contact c ON c.id = k.contact_id
		WHERE k.workspace_id = $1 AND k.name = $2`, ws, name, one).Scan(&c.ID, &c.PhoneNumber, &c.LID, &met)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.KnownContact{}, nil
	}
	if met > 0 {
		c.DeviceIDs = []postern.DeviceID{one}
	}
	return c.Complete(), err
}
