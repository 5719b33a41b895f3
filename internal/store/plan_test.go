package store

import (
	"testing"

	"postern/internal/postern"
)

func linkedAt(t *testing.T, db *Store, ws postern.WorkspaceID, status postern.Status, at int64) postern.Device {
	t.Helper()
	d := newDevice(t, db, ws, status)
	err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
		return t.Exec(`UPDATE device SET linked_at = $2 WHERE id = $1`, d.ID, at)
	}))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func states(t *testing.T, db *Store, list ...postern.Device) (got []string) {
	t.Helper()
	for _, d := range list {
		now, err := db.Devices.ForEngine(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(now.Status)+" "+string(now.StatusReason)+" "+string(now.Desired))
	}
	return got
}

func setPlan(t *testing.T, db *Store, ws postern.WorkspaceID, name string) {
	t.Helper()
	plan, _ := postern.PlanByName(name)
	if err := db.Workspaces.SetPlan(t.Context(), ws, plan, testNow); err != nil {
		t.Fatal(err)
	}
}

func TestPlanPausesTheLatestLinksAndResumesThese(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		other := linkedAt(t, db, newWorkspace(t, db), postern.Connected, 9)
		late, early := linkedAt(t, db, ws, postern.Connected, 7), linkedAt(t, db, ws, postern.Disconnected, 5)
		gone := linkedAt(t, db, ws, postern.LoggedOut, 1)
		opening := newDevice(t, db, ws, postern.Unlinked)
		if err := db.Links.Open(t.Context(), openLinkOf(opening, 5)); err != nil {
			t.Fatal(err)
		}
		setPlan(t, db, ws, "starter")
		sameText(t, "on the smaller plan", states(t, db, late, early, gone, opening, other),
			"paused plan-limit idle", "disconnected  idle", "logged_out  idle", "unlinked plan-limit idle",
			"connected  connect")
		sameText(t, "events", eventTypes(t, db, late.ID), "device.paused")
		if n := count(t, db, `SELECT count(*) FROM link WHERE status = 'pending'`); n != 0 {
			t.Errorf("%d link attempts are open, want 0", n)
		}
		setPlan(t, db, ws, "growth")
		sameText(t, "on the larger plan", states(t, db, late, early, opening),
			"connecting  connect", "disconnected  idle", "unlinked plan-limit idle")
		one := 1
		if _, err := db.Workspaces.ChangeLimits(t.Context(), ws, postern.Limits{Devices: &one}, testNow); err != nil {
			t.Fatal(err)
		}
		sameText(t, "with a number of its own", states(t, db, late, early), "paused plan-limit idle",
			"disconnected  idle")
	})
}

// A device keeps its slot while its owner has paused it, whatever else needs the slot.
func TestAPausedDeviceKeepsItsSlot(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		held, later := linkedAt(t, db, ws, postern.Paused, 1), linkedAt(t, db, ws, postern.Connected, 2)
		last := linkedAt(t, db, ws, postern.Connected, 3)
		beyond, err := db.Devices.BeyondLimit(t.Context(), ws, 1)
		if err != nil || len(beyond) != 2 || beyond[0].ID != later.ID {
			t.Errorf("beyond a limit of 1 are %v (%v), want the later two", beyond, err)
		}
		for range 2 {
			setPlan(t, db, ws, "starter")
			sameText(t, "on the smaller plan", states(t, db, held, later, last), "paused  idle",
				"paused plan-limit idle", "paused plan-limit idle")
		}
		hasSlots(t, db, held, true, later, false, last, false)
		if n, err := db.Usage.Slots(t.Context(), ws, nil); err != nil || n != 3 {
			t.Errorf("%d slots are used (%v), want 3", n, err)
		}
		unlink := SetDeviceState{WorkspaceID: ws, DeviceID: held.ID, Status: postern.Unlinked, At: testNow}
		if err := db.Devices.SetState(t.Context(), unlink); err != nil {
			t.Fatal(err)
		}
		hasSlots(t, db, held, false, later, true, last, false)
		err = db.Links.Open(t.Context(), openLinkOf(held, 5))
		if postern.ReasonOf(err) != postern.DeviceLimit {
			t.Errorf("a link attempt beside devices that wait for the slot = %v, want device-limit", err)
		}
		setPlan(t, db, ws, "growth")
		sameText(t, "on the larger plan", states(t, db, later, last), "connecting  connect", "connecting  connect")
	})
}

// hasSlots compares what decisions about devices are told; list alternates devices and
// whether each has a slot.
func hasSlots(t *testing.T, db *Store, list ...any) {
	t.Helper()
	for i := 0; i < len(list); i += 2 {
		d, _ := list[i].(postern.Device)
		_, err := db.Devices.Decide(t.Context(), d.WorkspaceID, d.ID, testNow,
			func(_ *postern.Device, slot bool) (postern.EventType, error) {
				if slot != list[i+1] {
					t.Errorf("device %d has a slot: %v, want %v", i/2, slot, list[i+1])
				}
				return "", nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}
