package apilog_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/apilog"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
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
			test(t, s)
		})
	}
}

// request is the nth of many requests. Every tenth is refused.
func request(n int) apilog.Request {
	r := apilog.Request{
		ID: fmt.Sprintf("req_%d", n), At: postern.TimeOf(time.Now()), Method: "POST", Path: "/v1/messages", Status: 202,
		Key: "key_1", Millis: int64(n),
	}
	if n%10 == 0 {
		r.Status, r.Reason, r.Key = 422, "INVALID_RECIPIENT", "key_2"
	}
	return r
}

// all reads the log of a workspace page by page.
func all(t *testing.T, s *store.Store, ws postern.WorkspaceID, f apilog.Filter, limit int) (ids []string) {
	t.Helper()
	for p := (apilog.Page{More: true}); p.More; {
		var err error
		p, err = apilog.Of(s).List(t.Context(), ws, f, p.Next, limit)
		check(t, err)
		if len(p.List) > limit {
			t.Fatalf("a page has %d requests", len(p.List))
		}
		for _, r := range p.List {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Each workspace has its own log, which is read page by page, newest first, and narrowed.
func TestRequestsAreListed(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const many = 450
		log := apilog.New(s)
		for n := range many {
			log.Add("ws_1", request(n))
			if n%70 == 0 { // most blocks are continued
				check(t, log.Write(t.Context()))
			}
		}
		log.Add("ws_2", request(1))
		check(t, log.Write(t.Context()))
		for _, limit := range []int{1, 7, 50, 200, 1000} {
			ids := all(t, s, "ws_1", apilog.Filter{}, limit)
			if len(ids) != many {
				t.Fatalf("%d requests in pages of %d, want %d", len(ids), limit, many)
			}
			for i, id := range ids {
				if want := fmt.Sprintf("req_%d", many-1-i); id != want {
					t.Fatalf("request %d in pages of %d is %s, want %s", i, limit, id, want)
				}
			}
		}
		for f, want := range map[apilog.Filter]int{
			{From: 400}: many / 10, {Below: 400}: many - many/10, {From: 500}: 0, {Key: "key_2"}: many / 10, {Key: "key_9"}: 0,
			{Text: "invalid_rec"}: many / 10, {Text: "req_44"}: 11, {Text: "post /V1/mess"}: many, {Text: "nothing"}: 0,
		} {
			if ids := all(t, s, "ws_1", f, 20); len(ids) != want {
				t.Errorf("%+v finds %d requests, want %d", f, len(ids), want)
			}
		}
		if ids := all(t, s, "ws_2", apilog.Filter{}, 20); len(ids) != 1 {
			t.Errorf("the other workspace has %v", ids)
		}
		var blocks int
		check(t, s.Engine().Row(t.Context(), `SELECT count(*) FROM request_log WHERE workspace_id = 'ws_1'`, nil, &blocks))
		if blocks != 3 {
			t.Errorf("%d requests are in %d blocks, want 3", many, blocks)
		}
	})
}

// A workspace has a bounded number of blocks, and what is older than a time is removed.
func TestRequestsAreForgotten(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		log := apilog.New(s)
		old := request(1)
		old.At = 1000
		log.Add("ws_2", old)
		check(t, log.Write(t.Context()))
		log.Add("ws_2", request(2)) // long after the old one, so in another block
		check(t, log.Write(t.Context()))
		more, err := apilog.Of(s).Remove(t.Context(), 2000)
		if check(t, err); more {
			t.Error("there is more to remove")
		}
		if ids := all(t, s, "ws_2", apilog.Filter{}, 10); len(ids) != 1 || ids[0] != "req_2" {
			t.Errorf("left are %v", ids)
		}
		for n := range apilog.MostBlocks + 3 { // no server continues the block of another
			server := apilog.New(s)
			server.Add("ws_1", request(n))
			check(t, server.Write(t.Context()))
		}
		if ids := all(t, s, "ws_1", apilog.Filter{}, 100); len(ids) != apilog.MostBlocks ||
			ids[0] != fmt.Sprintf("req_%d", apilog.MostBlocks+2) {
			t.Errorf("%d requests, the last %s", len(ids), ids[0])
		}
	})
}

// What waits to be written is bounded.
func TestRequestsThatCannotBeWrittenAreLeftOut(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		log := apilog.New(s)
		for n := range 3000 {
			log.Add("ws_1", request(n))
		}
		check(t, log.Write(t.Context()))
		if ids := all(t, s, "ws_1", apilog.Filter{}, 1000); len(ids) != 2000 {
			t.Errorf("%d requests were kept", len(ids))
		}
	})
}

// What could not be written waits, and is written once, in its order.
func TestRequestsWaitAfterAFailure(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		log := apilog.New(s)
		rename := func(from, to string) {
			check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
				return tx.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to)
			})))
		}
		log.Add("ws_1", request(0))
		check(t, log.Write(t.Context()))
		for n := range 300 {
			log.Add("ws_1", request(1+n))
		}
		rename("request_log", "away")
		if log.Write(t.Context()) == nil {
			t.Fatal("it was written")
		}
		rename("away", "request_log")
		log.Add("ws_1", request(301))
		check(t, log.Write(t.Context()))
		ids := all(t, s, "ws_1", apilog.Filter{}, 100)
		if len(ids) != 302 || ids[0] != "req_301" || ids[301] != "req_0" {
			t.Errorf("%d requests are listed", len(ids))
		}
	})
}

// Requests come while others are written.
func TestRequestsComeAllTheTime(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		log, done := apilog.New(s), make(chan bool)
		go func() {
			defer close(done)
			for n := range 1000 {
				log.Add("ws_1", request(n))
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			check(t, log.Write(t.Context()))
		}
		if ids := all(t, s, "ws_1", apilog.Filter{}, 100); len(ids) != 1000 {
			t.Errorf("%d requests are listed", len(ids))
		}
	})
}
