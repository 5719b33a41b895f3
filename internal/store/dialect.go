package store

import (
	"fmt"

	"github.com/pressly/goose/v3"
)

// dialect is what differs between the engines. Everything else is one text
// that both take.
type dialect struct {
	goose      goose.Dialect
	migrations string // directory of migrations
	begin      string // starts a transaction of the writer
	about      string // asks for the engine with its version, and the database's size in bytes
	list       string // the set of texts in a JSON array, a parameter whose number is %[1]d; "null" is no array and gives none
	readers    int    // connections that read
	turns      turnRules
	remote     bool // a server of its own: connections can be lost, and are pooled by who waits for them
}

// inList is the set of texts in the JSON array bound as parameter n.
func (d dialect) inList(n int) string { return fmt.Sprintf(d.list, n) }

// What the one text of both engines has to heed:
//
// A limit that is a parameter is written "LIMIT $1 + 0": SQLite looks at the
// value of a bare parameter there when it plans, and plans the statement anew
// at every execution (sqlite3ExprIsInteger, since 3.46). Measured: half of what
// a list costs.
//
// PostgreSQL gives a parameter the type of its first use: one that is compared
// with a number before it meets a column would take 32 bits. It is written
// "CAST($1 AS BIGINT)" there. Switches are numbers, 0 and 1.
