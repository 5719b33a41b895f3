package db

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"github.com/pressly/goose/v3"
)

// dialect is what differs between the engines. Everything else is one text that both
// understand.
type dialect struct {
	goose   goose.Dialect
	dir     string // of its migrations
	begin   string // starts a transaction of the writer
	turn    string // waits, in a transaction, until no other server has one; "": no other can have one
	size    string // query for the engine with its version, and the size of the database in bytes
	list    string // the set of strings in the JSON array bound as parameter %[1]d; "null" is an empty set
	readers int    // connections for reading
	sharing sharing
	remote  bool // a server of its own, whose connections can be lost
}

// InList is SQL for the set of strings in the JSON array bound as parameter n; the
// array "null" is an empty set.
func (db *DB) InList(n int) string { return db.dialect.inList(n) }

// Postgres tells whether the database is PostgreSQL.
func (db *DB) Postgres() bool { return db.dialect.remote }

// Size returns the engine with its version, such as "SQLite 3.50.4", and the size of the
// database in bytes.
func (db *DB) Size(ctx context.Context) (engine string, bytes int64, err error) {
	err = db.Row(ctx, db.dialect.size, nil, &engine, &bytes)
	return engine, bytes, err
}

// Figures are what operators watch of the engine in this process.
type Figures struct {
	Waiting int64 // reads that wait now until it is their workspace's turn
	Waits   int64 // reads that had to wait for a connection, since the start
	Log     int64 // bytes of the file of SQLite's write-ahead log; 0 with PostgreSQL
}

// Figures returns the figures of now. It reads nothing from the database.
func (db *DB) Figures() Figures {
	return Figures{
		Waiting: db.readers.waiting() + db.lists.waiting(),
		Waits:   db.read.Stats().WaitCount,
		Log:     db.logSize(),
	}
}

// logSize is 0 while there is no file.
func (db *DB) logSize() int64 {
	if db.logFile == "" {
		return 0
	}
	info, err := os.Stat(db.logFile)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (d dialect) inList(n int) string { return fmt.Sprintf(d.list, n) }

// prepared is a statement that can be run again and again.
type prepared struct {
	*sql.Stmt

	order []int // see positional
}

// args returns the arguments as the statement takes them.
func (p *prepared) args(args []any) []any { return ordered(plain(args), p.order) }

// prepare prepares a query on a connection, or for all connections of a pool.
func (d dialect) prepare(ctx context.Context, on interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}, query string,
) (*prepared, error) {
	var order []int
	if !d.remote {
		query, order = positional(query)
	}
	s, err := on.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &prepared{s, order}, nil
}

// Rules for the one text of both engines:
//
// A limit that is a parameter is written "LIMIT $1 + 0": SQLite looks at the value of a
// bare parameter there when it plans, and plans the statement again at every execution
// (sqlite3ExprIsInteger, since 3.46). Measured: half the cost of a list.
//
// PostgreSQL gives a parameter the type of its first use: one that is compared with a
// number before it meets a column would get 32 bits. Such a parameter is written
// "CAST($1 AS BIGINT)". Booleans are the numbers 0 and 1.
