package db

import (
	"database/sql"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Scanner is a *sql.Row or *sql.Rows.
type Scanner interface{ Scan(dst ...any) error }

// txRow tells the transaction what its query did.
type txRow struct {
	t      *Tx
	row    *sql.Row
	writes bool
}

func (r txRow) Scan(dst ...any) error { return r.t.ran(r.row.Scan(dst...), r.writes) }

// row is a row whose query runs when it is scanned.
type row func(dst []any) error

func (r row) Scan(dst ...any) error { return r(dst) }

// failedRow is the row of a query that could not be run.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// each calls scan for every row that a query found.
func each(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close() // rows.Err below returns what went wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// plain turns the values of a statement into what both engines store alike: named
// types into strings and integers, booleans into 0 and 1, and text into UTF-8 without
// NUL, which PostgreSQL would refuse. Input is checked where it enters; this is for
// what was missed there, so that a message is stored with a replacement character and
// not refused again and again.
func plain(args []any) []any {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			if !isClean(v) {
				args[i] = Clean(v)
			}
		case int64:
		case []byte:
			if v == nil {
				args[i] = []byte{}
			}
		default:
			args[i] = plainKind(a)
		}
	}
	return args
}

func plainKind(a any) any {
	v := reflect.ValueOf(a)
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.String:
		return Clean(v.String())
	case v.CanInt():
		return v.Int()
	case v.Kind() == reflect.Bool && v.Bool():
		return int64(1)
	case v.Kind() == reflect.Bool:
		return int64(0)
	}
	return a
}

// Clean is a text as both engines store it: invalid UTF-8 and NUL are replaced by U+FFFD.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func isClean(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
