package store

import "fmt"

// inList is the set of texts in the JSON array bound as parameter n. PostgreSQL
// will take json_array_elements_text here.
func inList(n int) string { return fmt.Sprintf("(SELECT value FROM json_each($%d))", n) }

// A limit that is a parameter is written "LIMIT $1 + 0": SQLite looks at the
// value of a bare parameter there when it plans, and plans the statement anew
// at every execution (sqlite3ExprIsInteger, since 3.46). Measured: half of what
// a list costs.
