package store

import (
	"testing"

	"postern/internal/postern"
)

func TestDecisionSeesTheDeviceAsItIs(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d := newDevice(t, db, ws, postern.Connected)
		pause := func(d *postern.Device, slot bool) (postern.EventType, error) {
			if !slot {
				t.Error("the only device has no slot")
			}
			d.Status, d.StatusReason = postern.Paused, "user"
			return postern.DevicePaused, nil
		}
		for range 2 { // the second changes nothing and makes no event
			got, err := db.Devices.Decide(t.Context(), ws, d.ID, testNow, pause)
			if err != nil || got.Status != postern.Paused {
				t.Fatalf("Decide = %s, %v", got.Status, err)
			}
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "device.paused")
		refuse := func(*postern.Device, bool) (postern.EventType, error) {
			return "", postern.Errorf(postern.NotLinked, "no")
		}
		if _, err := db.Devices.Decide(t.Context(), ws, d.ID, testNow,
			refuse); postern.ReasonOf(err) != postern.NotLinked {
			t.Errorf("a refused decision = %v", err)
		}
		if _, err := db.Devices.Decide(t.Context(), newWorkspace(t, db), d.ID, testNow,
			pause); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the device of another workspace = %v", err)
		}
	})
}
