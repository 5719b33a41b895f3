package contacts_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/contacts"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill adds two devices and people whom the first, the second, or both know.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	person := func(tx *db.Tx, ws, id, push, business, book string, devices ...string) error {
		err := tx.Exec(`INSERT INTO contact (id, workspace_id, number, lid, push_name, business_name, merged_into, erased_at,
			created_at) VALUES ($1, $2, '', $1, $3, $4, '', 0, 1)`, id, ws, push, business)
		for _, d := range devices {
			err = errors.Join(err, tx.Exec(`INSERT INTO contact_device (contact_id, device_id, book_name) VALUES ($1, $2, '')`,
				id, d))
		}
		if book != "" {
			err = errors.Join(err,
				tx.Exec(`INSERT INTO contact_key (workspace_id, name, contact_id) VALUES ($1, $2, $3)`, ws, "lid:"+id, id),
				tx.Exec(`INSERT INTO address_book (device_id, entry, other, name) VALUES ($1, $2, '', $3)`, devices[0], "lid:"+id, book))
		}
		return err
	}
	check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		err := tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'a', 'growth', 1), ('ws_2', 'b',
			'growth', 1)`)
		for _, d := range []string{"dev_1", "dev_2"} {
			err = errors.Join(err, tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired,
				account, phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ($1, 'ws_1', '', 'live', 'connected', '', 'connect', '', '', '', '{}', 1, 0, 0,
				0, 0, 0, 0)`, d))
		}
		return errors.Join(err,
			person(tx, "ws_1", "ctc_1", "Ada Lovelace", "", "", "dev_1"), person(tx, "ws_1", "ctc_2", "", "100% Änne_Bakery", "", "dev_2"),
			person(tx, "ws_1", "ctc_3", "g Love", "", "Grace Hopper", "dev_1", "dev_2"),
			person(tx, "ws_2", "ctc_4", "Ada Elsewhere", "", ""),
			tx.Exec(`INSERT INTO contact_key (workspace_id, name, contact_id) VALUES ('ws_1', '+1555', 'ctc_2'),
				('ws_1', '+1666', 'ctc_1')`),
			tx.Exec(`INSERT INTO address_book (device_id, entry, other, name) VALUES ('dev_2', 'lid:9', '+1555', 'Baker Street'),
				('dev_2', '+1666', '', 'Unmet Countess')`))
	})))
}

// People are found by a part of any of their names, newest first, among those whom the chosen devices know.
func TestContactsAreFoundByName(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		for _, tt := range []struct {
			text  string
			only  []postern.DeviceID
			after string
			want  []postern.ContactID
		}{
			{"LOVE", nil, "", []postern.ContactID{"ctc_3", "ctc_1"}},
			{"LOVE", nil, "ctc_3", []postern.ContactID{"ctc_1"}},
			{"love", []postern.DeviceID{"dev_2"}, "", []postern.ContactID{"ctc_3"}},
			{"love", []postern.DeviceID{"dev_1", "dev_2"}, "", []postern.ContactID{"ctc_3", "ctc_1"}},
			{"love", []postern.DeviceID{}, "", nil},
			{"hopper", nil, "", []postern.ContactID{"ctc_3"}},
			{"hopper", []postern.DeviceID{"dev_1"}, "", []postern.ContactID{"ctc_3"}},
			{"hopper", []postern.DeviceID{"dev_2"}, "", nil},    // another account's address book
			{"baker st", nil, "", []postern.ContactID{"ctc_2"}}, // by the other name of an entry
			{"countess", nil, "", nil},                          // of a device that does not know the person
			{"ada", nil, "", []postern.ContactID{"ctc_1"}},
			{"Änne_b", nil, "", []postern.ContactID{"ctc_2"}},
			{"100% ", nil, "", []postern.ContactID{"ctc_2"}},
			{"a%l", nil, "", nil},
			{"a_a", nil, "", nil},
			{"nobody", nil, "", nil},
		} {
			list, err := contacts.Of(s).List(t.Context(), contacts.Query{
				WorkspaceID: "ws_1", Only: tt.only, Text: tt.text, Page: store.Page{Limit: 10, After: tt.after},
			})
			check(t, err)
			var ids []postern.ContactID
			for _, c := range list {
				ids = append(ids, c.ID)
			}
			if !slices.Equal(ids, tt.want) {
				t.Errorf("%q of %v after %q: %v, want %v", tt.text, tt.only, tt.after, ids, tt.want)
			}
		}
	})
}

// onEach runs a test on both databases, with what fill adds.
func onEach(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url()
			s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, at), URL: at})
			check(t, err)
			t.Cleanup(func() { check(t, s.Close()) })
			fill(t, s)
			test(t, s)
		})
	}
}
