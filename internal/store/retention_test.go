package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// logMany records n events of a device with a time, in one operation. A small number is
// recorded with deliveries; a large one by a single statement.
func logMany(t *testing.T, db *Store, d postern.Device, n int, kind postern.EventType, at postern.Time) {
	t.Helper()
	err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
		if n > 2*purgeChunk {
			return tx.Exec(`INSERT INTO event (id, workspace_id, device_id, type, sequence, body, created_at)
				WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c
				WHERE i < $6) SELECT $5 || i, $1, $2, $3, i, $7, $4 FROM c`,
				d.WorkspaceID, d.ID, kind, at, string(postern.NewEventID()), n, []byte("x"))
		}
		for range n {
			e := postern.Event{
				ID: postern.NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Type: kind,
				Subject: "message", Object: []byte(`{"body":"x"}`),
			}
			if err := recordEvent(tx, e, at); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// clearLog removes all events made before a time and returns the number of chunks.
func clearLog(t *testing.T, db *Store, ws postern.WorkspaceID, before postern.Time) (chunks int) {
	t.Helper()
	for from, more := int64(0), true; more; chunks++ {
		var err error
		if from, more, err = db.Events.Remove(t.Context(), ws, before, from); err != nil {
			t.Fatal(err)
		}
	}
	return chunks
}

func TestRetentionRemovesWhatIsOldInChunks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d, other := newDevice(t, db, newWorkspace(t, db), postern.Connected),
			newDevice(t, db, newWorkspace(t, db), postern.Connected)
		logMany(t, db, d, 2*purgeChunk+10, postern.MessageReceived, testNow)
		logMany(t, db, other, 3, postern.MessageReceived, testNow)
		logMany(t, db, d, 5, postern.MessageSent, testNow.Add(time.Second))
		if chunks := clearLog(t, db, d.WorkspaceID, testNow.Add(time.Second)); chunks != 3 {
			t.Errorf("removed in %d chunks, want 3", chunks)
		}
		if n := count(t, db, `SELECT count(*) FROM event WHERE workspace_id = $1`, d.WorkspaceID); n != 5 {
			t.Errorf("%d events are left, want 5", n)
		}
		if n := count(t, db, `SELECT count(*) FROM event WHERE workspace_id = $1`, other.WorkspaceID); n != 3 {
			t.Errorf("%d events of another workspace are left, want 3", n)
		}
		floor, at, err := db.Events.Floor(t.Context(), d.WorkspaceID)
		first := int64(count(t, db, `SELECT min(position) FROM event WHERE workspace_id = $1`, d.WorkspaceID))
		if err != nil || floor >= first || floor != int64(2*purgeChunk+10) || at != testNow {
			t.Errorf("the floor is %d of %d (%v), the first event is at %d", floor, at, err, first)
		}
		if end, err := db.Events.End(t.Context(), d.WorkspaceID); err != nil || end != first+4 {
			t.Errorf("the end is %d (%v), want %d", end, err, first+4)
		}
		clearLog(t, db, d.WorkspaceID, testNow.Add(time.Hour))
		if end, err := db.Events.End(t.Context(), d.WorkspaceID); err != nil || end != first+4 {
			t.Errorf("the end of an emptied log is %d (%v), want %d: what comes next is behind it", end, err, first+4)
		}
		logMany(t, db, d, 1, postern.MessageSent, testNow)
		if p, err := db.Events.List(t.Context(), d.WorkspaceID, EventFilter{}, first+4, 10); err != nil ||
			len(p.Entries) != 1 || p.Entries[0].Position <= first+4 {
			t.Errorf("after all was removed: %+v (%v)", p, err)
		}
	})
}

func TestNewestEventIsThatOfTheDevicesNamed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		a, b, silent := newDevice(t, db, ws, postern.Connected), newDevice(t, db, ws, postern.Connected),
			newDevice(t, db, ws, postern.Connected)
		other := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		for _, d := range []postern.Device{a, b, a, b, other} {
			logMany(t, db, d, 1, postern.MessageSent, testNow)
		}
		p, err := db.Events.List(t.Context(), ws, EventFilter{}, 0, 10)
		if err != nil || len(p.Entries) != 4 {
			t.Fatalf("%+v (%v)", p, err)
		}
		log, end := p.Entries, p.Last
		for name, tt := range map[string]struct {
			devices []postern.DeviceID
			upTo    int64
			want    postern.EventID
		}{
			"all":              {nil, end, log[3].ID},
			"up to a place":    {nil, log[1].Position, log[1].ID},
			"before all":       {nil, log[0].Position - 1, ""},
			"a device":         {[]postern.DeviceID{a.ID}, end, log[2].ID},
			"some":             {[]postern.DeviceID{a.ID, silent.ID, b.ID}, end, log[3].ID},
			"some up to there": {[]postern.DeviceID{a.ID, b.ID}, log[2].Position, log[2].ID},
			"a silent one":     {[]postern.DeviceID{silent.ID}, end, ""},
			"of another":       {[]postern.DeviceID{other.ID}, end + 10, ""},
			"none":             {[]postern.DeviceID{}, end, ""},
		} {
			if got, err := db.Events.Newest(t.Context(), ws, tt.devices, tt.upTo); err != nil || got != tt.want {
				t.Errorf("%s: %q (%v), want %q", name, got, err, tt.want)
			}
		}
	})
}

func TestEventWhoseDeliveryIsPendingStays(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		var ids []postern.EndpointID
		for range 2 {
			ep := newEndpoint(t, db, d.WorkspaceID, "*")
			if err := db.Endpoints.Activate(t.Context(), ep.ID, testNow); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, ep.ID)
		}
		logMany(t, db, d, purgeChunk+2, postern.MessageReceived, testNow)
		due, err := db.Deliveries.Due(t.Context(), ids[0], testNow, true, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		other, err := db.Deliveries.Due(t.Context(), ids[1], testNow, true, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		var attempts []Attempt
		for i, del := range append(due, other...) {
			if i == 1 { // waits for its retry
				continue
			}
			attempts = append(attempts, Attempt{
				DeliveryID: del.ID, Row: del.Row, EndpointID: del.EndpointID, Number: 1, At: testNow,
				Ended:      testNow,
				HTTPStatus: 200, Status: postern.DeliverySucceeded,
			})
		}
		writeAll(t, db, attempts...)
		clearLog(t, db, d.WorkspaceID, testNow.Add(time.Hour))
		if n := count(t, db, `SELECT count(*) FROM event
			WHERE id = $1`, due[1].EventID); n != 1 || count(t, db, `SELECT count(*) FROM event`) != 1 {
			t.Errorf("%d events are left and %d of them wait for a delivery, want 1 and 1", count(t, db, `SELECT count(*)
				FROM event`), n)
		}
		if n, m := count(t, db, `SELECT count(*) FROM delivery`), count(t, db, `SELECT count(*)
			FROM attempt_log`); n != 2 || m != 1 {
			t.Errorf("%d deliveries and %d attempts are left, want those of the event that is left: 2 and 1", n, m)
		}
		if again, err := db.Deliveries.Due(t.Context(), ids[0], testNow, true, 10); err != nil || len(again) != 1 ||
			len(again[0].Body) == 0 {
			t.Errorf("the delivery is %+v (%v), want it with its bytes", again, err)
		}
		if err := db.Deliveries.FinishAttempt(t.Context(),
			Attempt{
				DeliveryID: due[1].ID, Row: due[1].Row, EndpointID: ids[0], Number: 1, At: testNow, Ended: testNow,
				HTTPStatus: 200, Status: postern.DeliverySucceeded,
			}); err != nil {
			t.Fatal(err)
		}
		clearLog(t, db, d.WorkspaceID, testNow.Add(time.Hour))
		if n := count(t, db, `SELECT count(*) FROM event`) + count(t, db, `SELECT count(*) FROM delivery`); n != 0 {
			t.Errorf("%d rows are left after the delivery", n)
		}
	})
}

func TestRetentionOfMessagesSparesWhatIsToBeSentOrWasJustSent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receiveN(t, db, d, purgeChunk+3)
		waiting, sent := queue(t, db, d), queue(t, db, d)
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: sent.ID, Status: postern.Sent, At: testNow.Add(time.Minute), SentAt: testNow.Add(time.Minute),
		}); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 2)
		for from, more := int64(0), true; more; {
			var err error
			if from, more, err = db.Messages.Remove(t.Context(), d.WorkspaceID, testNow.Add(time.Second),
				from); err != nil {
				t.Fatal(err)
			}
		}
		list := messagesOf(t, db, d.WorkspaceID, MessageSearch{})
		if len(list) != 2 || list[0].ID != sent.ID || list[1].ID != waiting.ID {
			t.Errorf("left are %+v, want the one that waits, and the one that was sent only lately", list)
		}
	})
}

// TestOthersWriteBetweenChunks checks that removal consists of many small operations
// instead of one that blocks the writer.
func TestOthersWriteBetweenChunks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		logMany(t, db, d, 6*purgeChunk, postern.MessageReceived, testNow)
		removed := make(chan struct{})
		go func() {
			defer close(removed)
			clearLog(t, db, d.WorkspaceID, testNow.Add(time.Second))
		}()
		for n := 0; ; n++ {
			if err := db.Settings.Set(t.Context(), fmt.Sprint(n), ""); err != nil {
				t.Fatal(err)
			}
			select {
			case <-removed:
				if n < 3 {
					t.Errorf("%d writes went through beside it", n)
				}
				return
			default:
			}
		}
	})
}

func TestFilteredLogIsReadInBoundedSteps(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		logMany(t, db, d, logScan+500, postern.MessageReceived, testNow)
		logMany(t, db, d, 3, postern.MessageSent, testNow)
		f := EventFilter{Types: []postern.EventType{postern.MessageSent}}
		first, err := db.Events.List(t.Context(), d.WorkspaceID, f, 0, 10)
		if err != nil || len(first.Entries) != 0 || !first.More || first.Last != logScan {
			t.Fatalf("the first page is %d entries up to %d, more %v (%v)", len(first.Entries), first.Last, first.More,
				err)
		}
		second, err := db.Events.List(t.Context(), d.WorkspaceID, f, first.Last, 10)
		if err != nil || len(second.Entries) != 3 || second.More || second.Last != logScan+503 {
			t.Errorf("the second page is %d entries up to %d, more %v (%v)", len(second.Entries), second.Last,
				second.More, err)
		}
	})
}

func TestPageOfTheLogIsBoundedInBytes(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		const n, size = 10, logBytes / 4
		err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			for range n {
				e := postern.Event{
					ID: postern.NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID,
					Type: postern.MessageReceived, Subject: "message",
					Object: []byte(`"` + strings.Repeat("x",
						size) + `"`),
				}
				if err := recordEvent(tx, e, testNow); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		after, seen := int64(0), 0
		for pages := 1; ; pages++ {
			p, err := db.Events.List(t.Context(), d.WorkspaceID, EventFilter{}, after, 200)
			if err != nil || len(p.Entries) > 4 || pages > 4 {
				t.Fatalf("page %d has %d events (%v)", pages, len(p.Entries), err)
			}
			seen, after = seen+len(p.Entries), p.Last
			if !p.More {
				break
			}
		}
		if seen != n {
			t.Errorf("the pages have %d events, want %d", seen, n)
		}
	})
}

// An endpoint that is disabled for ever must not keep the log for ever.
func TestEndpointThatIsNotActiveHoldsNothingBack(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, dead := on.endpoint(t)
		alive := newEndpoint(t, db, d.WorkspaceID, "device.*")
		if err := db.Endpoints.Activate(t.Context(), alive.ID, testNow); err != nil {
			t.Fatal(err)
		}
		logMany(t, db, d, purgeChunk+5, postern.MessageReceived, testNow)
		logMany(t, db, d, 2, postern.DeviceLinked, testNow)
		finish(t, db, dead, func(int) postern.DeliveryStatus { return postern.DeliveryPending }) // each was attempted twice
		finish(t, db, dead, func(int) postern.DeliveryStatus { return postern.DeliveryPending })
		clearLog(t, db, d.WorkspaceID, testNow.Add(1e12))
		if n := count(t, db, `SELECT count(*) FROM event`); n != purgeChunk+7 {
			t.Fatalf("%d events are left while both endpoints are active, want all", n)
		}
		change(t, db, dead, func(e *postern.Endpoint) { e.Status = postern.EndpointDisabled })
		clearLog(t, db, d.WorkspaceID, testNow.Add(1e12))
		if n, m, a := count(t, db, `SELECT count(*) FROM event`), count(t, db, `SELECT count(*) FROM delivery`),
			count(t, db, `SELECT count(*) FROM attempt`); n != 2 || m != 4 || a != 2 {
			t.Errorf("%d events, %d deliveries and %d attempts are left, want the events that the active endpoint waits "+
				"for, with all about them: 2, 4 and 2", n, m, a)
		}
		if due, err := db.Deliveries.Due(t.Context(), alive.ID, testNow, true, 10); err != nil || len(due) != 2 {
			t.Errorf("the active endpoint has %d deliveries to come (%v), want 2", len(due), err)
		}
	})
}

func TestRetentionRemovesNoticesAndReplays(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, _, e := on.endpoint(t)
		foreign := newEndpoint(t, db, newWorkspace(t, db), "*")
		if err := db.Endpoints.Activate(t.Context(), foreign.ID, testNow); err != nil {
			t.Fatal(err)
		}
		test := func(e postern.Endpoint, at postern.Time) {
			d := postern.Delivery{
				ID: postern.NewDeliveryID(), EndpointID: e.ID, EventID: postern.NewEventID(),
				Type: postern.WebhookTest, CreatedAt: at,
			}
			if err := db.Deliveries.QueueNotice(t.Context(), e.WorkspaceID, d, e.TestNotice(d.EventID, at),
				nil); err != nil {
				t.Error(err)
			}
		}
		var old sync.WaitGroup
		for range purgeChunk + 5 { // at once, so that they share commits
			old.Go(func() { test(e, testNow) })
		}
		old.Wait()
		finish(t, db, e, succeed)
		test(e, testNow)          // waits
		test(e, testNow.Add(1e9)) // younger
		test(foreign, testNow)
		finish(t, db, foreign, succeed)
		ended := step(t, db, replayOf(t, db, e, nil))
		running := replayOf(t, db, e, nil)
		chunks := 0
		for more := true; more; chunks++ {
			var err error
			if more, err = db.Deliveries.RemoveNotices(t.Context(), e.WorkspaceID, ended.EndedAt+1); err != nil {
				t.Fatal(err)
			}
			if chunks == 0 {
				if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1`, e.ID); n != 7 {
					t.Errorf("%d notices after a chunk, want 7", n)
				}
			}
		}
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1`, e.ID); n != 2 || chunks != 2 {
			t.Errorf("%d notices are left after %d chunks, want 2 that wait, after 2", n, chunks)
		}
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1`, foreign.ID); n != 1 {
			t.Errorf("%d notices of another workspace are left, want 1", n)
		}
		if ids, err := db.Replays.Running(t.Context(), ""); err != nil || len(ids) != 1 || ids[0] != running.ID ||
			count(t, db, `SELECT count(*) FROM replay`) != 1 {
			t.Errorf("replays left: %v (%v), want the running one", ids, err)
		}
	})
}

// A delivery whose content was removed must not post an empty body under the event's id.
func TestDeletedDeviceLeavesNoDeliveryWithoutBytes(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 3)
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		if err := db.Devices.RequestDelete(t.Context(), d.WorkspaceID, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		var at PurgePlace
		for purged := PurgeMore; purged != PurgeDone; {
			var err error
			if purged, err = db.Devices.Purge(t.Context(), d.ID, &at); err != nil || purged == PurgeWaits {
				t.Fatal(purged, err)
			}
		}
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointActive })
		if due, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e12), true, 10); err != nil || len(due) != 0 {
			t.Errorf("due = %+v (%v), want none", due, err)
		}
	})
}

// A purge goes through the events of a device once, and remembers that one of them is still awaited.
func TestPurgeGoesThroughEventsOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		change(t, db, e, func(e *postern.Endpoint) { e.Events = []string{"message.received"} })
		receiveN(t, db, d, 1)
		for range purgeChunk + 1 {
			o := inboundOf(d, postern.NewNetworkID(), "lid:1", "text")
			o.Type = postern.MessageSent
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Devices.RequestDelete(t.Context(), d.WorkspaceID, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		purge := func(want ...Purged) {
			t.Helper()
			var at PurgePlace
			for i, want := range want {
				if got, err := db.Devices.Purge(t.Context(), d.ID, &at); err != nil || got != want {
					t.Fatalf("call %d: %d (%v), want %d", i, got, err, want)
				}
			}
		}
		purge(PurgeMore, PurgeMore, PurgeMore, PurgeMore, PurgeWaits) // two chunks of messages, a contact, two of events
		if n := count(t, db, `SELECT count(*) FROM event WHERE length(body) > 0`); n != 1 {
			t.Errorf("%d events have content, want the one that is awaited", n)
		}
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		purge(PurgeMore, PurgeDone)
	})
}

func TestOldActsAreRemovedInChunks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		err := db.db.Do(t.Context(), opFunc(func(tx *tx) (err error) {
			for i := range purgeChunk + 3 {
				err = errors.Join(err, Act{
					At: testNow.Add(time.Duration(i) * time.Second), WorkspaceID: ws,
					Act: "key.created",
				}.Record(tx))
			}
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []bool{true, false} {
			if more, err := db.Audit.Remove(t.Context(), testNow.Add((purgeChunk+1)*time.Second)); err != nil ||
				more != want {
				t.Errorf("there is more: %v (%v), want %v", more, err, want)
			}
		}
		list, err := db.Audit.List(t.Context(), ws, ActFilter{Limit: 10})
		if err != nil || len(list) != 2 || list[1].At != testNow.Add((purgeChunk+1)*time.Second) {
			t.Errorf("left are %+v (%v), want the last two", list, err)
		}
	})
}
