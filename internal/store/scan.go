package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"postern/internal/postern"
)

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dst ...any) error }

// checkedRow says what went wrong in the words of the store.
type checkedRow struct{ *sql.Row }

func (r checkedRow) Scan(dst ...any) error { return unavailable(r.Row.Scan(dst...)) }

// remoteRow asks when it is scanned.
type remoteRow func(dst []any) error

func (r remoteRow) Scan(dst ...any) error { return r(dst) }

// failedRow could not even be asked for.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// plain turns the values of a statement into what both engines store alike:
// names into texts, switches into 0 and 1, and texts into UTF-8 without NUL,
// which PostgreSQL would refuse. What comes from outside is checked where it
// comes in; this is for what was forgotten there, so that a message is stored
// with a mark in the place of such a byte and never refused again and again.
func plain(args []any) []any {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = clean(v)
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
		return clean(v.String())
	case v.CanInt():
		return v.Int()
	case v.Kind() == reflect.Bool && v.Bool():
		return int64(1)
	case v.Kind() == reflect.Bool:
		return int64(0)
	}
	return a
}

func clean(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// jsonColumn reads and writes a column that holds JSON.
type jsonColumn struct{ v any }

func (c jsonColumn) Scan(src any) error {
	switch s := src.(type) {
	case string:
		if m, ok := c.v.(*map[string]string); ok && s == "{}" {
			*m = map[string]string{} // most have none
			return nil
		}
		return json.Unmarshal([]byte(s), c.v)
	case []byte:
		return json.Unmarshal(s, c.v)
	}
	return fmt.Errorf("a JSON column holds %T", src)
}

// asJSON is the text of a JSON column. The values are our own lists and maps of
// strings, which always encode.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// notFoundOr gives the contract's answer for an id that the workspace has not:
// resource-not-allowed when it exists elsewhere, not-found when it does not.
func notFoundOr(err error, exists func() (bool, error), what string) error {
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	elsewhere, err := exists()
	if err != nil {
		return err
	}
	if elsewhere {
		return postern.Errorf(postern.ResourceNotAllowed, "this key may not use that %s", what)
	}
	return postern.Errorf(postern.NotFound, "there is no such %s", what)
}
