package requests_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/store/requests"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const (
	ws     = postern.WorkspaceID("ws_1")
	device = postern.DeviceID("dev_1")
)

// onBoth runs a test with each of the two databases, which have one device.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store, table requests.Table)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			box, err := seal.NewBox(bytes.Repeat([]byte{7}, 32))
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, requests.Of(s, box))
		})
	}
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	err = s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`),
			tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account,
				phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_1', 'ws_1', '', 'live', 'connected', '', 'connect', 'a', '', '', '{}', 1,
				0, 0, 0, 0, 0, 0)`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(s *store.Store, id string, wait time.Duration) requests.Request {
	return requests.Request{
		ID: id, WorkspaceID: ws, DeviceID: device, Kind: "ask", Input: json.RawMessage(`{"a":"secret"}`),
		ExpiresAt: s.Now().Add(wait),
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A request is taken once, by the session that is woken, and its outcome reaches the caller who waits. Neither can be
// read in the database.
func TestRequestIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table requests.Table) {
		woken := table.Watch()
		defer woken.Close()
		check(t, table.Put(t.Context(), request(s, "req_1", time.Hour), nil))
		<-woken.C()
		if ids := woken.Take(); len(ids) != 1 || ids[0] != string(device) {
			t.Errorf("woken for %v", ids)
		}
		outcome := make(chan requests.Outcome, 1)
		go func() {
			o, ok, err := table.Wait(t.Context(), ws, "req_1")
			if !ok || err != nil {
				t.Errorf("the wait ended with %v, %v", ok, err)
			}
			outcome <- o
		}()
		list, err := table.Take(t.Context(), device, 5)
		check(t, err)
		if len(list) != 1 || list[0].ID != "req_1" || string(list[0].Input) != `{"a":"secret"}` {
			t.Fatalf("taken: %+v", list)
		}
		if again, err := table.Take(t.Context(), device, 5); err != nil || len(again) > 0 {
			t.Errorf("taken twice: %+v %v", again, err)
		}
		check(t, table.Answer(t.Context(), list[0], requests.Outcome{Output: json.RawMessage(`"secret"`)}))
		if o := <-outcome; string(o.Output) != `"secret"` || o.Err() != nil {
			t.Errorf("outcome %+v", o)
		}
		var input, output []byte
		check(t, s.Engine().One(t.Context(), `SELECT input, outcome FROM session_request`).Scan(&input, &output))
		if bytes.Contains(input, []byte("secret")) || bytes.Contains(output, []byte("secret")) {
			t.Error("a request is stored in the clear")
		}
		if _, ok, err := table.Wait(t.Context(), "ws_2", "req_1"); ok || err != nil {
			t.Errorf("another workspace gets the outcome: %v", err)
		}
		table.Forget(ws, "req_1")
		check(t, s.Engine().Do(t.Context(), db.Func(func(*db.Tx) error { return nil }))) // comes after it
		if _, ok, err := table.Wait(t.Context(), ws, "req_1"); ok || err != nil {
			t.Errorf("a forgotten request is there: %v", err)
		}
	})
}

// Requests that wait for the network take none of the turns of their workspace's lists.
func TestWaitingRequestKeepsNoTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table requests.Table) {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		list := func(ctx context.Context) error {
			return s.Engine().Rows(ctx, `SELECT id FROM device`, nil, func(*sql.Rows) error { return nil })
		}
		for i := range max(runtime.GOMAXPROCS(0)/2, 1) { // as many as may read at a time
			id := fmt.Sprintf("req_%d", i)
			check(t, table.Put(t.Context(), request(s, id, time.Hour), nil))
			kept, end := store.KeepTurn(store.ReadFor(ctx, ws))
			check(t, list(kept))
			waiting.Go(func() {
				defer end()
				if _, _, err := table.Wait(kept, ws, id); !errors.Is(err, context.Canceled) {
					t.Errorf("the wait ends with %v", err)
				}
			})
		}
		soon, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		check(t, list(store.ReadFor(soon, ws)))
	})
}

// A request whose time is over is not carried out, and its caller does not wait any longer.
func TestRequestExpires(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table requests.Table) {
		check(t, table.Put(t.Context(), request(s, "req_1", -time.Millisecond), nil))
		if _, ok, err := table.Wait(t.Context(), ws, "req_1"); ok || err != nil {
			t.Errorf("the wait ended with %v, %v", ok, err)
		}
		if waiting, err := table.Waiting(t.Context(), device); err != nil || waiting {
			t.Errorf("waiting: %v %v", waiting, err)
		}
		if list, err := table.Take(t.Context(), device, 5); err != nil || len(list) > 0 {
			t.Errorf("taken: %+v %v", list, err)
		}
		check(t, table.Put(t.Context(), request(s, "req_2", time.Hour), nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := table.Wait(ctx, ws, "req_2"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who left waits: %v", err)
		}
	})
}

// The outcome of a request with an idempotency key stays for as long as the key; a refusal frees the key.
func TestRequestWithAKey(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table requests.Table) {
		now := s.Now()
		once := func() *store.Once {
			return &store.Once{WorkspaceID: ws, Method: "POST", Path: "/x", Key: "k", Answer: []byte("ticket"), At: now}
		}
		r := request(s, "req_1", time.Minute)
		check(t, table.Put(t.Context(), r, once()))
		if err := table.Put(t.Context(), request(s, "req_2", time.Minute), once()); !errors.Is(err, store.ErrAlreadyDone) {
			t.Errorf("the key is used twice: %v", err)
		}
		check(t, table.Answer(t.Context(), r, requests.Outcome{Output: json.RawMessage(`1`)}))
		table.Forget(ws, "req_1")
		check(t, s.Engine().Do(t.Context(), db.Func(func(*db.Tx) error { return nil })))
		if _, err := table.Remove(t.Context(), now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		if _, ok, err := table.Wait(t.Context(), ws, "req_1"); !ok || err != nil {
			t.Errorf("the outcome is gone: %v", err)
		}
		check(t, table.Answer(t.Context(), r, requests.Outcome{Reason: postern.NetworkTimeout, Detail: "unknown"}))
		if err := table.Put(t.Context(), request(s, "req_2", time.Minute), once()); !errors.Is(err, store.ErrAlreadyDone) {
			t.Errorf("an unknown outcome frees the key: %v", err)
		}
		check(t, table.Answer(t.Context(), r, requests.Outcome{Reason: postern.GroupNotAllowed, Detail: "no"}))
		if o, ok, _ := table.Wait(t.Context(), ws, "req_1"); !ok || postern.ReasonOf(o.Err()) != postern.GroupNotAllowed {
			t.Errorf("outcome %+v", o)
		}
		check(t, table.Put(t.Context(), request(s, "req_3", time.Minute), once()))
		if _, err := table.Remove(t.Context(), now.Add(25*time.Hour)); err != nil {
			t.Error(err)
		}
		if _, ok, _ := table.Wait(t.Context(), ws, "req_1"); ok {
			t.Error("the outcome outlives the key")
		}
	})
}

// A refusal finds its idempotency key without reading the others of the workspace, which may be many.
func TestFreedKeyIsFound(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	var plan []string
	check(t, s.Engine().Rows(t.Context(), `EXPLAIN QUERY PLAN `+requests.FreeKey, []any{ws, "req_1"}, func(r *sql.Rows) error {
		var id, parent, unused int
		var detail string
		err := r.Scan(&id, &parent, &unused, &detail)
		plan = append(plan, detail)
		return err
	}))
	want := "SEARCH idempotency USING PRIMARY KEY (workspace_id=? AND method=? AND path=? AND key=?)"
	if !slices.Contains(plan, want) {
		t.Errorf("the plan is %q, want %s", plan, want)
	}
}
