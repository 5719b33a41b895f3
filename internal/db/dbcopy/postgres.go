package dbcopy

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

type postgresSide struct{ conn *pgx.Conn }

func openPostgres(ctx context.Context, url string) (side, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil || !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, errors.New("the database URL cannot be read") // the cause may show the password
	}
	config.RuntimeParams["application_name"] = "postern migrate"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &postgresSide{conn}, nil
}

func (s *postgresSide) close() error { return s.conn.Close(context.Background()) }

// snapshot begins a transaction, and reads something: PostgreSQL takes the snapshot with the first read.
func (s *postgresSide) snapshot(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM pg_class")
	return err
}

func (s *postgresSide) begin(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "BEGIN; SET LOCAL synchronous_commit = on")
	return err
}

func (s *postgresSide) commit(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "COMMIT")
	return err
}

func (s *postgresSide) pairs(ctx context.Context, query string) (map[string][]string, error) {
	rows, err := s.conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	list := map[string][]string{}
	var a, b string
	_, err = pgx.ForEachRow(rows, []any{&a, &b}, func() error {
		list[a] = append(list[a], b)
		return nil
	})
	return list, err
}

func (s *postgresSide) tables(ctx context.Context) (map[string][]string, error) {
	return s.pairs(ctx, `SELECT c.table_name, c.column_name FROM information_schema.columns c
		JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position`)
}

func (s *postgresSide) references(ctx context.Context) (map[string][]string, error) {
	return s.pairs(ctx, `SELECT a.relname, b.relname FROM pg_constraint f
		JOIN pg_class a ON a.oid = f.conrelid JOIN pg_class b ON b.oid = f.confrelid
		WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace`)
}

// sequences returns the sequence of each table that has one.
func (s *postgresSide) sequences(ctx context.Context) (map[string][]string, error) {
	return s.pairs(ctx, `SELECT table_name, pg_get_serial_sequence(quote_ident(table_name), column_name)
		FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'`)
}

func (s *postgresSide) counters(ctx context.Context) (map[string]int64, error) {
	sequences, err := s.sequences(ctx)
	if err != nil {
		return nil, err
	}
	last := map[string]int64{}
	for table, sequence := range sequences {
		var n int64
		err := s.conn.QueryRow(ctx, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+sequence[0]).Scan(&n)
		if err != nil {
			return nil, err
		}
		last[table] = n
	}
	return last, nil
}

func (s *postgresSide) setCounter(ctx context.Context, table string, last int64) error {
	sequences, err := s.sequences(ctx)
	if err != nil || len(sequences[table]) == 0 || last == 0 {
		return err
	}
	_, err = s.conn.Exec(ctx, `SELECT setval($1::text::regclass, $2)`, sequences[table][0], last)
	return err
}

func (s *postgresSide) each(ctx context.Context, table string, columns []string, do func([]any) error) error {
	rows, err := s.conn.Query(ctx, "SELECT "+list(columns)+" FROM "+quote(table))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return err
		}
		for i, v := range row {
			if n, ok := v.(int32); ok { // SQLite has a single type for integers
				row[i] = int64(n)
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *postgresSide) insert(
	ctx context.Context, table string, columns []string, next func() ([]any, error),
) error {
	name := pgx.Identifier{table}
	alter := func(triggers string) error { // what they would do is in the copied rows already
		_, err := s.conn.Exec(ctx, "ALTER TABLE "+name.Sanitize()+" "+triggers+" TRIGGER USER")
		return err
	}
	if err := alter("DISABLE"); err != nil {
		return err
	}
	if _, err := s.conn.CopyFrom(ctx, name, columns, pgx.CopyFromFunc(next)); err != nil {
		return err
	}
	return alter("ENABLE")
}
