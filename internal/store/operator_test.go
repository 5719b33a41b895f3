package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

func TestFiguresOfTheServerAreThoseOfItsRows(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ctx := t.Context()
		for range 2 {
			ws := newWorkspace(t, db)
			newDevice(t, db, ws, postern.Paused)
			d := newDevice(t, db, ws, postern.Connected)
			for range 3 {
				queue(t, db, d)
			}
			if err := db.Outbox.MarkSending(queue(t, db, d).ID, 0)(); err != nil {
				t.Fatal("it cannot be marked", err)
			}
			sent := queue(t, db, d)
			if err := db.Outbox.Finish(ctx,
				FinishOutbound{
					MessageID: sent.ID, Status: postern.Sent,
					At: testNow,
				}); err != nil {
				t.Fatal(err)
			}
			deliverable(t, db, d, postern.EndpointActive, 2)
			deliverable(t, db, d, postern.EndpointPaused, 1)
		}
		s, err := db.System.Get(ctx, testNow.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if s.Devices[postern.Paused] != 2 || s.Devices[postern.Connected] != 2 || s.Queued != 8 || s.Sending != 2 {
			t.Errorf("there are %v, %d to send, %d under way", s.Devices, s.Queued, s.Sending)
		}
		if s.Waiting != 6 || s.Due != 4 || s.OldestDue != testNow {
			t.Errorf("%d deliveries wait, %d are due, since %d", s.Waiting, s.Due, s.OldestDue)
		}
		if s.Size < 10_000 || !strings.Contains(s.Engine,
			map[bool]string{true: "PostgreSQL 1", false: "SQLite 3."}[on.postgres]) {
			t.Errorf("%s has %d bytes", s.Engine, s.Size)
		}
		if s, err := db.System.Get(ctx, testNow-1); err != nil || s.Due != 0 || s.OldestDue != 0 {
			t.Errorf("before their time %d are due since %d, %v", s.Due, s.OldestDue, err)
		}
		list, err := db.Hours.AllMessages(ctx, 0)
		if err != nil || len(list) != 1 || list[0].Accepted != 10 || list[0].Sent != 2 {
			t.Errorf("the hours are %+v, %v", list, err)
		}
	})
}

// deliverable adds an endpoint in a status to a device's workspace, with n deliveries that
// are due now.
func deliverable(t *testing.T, db *Store, d postern.Device, status postern.EndpointStatus, n int) {
	t.Helper()
	e := newEndpoint(t, db, d.WorkspaceID)
	for i := range n {
		err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
			id := postern.NewDeliveryID()
			return t.Exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status,
				attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at)
				VALUES ($1, $2, $3, 'e', $4, $5, 'message.sent', 'pending', 0, $6, $6, 0, 0, 0, '', 0)`, id, d.WorkspaceID, e.ID,
				1000+i, d.ID, testNow.Add(time.Duration(i)*time.Minute))
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
		return t.Exec(`UPDATE endpoint SET status = $2
		WHERE id = $1`, e.ID, status)
	})); err != nil {
		t.Fatal(err)
	}
}

func TestWorkspacesAreListedWithWhatTheyUse(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		var ids []postern.WorkspaceID
		for i, name := range []string{"Acme 100%", "ÄRZTE", "acme_two", `back\slash`} {
			ws := postern.Workspace{
				ID: postern.WorkspaceID(fmt.Sprintf("ws_%d", i)), Name: name, Plan: "growth",
				CreatedAt: testNow,
			}
			if err := db.Workspaces.Create(t.Context(), ws); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, ws.ID)
		}
		queue(t, db, newDevice(t, db, ids[1], postern.Connected))
		newDevice(t, db, ids[1], postern.Unlinked)
		if err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
			return errors.Join(
				t.Exec(`INSERT INTO users (id, email, password_hash, created_at)
					VALUES ('usr_1', 'ada@example.com', '', 1)`),
				t.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) VALUES ('usr_1', $1, 'owner', 1),
					('usr_1', $2, 'owner', 1)`, ids[1], ids[2]))
		})); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{
			"": "0 1 2 3", "ACME": "0 2", "%": "0", "_": "2", `\`: "3",
			"ÄRZTE": "1",
			"ws_2":  "2", "none": "",
		} {
			f, err := db.Workspaces.WithUsage(t.Context(), MonthOf(testNow), text, Page{Limit: 9})
			var got []string
			for _, u := range f.List {
				got = append(got, strings.TrimPrefix(string(u.ID), "ws_"))
			}
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("%q finds %v, %v, want %s", text, got, err, want)
			}
		}
		f, err := db.Workspaces.WithUsage(t.Context(), MonthOf(testNow), "", Page{After: "ws_0", Limit: 1})
		list := f.List
		if err != nil || !f.More || f.Last != "ws_1" || len(list) != 1 || list[0].ID != "ws_1" || list[0].Messages != 1 || list[0].Devices != 1 ||
			list[0].Members != 1 {
			t.Errorf("after the first come %+v, %v", list, err)
		}
		if one, err := db.Workspaces.GetWithUsage(t.Context(), "ws_1", MonthOf(testNow)); err != nil || one != list[0] {
			t.Errorf("by itself it is %+v, %v", one, err)
		}
		if _, err := db.Workspaces.GetWithUsage(t.Context(), "ws_9", ""); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("one that is not there is answered %v", err)
		}
	})
}

// A text is searched in a bounded part of the workspaces for each page.
func TestTextIsSearchedInABoundedPart(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		last := fmt.Sprintf("w%05d", textScan+9)
		err := db.db.Do(t.Context(), opFunc(func(t *tx) error {
			for i := range textScan + 10 {
				name := fmt.Sprintf("w%05d", i)
				ws := postern.Workspace{ID: postern.WorkspaceID(name), Name: name, Plan: "free", CreatedAt: testNow}
				if err := InsertWorkspace(t, ws); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		w, err := db.Workspaces.WithUsage(t.Context(), "", last, Page{Limit: 5})
		if err != nil || len(w.List) != 0 || !w.More {
			t.Fatalf("the first page has %d workspaces, more %t, %v", len(w.List), w.More, err)
		}
		w, err = db.Workspaces.WithUsage(t.Context(), "", last, Page{After: w.Last, Limit: 5})
		if err != nil || len(w.List) != 1 || w.More {
			t.Errorf("the second page has %d workspaces, more %t, %v", len(w.List), w.More, err)
		}
	})
}
