package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/internal/db/dbtest"

	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// tables of both engines: a table that refers to one that comes later in the alphabet, and one that
// numbers its rows.
var schemas = map[string]string{
	"sqlite": `CREATE TABLE owner (id TEXT PRIMARY KEY, data BLOB, n INTEGER) STRICT;
		CREATE TABLE child (owner TEXT NOT NULL REFERENCES owner(id), place INTEGER NOT NULL) STRICT;
		CREATE TABLE line (n INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL) STRICT;
		CREATE TABLE version (v INTEGER) STRICT`,
	"pgx": `CREATE TABLE owner (data BYTEA, n BIGINT, id TEXT PRIMARY KEY);
		CREATE TABLE child (owner TEXT NOT NULL REFERENCES owner(id), place INTEGER NOT NULL);
		CREATE TABLE line (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL);
		CREATE TABLE version (v BIGINT)`,
}

// opened is a place and its database.
type opened struct {
	Place

	t  *testing.T
	db *sql.DB
}

// both returns an empty database of each engine.
func both(t *testing.T) (sqlite, postgres opened) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a b?.db")
	create, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	create.Close()
	url := dbtest.URL(t)
	return openIn(t, Place{File: file}, "sqlite", "file:"+strings.ReplaceAll(file, "?", "%3f")), openIn(t, Place{URL: url}, "pgx", url)
}

func openIn(t *testing.T, p Place, driver, source string) opened {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o := opened{p, t, db}
	o.exec(schemas[driver])
	return o
}

func (o opened) exec(query string, args ...any) {
	o.t.Helper()
	if _, err := o.db.ExecContext(o.t.Context(), query, args...); err != nil {
		o.t.Fatal(err)
	}
}

func (o opened) number(query string) (n int64) {
	o.t.Helper()
	if err := o.db.QueryRowContext(o.t.Context(), query).Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

func isVersion(table string) bool { return table == "version" }

func TestRowsAreTheSameOnBothSides(t *testing.T) {
	t.Parallel()
	sqlite, postgres := both(t)
	other, _ := both(t)
	sqlite.exec(`INSERT INTO owner (id, data, n) VALUES ('a', x'00ff', 9223372036854775807), ('', NULL, NULL), ('ü', x'', -1)`)
	sqlite.exec(`INSERT INTO child VALUES ('a', 1), ('a', 1), ('ü', 2)`)
	sqlite.exec(`INSERT INTO line (body) VALUES ('one'), ('two'), ('three')`)
	sqlite.exec(`DELETE FROM line WHERE n = 3`)
	sqlite.exec(`INSERT INTO version VALUES (1)`)
	there, err := Copy(t.Context(), sqlite.Place, postgres.Place, isVersion)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Copy(t.Context(), postgres.Place, other.Place, isVersion)
	if err != nil || !slices.Equal(there, back) {
		t.Errorf("there %v, and back %v, %v", there, back, err)
	}
	for _, o := range []opened{postgres, other} {
		if n := o.number(`SELECT count(*) FROM version`); n != 0 {
			t.Errorf("%d rows of a skipped table", n)
		}
		o.exec(`INSERT INTO line (body) VALUES ('four')`)
		if n := o.number(`SELECT max(n) FROM line`); n != 4 {
			t.Errorf("the next row has the number %d, want 4: 3 was given out before", n)
		}
	}
}

// A copy that fails leaves the target as it was.
func TestFailedCopyLeavesNothing(t *testing.T) {
	t.Parallel()
	sqlite, postgres := both(t)
	sqlite.exec(`INSERT INTO owner (id) VALUES ('a')`)
	sqlite.exec(`INSERT INTO child VALUES ('a', 1)`)
	sqlite.exec(`INSERT INTO line (body) VALUES ('nul' || char(0))`) // PostgreSQL stores no such text
	if _, err := Copy(t.Context(), sqlite.Place, postgres.Place, isVersion); err == nil ||
		!strings.Contains(err.Error(), "copy the table line") {
		t.Errorf("the error is %v", err)
	}
	if n := postgres.number(`SELECT count(*) FROM owner`); n != 0 {
		t.Errorf("%d rows of a copy that failed", n)
	}
	postgres.exec(`ALTER TABLE owner ADD COLUMN more TEXT`)
	if _, err := Copy(t.Context(), sqlite.Place, postgres.Place, isVersion); err == nil ||
		!strings.Contains(err.Error(), "do not have the same tables") {
		t.Errorf("the error is %v", err)
	}
}

// altered is a database that stores other texts than it is given.
type altered struct{ side }

func (a altered) insert(ctx context.Context, table string, columns []string, next func() ([]any, error)) error {
	return a.side.insert(ctx, table, columns, func() ([]any, error) {
		row, err := next()
		for i, v := range row {
			if v == "one" {
				row = slices.Clone(row)
				row[i] = "One"
			}
		}
		return row, err
	})
}

// What was written is read back and compared.
func TestDifferenceIsNoticed(t *testing.T) {
	t.Parallel()
	sqlite, postgres := both(t)
	sqlite.exec(`INSERT INTO line (body) VALUES ('one'), ('two')`)
	source, err := open(t.Context(), sqlite.Place)
	if err != nil {
		t.Fatal(err)
	}
	defer source.close()
	target, err := open(t.Context(), postgres.Place)
	if err != nil {
		t.Fatal(err)
	}
	_, err = copying{source, altered{target}}.all(t.Context(), isVersion)
	if err == nil || !strings.Contains(err.Error(), "the target has 2 rows with the checksum") {
		t.Errorf("the error is %v", err)
	}
	target.close()
	if n := postgres.number(`SELECT count(*) FROM line`); n != 0 {
		t.Errorf("%d rows were kept", n)
	}
}

func TestSumTellsRowsApart(t *testing.T) {
	t.Parallel()
	rows := [][]any{
		{"a", "b"}, {"ab", ""}, {"", "ab"}, {nil, "ab"}, {[]byte("a"), "b"}, {int64(1), "b"}, {"1", "b"}, {int64(math.MinInt64), nil},
	}
	seen := map[string]bool{}
	var all, backwards sum
	for i, row := range rows {
		var s sum
		if err := errors.Join(s.add(row), all.add(row), backwards.add(rows[len(rows)-1-i])); err != nil {
			t.Fatal(err)
		}
		seen[s.text()] = true
	}
	if len(seen) != len(rows) {
		t.Errorf("%d sums of %d different rows", len(seen), len(rows))
	}
	if !all.is(&backwards) {
		t.Error("the sum depends on the order")
	}
	if err := all.add([]any{1.5}); err == nil {
		t.Error("a value that no table has is counted")
	}
}
