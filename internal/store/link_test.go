package store

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/postern"
)

func openLinkOf(d postern.Device, slots int) OpenLink {
	return OpenLink{Link: postern.Link{
		ID: postern.NewLinkID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID,
		Method:    "qr",
		ExpiresAt: testNow.Add(time.Minute),
	}, Slots: slots, At: testNow}
}

func TestLastSlotGoesToOneLinkAttempt(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		newDevice(t, db, ws, postern.Paused) // holds a slot
		var wg sync.WaitGroup
		var opened atomic.Int32
		for range 20 {
			d := newDevice(t, db, ws, postern.Unlinked)
			wg.Go(func() {
				err := db.Links.Open(context.WithoutCancel(t.Context()), openLinkOf(d, 2))
				if err == nil {
					opened.Add(1)
				} else if postern.ReasonOf(err) != postern.DeviceLimit {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := opened.Load(); got != 1 {
			t.Errorf("%d attempts were opened, want 1", got)
		}
	})
}

func TestLinkAttemptFromOpenToLinked(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
		first := openLinkOf(d, 1)
		if err := db.Links.Open(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := db.Links.Open(t.Context(), openLinkOf(d, 5)); postern.ReasonOf(err) != postern.LinkAlreadyOpen {
			t.Errorf("a second attempt = %v, want link-already-open", err)
		}
		ended, err := db.Links.End(t.Context(), LinkEnd{
			WorkspaceID: d.WorkspaceID,
			DeviceID:    d.ID, LinkID: first.Link.ID, Status: postern.LinkExpired,
			Reason: "timeout", At: testNow,
		})
		if !ended || err != nil {
			t.Fatalf("EndLink = %v, %v", ended, err)
		}
		second := openLinkOf(d, 1) // the slot was given back
		if err := db.Links.Open(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if ended, err := db.Links.End(t.Context(), LinkEnd{
			WorkspaceID: d.WorkspaceID,
			DeviceID:    d.ID, LinkID: first.Link.ID, Status: postern.LinkFailed,
			Reason: "late", At: testNow,
		}); ended || err != nil {
			t.Errorf("the first attempt's end = %v, %v: it must not end the second", ended, err)
		}
		if err := db.Links.Scanned(t.Context(), LinkRow{Link: first.Link}, "acc",
			"+15550001111"); postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("scanning an ended attempt = %v, want no-open-link", err)
		}
		e, err := d.Event(postern.DeviceLinked)
		if err != nil {
			t.Fatal(err)
		}
		finish := FinishLink{
			LinkID: second.Link.ID, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: "acc",
			Number: "+15550001111", At: testNow, Event: e,
		}
		if err := db.Links.Finish(t.Context(), finish); err != nil {
			t.Fatal(err)
		}
		if err := db.Links.Finish(t.Context(), finish); postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("finishing twice = %v, want no-open-link", err)
		}
		got, err := db.Devices.ForEngine(t.Context(), d.ID)
		if err != nil || got.Status != postern.Connecting || got.Desired != postern.WantConnect ||
			got.Account != "acc" ||
			got.PhoneNumber != "+15550001111" {
			t.Errorf("device = %+v (%v)", got, err)
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "device.linking", "device.linking", "device.linking", "device.linked")
		if err := db.Links.Open(t.Context(), openLinkOf(d, 5)); postern.ReasonOf(err) != postern.DeviceAlreadyLinked {
			t.Errorf("linking a linked device = %v, want device-already-linked", err)
		}
	})
}

func TestSessionCannotOverwriteWhatTheUserDecided(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
		err := db.Devices.SetState(t.Context(),
			SetDeviceState{
				WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Connected,
				From: []postern.Status{postern.Connecting}, At: testNow,
			})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Devices.Get(t.Context(), d.WorkspaceID, d.ID); got.Status != postern.Unlinked {
			t.Errorf("status = %s (%v), want unlinked", got.Status, err)
		}
	})
}

func TestLinkPageGoesToOneBrowser(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d := newDevice(t, db, ws, postern.Unlinked)
		page := OpenLinkPage{WorkspaceID: ws, DeviceID: d.ID, TokenHash: [32]byte{1}, ExpiresAt: testNow.Add(time.Hour)}
		if err := db.LinkPages.Open(t.Context(), page); postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("a page without an attempt = %v, want no-open-link", err)
		}
		open := openLinkOf(d, 5)
		if err := db.Links.Open(t.Context(), open); err != nil {
			t.Fatal(err)
		}
		elsewhere := page
		elsewhere.WorkspaceID = newWorkspace(t, db)
		if err := db.LinkPages.Open(t.Context(), elsewhere); postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("a page of another workspace's attempt = %v, want no-open-link", err)
		}
		second := page
		second.TokenHash = [32]byte{2}
		for _, p := range []OpenLinkPage{page, second} {
			if err := db.LinkPages.Open(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.LinkPages.Get(t.Context(), page.TokenHash); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the page that was replaced = %v, want not-found", err)
		}
		bind := func(browser byte, now postern.Time, want bool) {
			t.Helper()
			if ok, err := db.LinkPages.Bind(t.Context(), second.TokenHash, [32]byte{browser}, now); ok != want ||
				err != nil {
				t.Errorf("browser %d gets the page: %v, %v, want %v", browser, ok, err, want)
			}
		}
		bind(7, second.ExpiresAt, false)
		bind(8, testNow, true)
		bind(9, testNow, false)
		got, err := db.LinkPages.Get(t.Context(), second.TokenHash)
		if err != nil || got.Link.ID != open.Link.ID || got.Link.ExpiresAt != page.ExpiresAt ||
			got.BrowserHash[0] != 8 ||
			got.Workspace != "acme" {
			t.Errorf("the page = %+v, %v", got, err)
		}
	})
}

// A request to unlink that was made before the device was linked again does not affect the
// new attempt.
func TestLateUnlinkLeavesTheNextAttempt(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e, err := d.Event(postern.DeviceUnlinked)
		if err != nil {
			t.Fatal(err)
		}
		unlink := SetDeviceState{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Unlinked,
			Desired: postern.WantUnlink, FailQueued: true, From: []postern.Status{postern.Connected}, At: testNow,
			Event: &e,
		}
		for i, err := range []error{
			db.Devices.RequestUnlink(t.Context(), unlink),
			db.Links.Open(t.Context(), openLinkOf(d, 5)),
		} {
			if err != nil {
				t.Fatal(i, err)
			}
		}
		if err := db.Devices.RequestUnlink(t.Context(), unlink); postern.ReasonOf(err) != postern.NotLinked {
			t.Errorf("a late unlink = %v, want not-linked", err)
		}
		if l, ok, err := db.Links.Latest(t.Context(), d.WorkspaceID, d.ID); !ok || l.Status != postern.LinkPending {
			t.Errorf("the next attempt is %s (%v)", l.Status, err)
		}
	})
}

// A workspace ends no attempt of another one.
func TestDeletingADeviceIsConfinedToItsWorkspace(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		other := newWorkspace(t, db)
		d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
		if err := db.Links.Open(t.Context(), openLinkOf(d, 5)); err != nil {
			t.Fatal(err)
		}
		if err := db.Devices.RequestDelete(t.Context(), other, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		ended, err := db.Links.End(t.Context(), LinkEnd{WorkspaceID: other, DeviceID: d.ID, Status: postern.LinkFailed})
		if l, _, err := db.Links.Latest(t.Context(), d.WorkspaceID, d.ID); l.Status != postern.LinkPending ||
			err != nil {
			t.Errorf("another workspace made the attempt %s (%v)", l.Status, err)
		}
		if ended || err != nil {
			t.Errorf("another workspace ended the attempt: %v, %v", ended, err)
		}
		if err := db.Devices.RequestDelete(t.Context(), d.WorkspaceID, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		if l, _, err := db.Links.Latest(t.Context(), d.WorkspaceID, d.ID); l.Status != postern.LinkFailed ||
			err != nil {
			t.Errorf("the deletion left the attempt %s (%v)", l.Status, err)
		}
	})
}

// A caller authorized before the plan shrank gets no more slots than the plan has now.
func TestSlotsAreThoseOfThePlanNow(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d := newDevice(t, db, ws, postern.Paused)
		none := 0
		if _, err := db.Workspaces.ChangeLimits(t.Context(), ws, postern.Limits{Devices: &none}, testNow); err != nil {
			t.Fatal(err)
		}
		hasSlots(t, db, d, false)
		if err := db.Links.Open(t.Context(), openLinkOf(newDevice(t, db, ws, postern.Unlinked),
			5)); postern.ReasonOf(err) != postern.DeviceLimit {
			t.Errorf("a link attempt = %v, want device-limit", err)
		}
	})
}
