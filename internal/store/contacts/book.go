package contacts

import (
	"context"
	"database/sql"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// bookChunk is how many entries of an address book are written in one transaction.
const bookChunk = 1000

var (
	saveEntries = db.NewStatement("device, about, also, called",
		`INSERT INTO address_book (device_id, entry, other, name) @values ON CONFLICT (device_id, entry) DO UPDATE
		SET other = excluded.other, name = excluded.name
		WHERE address_book.other <> excluded.other OR address_book.name <> excluded.name`)
	removeEntries = db.NewStatement("device, about",
		`DELETE FROM address_book [USING @rows] WHERE device_id = @device AND entry = @about`)
)

// SetBook stores what is known of the address book of a device's account. Entries beyond [postern.MaxBookEntries] are
// left out. It writes only what changes, and can be repeated after it has failed.
func (t Table) SetBook(ctx context.Context, id postern.DeviceID, b postern.AddressBook) error {
	known, err := t.needed(ctx, id, b)
	if err != nil {
		return err
	}
	saved, gone := changed(id, b, known)
	if err := t.writeBook(ctx, removeEntries, gone); err != nil {
		return err
	}
	return t.writeBook(ctx, saveEntries, saved)
}

func (t Table) writeBook(ctx context.Context, s *db.Statement, rows [][]any) error {
	for some := range slices.Chunk(rows, bookChunk) {
		if err := t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error { return tx.Each(s, some) }))); err != nil {
			return err
		}
	}
	return nil
}

// needed returns the stored entries of a device, by their names, if they decide what is to be stored; nil otherwise.
func (t Table) needed(
	ctx context.Context, id postern.DeviceID, b postern.AddressBook,
) (known map[string]postern.BookEntry, err error) {
	if !b.Whole {
		var n int
		err := t.db.Row(ctx, `SELECT count(*) FROM address_book WHERE device_id = $1`, []any{id}, &n)
		if err != nil || n+len(b.Entries) <= postern.MaxBookEntries {
			return nil, err
		}
	}
	list, err := t.Book(ctx, id)
	known = make(map[string]postern.BookEntry, len(list))
	for _, e := range list {
		known[e.Entry] = e
	}
	return known, err
}

// Book returns what is stored of the address book of a device's account.
func (t Table) Book(ctx context.Context, id postern.DeviceID) (list []postern.BookEntry, err error) {
	err = t.db.Rows(ctx, `SELECT entry, other, name FROM address_book WHERE device_id = $1`, []any{id},
		func(r *sql.Rows) error {
			var e postern.BookEntry
			err := r.Scan(&e.Entry, &e.Other, &e.Name)
			list = append(list, e)
			return err
		})
	return list, err
}

// changed returns the rows to save and to remove. Without known entries, all that are named are.
func changed(id postern.DeviceID, b postern.AddressBook, known map[string]postern.BookEntry) (saved, gone [][]any) {
	room := postern.MaxBookEntries - len(known)
	if b.Whole {
		room = postern.MaxBookEntries
	}
	named := map[string]bool{}
	for _, e := range b.Entries {
		before, has := known[e.Entry]
		named[e.Entry] = true
		switch {
		case e.Name == "":
			gone = append(gone, []any{id, e.Entry})
		case has && before == e:
		case has || room > 0:
			saved = append(saved, []any{id, e.Entry, e.Other, e.Name})
			if !has {
				room--
			}
		}
	}
	for entry := range known {
		if b.Whole && !named[entry] {
			gone = append(gone, []any{id, entry})
		}
	}
	return saved, gone
}
