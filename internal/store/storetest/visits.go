package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"
)

// Reads records the queries of a store; Trace is for its Options.
type Reads struct {
	mu   sync.Mutex
	list []read
}

type read struct {
	query string
	args  []any
}

// Trace records a statement that reads.
func (r *Reads) Trace(query string, args []any) {
	if !strings.HasPrefix(query, "SELECT") && !strings.HasPrefix(query, "WITH") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, read{query, slices.Clone(args)})
}

// Forget drops what was recorded.
func (r *Reads) Forget() { r.take() }

func (r *Reads) take() (list []read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.list = r.list, nil
	return list
}

// Table is the database of a store, to look at past it: a PostgreSQL database at a URL, or
// the SQLite database in a directory when the URL is empty.
type Table struct {
	tb     testing.TB
	db     *sql.DB
	remote bool
}

// OpenTable opens a database whose store may be open.
func OpenTable(tb testing.TB, dir, url string) Table {
	tb.Helper()
	driver, source := "pgx", url
	if url == "" {
		driver, source = "sqlite", "file:"+filepath.Join(dir, "postern.db")+"?_pragma=busy_timeout(60000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1) // whose pages are counted
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return Table{tb, db, url != ""}
}

// Multiply adds n copies of the last row of a table. changed are columns with what they are
// in the copy with the number i. Without an entry there, the database makes the key. The
// statistics of the table are then new.
func (t Table) Multiply(table, key string, changed map[string]string, n int) {
	t.tb.Helper()
	columns, values := t.columns(table), []string(nil)
	columns = slices.DeleteFunc(columns, func(c string) bool { return c == key && changed[c] == "" })
	for _, c := range columns {
		value := changed[c]
		if value == "" {
			value = "one." + c
		}
		values = append(values, value)
	}
	t.Exec(fmt.Sprintf(`WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d)
		INSERT INTO %s (%s) SELECT %s FROM (SELECT * FROM %[2]s ORDER BY %[5]s DESC LIMIT 1) one, s ORDER BY i`,
		n, table, strings.Join(columns, ", "), strings.Join(values, ", "), key))
	if t.remote {
		t.Exec(`ANALYZE ` + table)
	}
}

// Exec changes the database past the store.
func (t Table) Exec(query string, args ...any) {
	t.tb.Helper()
	if _, err := t.db.ExecContext(t.tb.Context(), query, args...); err != nil {
		t.tb.Fatalf("%v in %s", err, query)
	}
}

func (t Table) columns(table string) []string {
	t.tb.Helper()
	query := `SELECT * FROM ` + table + ` LIMIT 0` //nolint:gosec // a table that a test names
	rows, err := t.db.QueryContext(t.tb.Context(), query)
	if err != nil {
		t.tb.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || rows.Err() != nil {
		t.tb.Fatal(err, rows.Err())
	}
	return columns
}

// Most is how much one visit of a list may cost: rows with PostgreSQL, pages with SQLite.
type Most struct{ Rows, Pages int }

// visitSlack is for what a visit reads beside its list: the caller's key, the names of devices, a
// page of results once more.
const visitSlack = 1000

// MostOf is for a list that looks at n entries, and visits each of them in a number of places: in an
// index or in a table. A list that reads all entries of a larger table costs more, except that a walk
// through a whole table of SQLite visits few pages, because many rows share one: that shows in the
// rows of PostgreSQL.
func MostOf(n, places int) Most { return Most{places*n + visitSlack, places*n + visitSlack} }

// MostMessages is for a list of messages: one query finds the end of the page in an index. Another
// one walks through the same part of the index again, and reads each message and its device.
func MostMessages() Most { return MostOf(2000, 4) }

// MostEvents is for a part of the event log: one query finds its end in an index, and another one
// reads each event.
func MostEvents() Most { return MostOf(10_000, 2) }

// MostDeliveries is for a part of the log of an endpoint, which is read like the event log.
func MostDeliveries() Most { return MostOf(10_000, 2) }

// Check runs the recorded queries again, and fails when they visit more than most: rows of
// tables and indexes with PostgreSQL, pages of the file with SQLite.
func (t Table) Check(what string, reads *Reads, most Most) {
	t.tb.Helper()
	visited := 0
	var queries []string
	for _, r := range reads.take() {
		n := t.visits(r)
		visited += n
		queries = append(queries, fmt.Sprintf("%d by %s", n, r.query))
	}
	t.judge(what, visited, most, queries...)
}

// CheckEach is Check for each query by itself.
func (t Table) CheckEach(what string, reads *Reads, most Most) {
	t.tb.Helper()
	for _, r := range reads.take() {
		t.judge(what, t.visits(r), most, r.query)
	}
}

func (t Table) judge(what string, visited int, most Most, queries ...string) {
	t.tb.Helper()
	limit, unit := most.Rows, "rows"
	if !t.remote {
		limit, unit = most.Pages, "pages"
	}
	if visited > limit {
		t.tb.Errorf("%s visits %d %s, want at most %d:\n%s", what, visited, unit, limit, strings.Join(queries, "\n"))
	}
}

func (t Table) visits(r read) int {
	t.tb.Helper()
	count := t.pages
	if t.remote {
		count = t.rows
	}
	n, err := count(t.tb.Context(), r)
	if err != nil {
		t.tb.Fatalf("%v in %s", err, r.query)
	}
	return n
}

// pages counts the pages that SQLite visits, in its cache or in the file.
func (t Table) pages(ctx context.Context, r read) (n int, err error) {
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := visited(conn); err != nil {
		return 0, err
	}
	rows, err := conn.QueryContext(ctx, r.query, r.args...)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	return visited(conn)
}

// visited returns the pages that a connection has visited since the last call.
func visited(conn *sql.Conn) (pages int, err error) {
	err = conn.Raw(func(dc any) error {
		for _, kind := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
			n, _, err := dc.(sqlite.DBStatus).Status(kind, true) //nolint:errcheck,forcetypeassert // the driver's
			if err != nil {
				return err
			}
			pages += n
		}
		return nil
	})
	return pages, err
}

// node is a step of a plan of PostgreSQL.
type node struct {
	Kind      string  `json:"Node Type"`
	Rows      float64 `json:"Actual Rows"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Loops     float64 `json:"Actual Loops"`
	Plans     []node  `json:"Plans"`
}

// visited counts the rows of tables and indexes that a step and those below it read. A scan of an
// index that reads rows of the table as well counts once, in both of its forms.
func (n node) visited() (rows float64) {
	for _, p := range n.Plans {
		rows += p.visited()
	}
	own := (n.Rows + n.Filtered + n.Rechecked) * n.Loops
	switch n.Kind {
	case "Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan":
		rows += own
	case "Bitmap Heap Scan": // of the rows that the scan of the index below it found
		rows = max(rows, own)
	}
	return rows
}

func (t Table) rows(ctx context.Context, r read) (int, error) {
	var text string
	row := t.db.QueryRowContext(ctx, `EXPLAIN (ANALYZE, FORMAT JSON) `+r.query, r.args...)
	if err := row.Scan(&text); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan node `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		return 0, err
	}
	return int(plans[0].Plan.visited()), nil
}
