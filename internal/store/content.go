package store

import (
	"fmt"
	"strings"

	"postern/internal/postern"
)

// contentColumns are the columns of table message that hold a message's content.
// Only this file knows how content is stored.
const contentColumns = `type, body`

// contentValues returns the values of contentColumns.
func contentValues(c postern.Content) []any { return []any{string(c.Kind), c.Text} }

// contentInto returns where a row's contentColumns are scanned to.
func contentInto(c *postern.Content) []any { return []any{(*string)(&c.Kind), &c.Text} }

// setContent assigns contentColumns in an UPDATE, with placeholders from n on.
func setContent(n int) string {
	columns := strings.Split(contentColumns, ", ")
	for i, column := range columns {
		columns[i] = fmt.Sprintf("%s = $%d", column, n+i)
	}
	return strings.Join(columns, ", ")
}
