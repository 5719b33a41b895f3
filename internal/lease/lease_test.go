package lease

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Binary{M: m}) }

// world is a database with devices that are to be connected, which servers share.
type world struct {
	t   *testing.T
	url string
	sql *sql.DB // past the store
	ids []postern.DeviceID
}

func newWorld(t *testing.T, devices int) *world {
	t.Helper()
	w := &world{t: t, url: migrated.URL(t)}
	var err error
	if w.sql, err = sql.Open("pgx", w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sql.Close() })
	s := w.open()
	now := postern.TimeOf(time.Now())
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "acme", Plan: "enterprise", CreatedAt: now}
	if err := s.Workspaces.Create(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	for range devices {
		d := postern.Device{
			ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "d", Mode: "sandbox", Status: postern.Connected,
			Metadata: map[string]string{}, CreatedAt: now,
		}
		if err := s.Devices.Create(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
		w.ids = append(w.ids, d.ID)
	}
	w.exec(`UPDATE device SET desired = 'connect'`)
	return w
}

func (w *world) open() *store.Store {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Options{Dir: w.t.TempDir(), URL: w.url, Nodes: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	return s
}

// join opens the database as another server with an id.
func (w *world) join(id string) *Holder {
	w.t.Helper()
	h := New(w.open(), slog.New(slog.DiscardHandler), id, id)
	if err := h.Join(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) renew(h *Holder) {
	w.t.Helper()
	if err := h.renew(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (h *Holder) has() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.devices)
}

// A server that has more than its share hands over what is too much, and no more while that is on
// its way.
func TestDevicesAreSharedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8)
	a := w.join("a")
	if w.renew(a); a.has() != 8 {
		t.Fatalf("a server that is alone has %d of 8 devices", a.has())
	}
	b := w.join("b")
	w.renew(b)
	for range 3 {
		w.renew(a)
	}
	lost := a.Lost.Take()
	if len(lost) != 4 || a.has() != 4 || b.has() != 0 {
		t.Fatalf("it hands over %d, has %d, and the other has %d", len(lost), a.has(), b.has())
	}
	for id, orderly := range lost {
		if err := a.Release(t.Context(), id); err != nil || !orderly {
			t.Errorf("release: %v, orderly: %v", err, orderly)
		}
	}
	w.renew(b)
	if b.has() != 4 || len(b.Gained.Take()) != 4 {
		t.Errorf("the other server has %d devices", b.has())
	}
}

// A device that is being linked stays with its server, so that the scan is not lost.
func TestDeviceThatIsBeingLinkedStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	a := w.join("a")
	w.renew(a)
	w.exec(`UPDATE device SET desired = 'link' WHERE id <> $1`, string(w.ids[3]))
	w.join("b")
	w.renew(a)
	lost := a.Lost.Take()
	if _, moves := lost[w.ids[3]]; len(lost) != 1 || !moves {
		t.Errorf("it hands over %v", lost)
	}
}

// What a server owns by the database counts, also after a commit whose outcome it does not know.
func TestServerLooksWhatItOwns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	a := w.join("a")
	w.renew(a)
	w.exec(`UPDATE device SET owner = 'b' WHERE id = $1`, string(w.ids[0])) // b's claim was committed
	w.exec(`INSERT INTO node (id, term, name, started_at, lease_until) VALUES ('b', 1, 'b', 9e15, 9e15)`)
	a.take(nil, context.DeadlineExceeded)
	w.renew(a)
	if _, lost := a.Lost.Take()[w.ids[0]]; !lost || a.Has(w.ids[0]) {
		t.Errorf("it still works for a device of another server")
	}
	a.Stopped(w.ids[0])
	w.exec(`UPDATE device SET owner = 'a'`) // a's own claim was committed
	a.Gained.Take()
	for range compareEvery { // without any doubt
		w.renew(a)
	}
	if _, gained := a.Gained.Take()[w.ids[0]]; !gained || !a.Has(w.ids[0]) {
		t.Errorf("it does not work for a device that it owns")
	}
}

// Work that only one server may do waits for the leader. A server that becomes the leader looks for it.
func TestServerThatBeginsToLeadLooksForWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a, b := w.join("a"), w.join("b")
	looks := 0
	b.rouse = func(...store.Topic) { looks++ }
	w.renew(a)
	if w.renew(b); b.Leads() || looks != 0 {
		t.Fatalf("leads: %v, and has looked %d times, beside a server that has been there longer", b.Leads(), looks)
	}
	w.exec(`DELETE FROM node WHERE id = 'a'`)
	w.renew(b)
	if w.renew(b); !b.Leads() || looks != 1 {
		t.Errorf("leads: %v, and has looked %d times, want once", b.Leads(), looks)
	}
	w.exec(`DELETE FROM node WHERE id = 'b'`)
	go func() {
		<-b.Ended.C()
		b.Stopped(w.ids[0])
		b.DeliveriesStopped()
	}()
	w.renew(b)
	if w.renew(b); !b.Leads() || looks != 2 {
		t.Errorf("after a new lease, leads: %v, and has looked %d times, want once more", b.Leads(), looks)
	}
}

// A server takes a new lease only when nothing is done any more under the old one.
func TestNewLeaseWaitsForTheEndOfTheOldOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.join("a")
	w.renew(a)
	before := a.self()
	w.exec(`DELETE FROM node`)
	renewed := make(chan error, 1)
	go func() { renewed <- a.renew(t.Context()) }()
	<-a.Lost.C()
	a.Stopped(w.ids[0])
	<-a.Ended.C()
	var nodes int
	if err := w.sql.QueryRowContext(t.Context(), `SELECT count(*) FROM node`).Scan(&nodes); err != nil || nodes != 0 {
		t.Errorf("%d servers while deliveries are still made: %v", nodes, err)
	}
	select {
	case <-renewed:
		t.Error("it does not wait for the deliveries")
	default:
	}
	a.DeliveriesStopped()
	if err := <-renewed; err != nil || !a.isHeld() {
		t.Errorf("held: %v, %v", a.isHeld(), err)
	}
	if first := before.Term; a.self().Term == first {
		t.Errorf("the new lease has the term %d of the one before it", first)
	}
	if c := a.Gained.Take()[w.ids[0]]; !c.Lost || c.Status != postern.Connected {
		t.Errorf("the device is taken back as %+v, want one whose connection was lost", c)
	}
}

// After an outage of the database the leases of all servers are over. The first one that is back
// leaves the others theirs.
func TestServerThatComesBackGivesUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	a, b := w.join("a"), w.join("b")
	w.renew(a)
	w.exec(`UPDATE node SET lease_until = 0`)
	w.renew(a)
	w.renew(b)
	if !b.isHeld() || a.has() != 1 || b.has() != 1 {
		t.Errorf("the second server has its lease: %v; they have %d and %d devices", b.isHeld(), a.has(), b.has())
	}
	w.exec(`UPDATE node SET lease_until = 0 WHERE id = 'b'`) // it stays away
	w.renew(a)
	var nodes int
	if err := w.sql.QueryRowContext(t.Context(), `SELECT count(*) FROM node`).Scan(&nodes); err != nil || nodes != 1 {
		t.Errorf("%d servers: %v", nodes, err)
	}
}

// A server that stops gives up its devices before its lease, each when nothing is done for it any
// more, and leads no more. The other servers take all of them.
func TestServerThatStopsReleasesItsDevices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	a := w.join("a")
	w.renew(a)
	b := w.join("b")
	left := make(chan error, 1)
	go func() { left <- a.Leave(t.Context()) }()
	for released := 0; released < 4; {
		<-a.Lost.C()
		for id, orderly := range a.Lost.Take() {
			if err := a.Release(t.Context(), id); err != nil || !orderly {
				t.Errorf("release: %v, orderly: %v", err, orderly)
			}
			released++
			if w.renew(b); b.has() != released {
				t.Errorf("the other server has %d devices of %d that were released", b.has(), released)
			}
		}
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	w.renew(a)
	if !b.Leads() || a.Leads() || a.has() != 0 {
		t.Errorf("the other server leads: %v; this one leads: %v, with %d devices", b.Leads(), a.Leads(), a.has())
	}
}

// A server that loses its lease while it stops takes none of its devices back.
func TestServerThatStopsTakesNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.join("a")
	w.renew(a)
	a.Gained.Take()
	left := make(chan error, 1)
	go func() { left <- a.Leave(t.Context()) }()
	<-a.Lost.C() // the device is handed over
	w.exec(`UPDATE node SET lease_until = 0, leaving = 0, term = term + 1`)
	if err := a.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	var leaving int
	if err := w.sql.QueryRowContext(t.Context(), `SELECT leaving FROM node`).Scan(&leaving); err != nil || leaving != 1 {
		t.Errorf("leaving is %d, %v", leaving, err)
	}
	if got := a.Gained.Take(); a.has() != 0 || len(got) != 0 {
		t.Errorf("it has %d devices, and gained %v", a.has(), got)
	}
	if err := a.Release(t.Context(), w.ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
}
