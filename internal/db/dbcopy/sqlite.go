package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

type sqliteSide struct {
	db   *sql.DB
	conn *sql.Conn
}

func openSQLite(ctx context.Context, file string) (side, error) {
	q := url.Values{"_pragma": {"busy_timeout(10000)", "synchronous(FULL)", "foreign_keys(1)"}, "mode": {"rw"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqliteSide{db, conn}, nil
}

func (s *sqliteSide) close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

// snapshot begins a transaction, and reads something: SQLite takes the snapshot with the first read.
func (s *sqliteSide) snapshot(ctx context.Context) error {
	if _, err := s.conn.ExecContext(ctx, "PRAGMA query_only = 1"); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	var n int
	return s.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&n)
}

func (s *sqliteSide) begin(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

func (s *sqliteSide) commit(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	return err
}

// pairs returns the second column of a query, by the first.
func (s *sqliteSide) pairs(ctx context.Context, query string) (map[string][]string, error) {
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := map[string][]string{}
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return nil, err
		}
		list[a] = append(list[a], b)
	}
	return list, rows.Err()
}

func (s *sqliteSide) tables(ctx context.Context) (map[string][]string, error) {
	return s.pairs(ctx, `SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY t.name, c.cid`)
}

func (s *sqliteSide) references(ctx context.Context) (map[string][]string, error) {
	return s.pairs(ctx, `SELECT t.name, f."table" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
		WHERE t.schema = 'main' AND t.type = 'table'`)
}

// counters returns those of all tables with an integer as their key. SQLite continues after the largest
// key, and with AUTOINCREMENT after the largest one that there ever was.
func (s *sqliteSide) counters(ctx context.Context) (map[string]int64, error) {
	keys, err := s.pairs(ctx, `SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
		WHERE t.schema = 'main' AND t.type = 'table' AND t.wr = 0 AND c.type = 'INTEGER' AND c.pk = 1
		AND (SELECT count(*) FROM pragma_table_info(t.name) o WHERE o.pk > 0) = 1`)
	if err != nil {
		return nil, err
	}
	last := map[string]int64{}
	for table, key := range keys {
		var n int64
		err := s.conn.QueryRowContext(ctx, fmt.Sprintf(`SELECT max(coalesce((SELECT max(%s) FROM %s), 0),
			coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))`, quote(key[0]), quote(table)), table).Scan(&n)
		if err != nil {
			return nil, err
		}
		last[table] = n
	}
	return last, nil
}

func (s *sqliteSide) setCounter(ctx context.Context, table string, last int64) error {
	var automatic bool
	err := s.conn.QueryRowContext(ctx, `SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE type = 'table' AND name = ?`,
		table).Scan(&automatic)
	if err != nil || !automatic {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, table); err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, table, last)
	return err
}

func (s *sqliteSide) each(ctx context.Context, table string, columns []string, do func([]any) error) error {
	rows, err := s.conn.QueryContext(ctx, "SELECT "+list(columns)+" FROM "+quote(table))
	if err != nil {
		return err
	}
	defer rows.Close()
	row, dst := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		dst[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(dst...); err != nil {
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok && b == nil { // for PostgreSQL's driver, nil is NULL
				row[i] = []byte{}
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *sqliteSide) insert(
	ctx context.Context, table string, columns []string, next func() ([]any, error),
) error {
	marks := strings.Join(slices.Repeat([]string{"?"}, len(columns)), ", ")
	insert, err := s.conn.PrepareContext(ctx, "INSERT INTO "+quote(table)+" ("+list(columns)+") VALUES ("+marks+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for {
		row, err := next()
		if row == nil || err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
}

func list(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	return strings.Join(quoted, ", ")
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
