package store

import (
	"slices"
	"testing"

	"postern/internal/postern"
)

// Read backwards in pages, the log has the same events in reverse order, and ends above the
// floor.
func TestLogBackwardsIsTheLogReversed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		a, b := newDevice(t, db, ws, postern.Connected), newDevice(t, db, ws, postern.Connected)
		for _, d := range []postern.Device{a, b, newDevice(t, db, newWorkspace(t, db), postern.Connected), a} {
			logMany(t, db, d, 4, postern.MessageSent, testNow)
			logMany(t, db, d, 3, postern.MessageRead, testNow)
		}
		end, err := db.Events.End(t.Context(), ws)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]EventFilter{
			"all":      {},
			"a kind":   {Types: []postern.EventType{postern.MessageRead}},
			"a device": {Devices: []postern.DeviceID{b.ID}}, "no kind": {Types: []postern.EventType{}},
		} {
			want, err := db.Events.List(t.Context(), ws, f, 2, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []LogEntry
			for p := (EventPage{Last: end + 1, More: true}); p.More; got = append(got, p.Entries...) {
				if p, err = db.Events.Before(t.Context(), ws, f, p.Last, 2, 3); err != nil || len(p.Entries) > 3 {
					t.Fatal(p, err)
				}
			}
			slices.Reverse(got)
			if !slices.EqualFunc(got, want.Entries,
				func(x, y LogEntry) bool { return x.ID == y.ID && x.Position == y.Position }) {
				t.Errorf("%s: backwards there are %d events, forwards %d", name, len(got), len(want.Entries))
			}
		}
	})
}
