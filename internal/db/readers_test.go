package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"modernc.org/sqlite"
)

// endless finds one row after another, for ever; counted counts them, before the first row.
const (
	endless = `WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT x FROM n`
	counted = `WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n`
)

// counting is counted for SQLite, whose driver loses a cancellation that comes before the query's first step (fixed in
// its version 1.61): it tells counts when it has begun.
const counting = `WITH RECURSIVE n (x) AS (SELECT test_begun() UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n`

var counts = make(chan struct{}, 1)

func init() {
	sqlite.MustRegisterScalarFunction("test_begun", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		counts <- struct{}{}
		return int64(1), nil
	})
}

// until waits for a condition that another goroutine brings about.
func until(condition func() bool) {
	for !condition() {
		runtime.Gosched()
	}
}

func ignoreRow(r *sql.Rows) error {
	var x int64
	return r.Scan(&x)
}

// The statement itself ends, and not only the wait for it: the connection is free again.
func TestReadEndsWhenItsCallerLeaves(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		atRest := db.read.Stats().InUse // SQLite's checkpointer keeps one
		first := counted
		if !e.postgres {
			first = counting
		}
		for name, query := range map[string]string{"before the first row": first, "between rows": endless} {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- db.Rows(ReadFor(ctx, "ws"), query, nil, ignoreRow) }()
			until(func() bool { return db.read.Stats().InUse > atRest })
			if query == counting {
				<-counts
			}
			leave()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the read ended with %v", name, err)
			}
			until(func() bool { return db.read.Stats().InUse == atRest })
			if e.postgres {
				until(func() bool { return running(t, db) == 0 })
			}
		}
		if _, err := db.Exists(t.Context(), `SELECT count(*) FROM entry`); err != nil {
			t.Errorf("a read afterwards: %v", err)
		}
	})
}

// A new connection costs PostgreSQL a process, so the one of a canceled read stays.
func TestCanceledReadKeepsItsConnection(t *testing.T) {
	t.Parallel()
	db := engine{postgres: true}.open(t)
	db.read.SetMaxOpenConns(1)
	before := process(t, db)
	ctx, leave := context.WithCancel(t.Context())
	err := db.Rows(ReadFor(ctx, "ws"), `SELECT generate_series(1, 1000000000)`, nil, func(*sql.Rows) error {
		leave()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the read ended with %v", err)
	}
	if after := process(t, db); after != before {
		t.Errorf("reads go through process %d of the server, and %d before", after, before)
	}
}

// process is the process of PostgreSQL behind a connection for reading.
func process(t *testing.T, db *DB) (pid int) {
	t.Helper()
	if err := db.Row(t.Context(), `SELECT pg_backend_pid()`, nil, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// running counts the endless statements that PostgreSQL executes.
func running(t *testing.T, db *DB) (n int) {
	t.Helper()
	err := db.Row(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND state = 'active' AND query LIKE 'WITH RECURSIVE%'`, nil, &n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReadOfTheServerIgnoresTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	db := engine{}.open(t)
	ctx, end := context.WithCancel(t.Context())
	rows := 0
	err := db.Rows(ctx, `SELECT value FROM json_each('[1, 2, 3]')`, nil, func(*sql.Rows) error {
		end()
		rows++
		return nil
	})
	if err != nil || rows != 3 {
		t.Errorf("%d rows, %v; want 3", rows, err)
	}
}

// held are reads that stay where they are until they are released.
type held struct {
	began   chan string
	release chan struct{}
	ended   chan error
}

// start begins reads of a workspace.
func (h held) start(t *testing.T, db *DB, workspace string, n int) {
	t.Helper()
	for range n {
		go func() {
			h.ended <- db.Rows(ReadFor(t.Context(), workspace), `SELECT 1`, nil, func(*sql.Rows) error {
				h.began <- workspace
				<-h.release
				return nil
			})
		}()
	}
}

// However many lists a workspace reads, it holds half of the connections, and of the
// processors; another workspace's read begins while they are held.
func TestWorkspaceHoldsAtMostHalfOfTheReaders(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		atRest := db.read.Stats().InUse
		half, many := min(db.dialect.readers, runtime.GOMAXPROCS(0))/2, 20
		h := held{make(chan string, 100), make(chan struct{}), make(chan error, 100)}
		h.start(t, db, "flood", many)
		for range half {
			<-h.began
		}
		until(func() bool { return db.lists.waits("flood")+db.readers.waits("flood") == many-half })
		h.start(t, db, "neighbour", 1)
		if got := <-h.began; got != "neighbour" {
			t.Errorf("beside %d reads of a workspace one of %s begins", half, got)
		}
		if got := db.read.Stats().InUse - atRest; got != half+1 {
			t.Errorf("%d connections are in use, want %d", got, half+1)
		}
		close(h.release)
		for range many + 1 {
			if err := <-h.ended; err != nil {
				t.Error(err)
			}
		}
		for _, r := range []*readers{db.readers, db.lists} {
			if n := len(r.by); n != 0 || r.busy != 0 {
				t.Errorf("%d workspaces and %d reads are remembered after all have ended", n, r.busy)
			}
		}
	})
}

// A request that keeps its turn holds it between its reads and after them, until it gives
// the turn back; it waits for no second one.
func TestRequestKeepsItsTurn(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		db.lists.share = 1
		ctx, end := KeepTurn(ReadFor(t.Context(), "flood"))
		for range 2 {
			if err := db.Rows(ctx, `SELECT 1`, nil, ignoreRow); err != nil {
				t.Fatal(err)
			}
		}
		next := make(chan error, 1)
		go func() { next <- db.Rows(ReadFor(t.Context(), "flood"), `SELECT 1`, nil, ignoreRow) }()
		until(func() bool { return db.lists.waits("flood") == 1 })
		end()
		end()
		if err := <-next; err != nil {
			t.Error(err)
		}
		if db.lists.busy != 0 || len(db.lists.by) != 0 {
			t.Errorf("%d turns of %d workspaces are left", db.lists.busy, len(db.lists.by))
		}
	})
}

// waits counts the reads of a workspace that wait.
func (r *readers) waits(workspace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.by[workspace]; one != nil {
		return len(one.waiting)
	}
	return 0
}

// Workspaces with waiting reads take turns, however many reads each of them has waiting.
func TestWaitingReadersTakeTurns(t *testing.T) {
	t.Parallel()
	r := newReaders(2)
	a, _ := r.join("a")
	b, _ := r.join("b")
	var waiting []*place
	for _, name := range []string{"c", "c", "c", "d", "e"} {
		one, turn := r.join(name)
		waiting = append(waiting, &place{one, turn})
	}
	var order []string
	for reading := []*reader{a, b}; len(reading) > 0; {
		r.leave(reading[0])
		reading = reading[1:]
		for i, p := range waiting {
			if p.begins() {
				order, reading = append(order, p.workspace), append(reading, p.reader)
				waiting = slices.Delete(waiting, i, i+1)
				break
			}
		}
	}
	if got := fmt.Sprint(order); got != "[c d e c c]" {
		t.Errorf("the reads begin in the order %s", got)
	}
}

// place is the place of a read that waits.
type place struct {
	*reader
	turn chan struct{}
}

func (p *place) begins() bool {
	select {
	case <-p.turn:
		return true
	default:
		return false
	}
}

// A caller that leaves while its read waits, takes nobody's turn and holds no connection.
func TestWaitingReadThatIsGivenUpFreesItsPlace(t *testing.T) {
	t.Parallel()
	r := newReaders(2)
	end, err := r.begin(ReadFor(t.Context(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.begin(ReadFor(ctx, "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("a read whose caller has left: %v", err)
	}
	one, turn := r.join("a")
	r.giveUp(one, turn)
	one, turn = r.join("a")
	end() // the turn comes
	r.giveUp(one, turn)
	if r.busy != 0 || len(r.by) != 0 || len(r.turns) != 0 {
		t.Errorf("%d reads, %d workspaces and %d turns are left", r.busy, len(r.by), len(r.turns))
	}
}
