// Package dbcopy copies all rows of one database into an empty one, which may be of the other engine,
// and compares what it has written with what it read. Both have the same tables. The source is read as
// it is at one moment, so others may write to it meanwhile; nothing else may write to the target.
package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Place says where a database is: a file of SQLite, or the URL of a PostgreSQL database.
type Place struct{ File, URL string }

// Table is what was copied of a table.
type Table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Sum  string `json:"checksum"` // of the rows in whatever order, in hexadecimal
}

// side is one of the two databases.
type side interface {
	// tables returns the columns of each table, in any order.
	tables(ctx context.Context) (map[string][]string, error)
	// references returns, for each table, those that its foreign keys refer to.
	references(ctx context.Context) (map[string][]string, error)
	// counters returns the last number that was given out, of each table that numbers its rows.
	counters(ctx context.Context) (map[string]int64, error)
	setCounter(ctx context.Context, table string, last int64) error
	// each calls do for each row. The row is valid until do returns.
	each(ctx context.Context, table string, columns []string, do func(row []any) error) error
	// insert writes the rows that next returns, until it returns nil.
	insert(ctx context.Context, table string, columns []string, next func() ([]any, error)) error
	// snapshot makes all later reads see the database as it is now.
	snapshot(ctx context.Context) error
	begin(ctx context.Context) error
	commit(ctx context.Context) error
	close() error
}

func open(ctx context.Context, p Place) (side, error) {
	if p.URL != "" {
		return openPostgres(ctx, p.URL)
	}
	return openSQLite(ctx, p.File)
}

// Has reports whether a database has a table.
func Has(ctx context.Context, p Place, table string) (bool, error) {
	s, err := open(ctx, p)
	if err != nil {
		return false, err
	}
	tables, err := s.tables(ctx)
	_, has := tables[table]
	return has, errors.Join(err, s.close())
}

// Read calls do for each row of a table, with the columns in the order in which they are named.
func Read(ctx context.Context, p Place, table string, columns []string, do func(row []any) error) error {
	s, err := open(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(s.each(ctx, table, columns, do), s.close())
}

// Copy copies all tables but those to skip, in one transaction. It is an error if one of them has rows
// in the target, or if the two databases do not have the same tables and columns.
func Copy(ctx context.Context, from, to Place, skip func(table string) bool) (copied []Table, err error) {
	source, err := open(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	defer func() { err = errors.Join(err, source.close()) }()
	target, err := open(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("open the target: %w", err)
	}
	defer func() { err = errors.Join(err, target.close()) }()
	c := copying{source, target}
	return c.all(ctx, skip)
}

type copying struct{ source, target side }

func (c copying) all(ctx context.Context, skip func(table string) bool) (copied []Table, err error) {
	if err := c.source.snapshot(ctx); err != nil {
		return nil, err
	}
	tables, names, err := c.plan(ctx, skip)
	if err != nil {
		return nil, err
	}
	if err := c.target.begin(ctx); err != nil {
		return nil, err
	}
	for _, name := range names {
		t, err := c.table(ctx, name, tables[name])
		if err != nil {
			return nil, fmt.Errorf("copy the table %s: %w", name, err)
		}
		copied = append(copied, t)
	}
	if err := c.counters(ctx, tables); err != nil {
		return nil, err
	}
	slices.SortFunc(copied, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	return copied, c.target.commit(ctx)
}

// plan returns the columns of each table, and the tables in an order in which those come first that
// others refer to.
func (c copying) plan(ctx context.Context, skip func(string) bool) (map[string][]string, []string, error) {
	from, err := c.source.tables(ctx)
	if err != nil {
		return nil, nil, err
	}
	to, err := c.target.tables(ctx)
	if err != nil {
		return nil, nil, err
	}
	leave := func(table string, _ []string) bool { return skip(table) }
	maps.DeleteFunc(from, leave)
	maps.DeleteFunc(to, leave)
	for _, tables := range []map[string][]string{from, to} {
		for _, columns := range tables {
			slices.Sort(columns) // so that a checksum is the same on both sides
		}
	}
	if !maps.EqualFunc(from, to, slices.Equal) {
		return nil, nil, errors.New("the two databases do not have the same tables and columns")
	}
	references, err := c.target.references(ctx)
	return from, inOrder(slices.Sorted(maps.Keys(from)), references), err
}

// inOrder sorts tables so that each one comes after those that it refers to.
func inOrder(tables []string, references map[string][]string) (list []string) {
	done := map[string]bool{}
	var add func(string)
	add = func(table string) {
		if done[table] || !slices.Contains(tables, table) {
			return
		}
		done[table] = true
		for _, other := range references[table] {
			add(other)
		}
		list = append(list, table)
	}
	for _, table := range tables {
		add(table)
	}
	return list
}

// table copies a table, reads what was written, and compares the two.
func (c copying) table(ctx context.Context, name string, columns []string) (t Table, err error) {
	var before, read, written sum
	count := func(s *sum) func([]any) error { return func(row []any) error { return s.add(row) } }
	if err := c.target.each(ctx, name, columns, count(&before)); err != nil {
		return t, err
	}
	if before.rows > 0 {
		return t, fmt.Errorf("the target is not empty: the table has %d rows", before.rows)
	}
	if err := c.pipe(ctx, name, columns, &read); err != nil {
		return t, err
	}
	if err := c.target.each(ctx, name, columns, count(&written)); err != nil {
		return t, err
	}
	if !read.is(&written) {
		return t, fmt.Errorf("the target has %d rows with the checksum %s, and the source %d rows with %s",
			written.rows, written.text(), read.rows, read.text())
	}
	return Table{Name: name, Rows: read.rows, Sum: read.text()}, nil
}

var errStopped = errors.New("no more rows are wanted")

// pipe reads the rows of a table and writes them.
func (c copying) pipe(ctx context.Context, name string, columns []string, read *sum) error {
	var failed error
	next, stop := iter.Pull(func(yield func([]any) bool) {
		failed = c.source.each(ctx, name, columns, func(row []any) error {
			if err := read.add(row); err != nil {
				return err
			}
			if !yield(row) {
				return errStopped
			}
			return nil
		})
	})
	defer stop()
	return c.target.insert(ctx, name, columns, func() ([]any, error) {
		if row, ok := next(); ok {
			return row, nil
		}
		return nil, failed
	})
}

// counters makes the target go on numbering where the source was: numbers of rows that were removed
// must not be given out again.
func (c copying) counters(ctx context.Context, tables map[string][]string) error {
	last, err := c.source.counters(ctx)
	if err != nil {
		return err
	}
	for table, n := range last {
		if _, has := tables[table]; has {
			if err := c.target.setCounter(ctx, table, n); err != nil {
				return err
			}
		}
	}
	return nil
}
