package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"postern/internal/db"
	"postern/internal/postern"
)

// withTail scans further columns after those of a noun.
type withTail struct {
	db.Scanner

	tail []any
}

func (s withTail) Scan(dst ...any) error { return s.Scanner.Scan(append(dst, s.tail...)...) }

// jsonColumn reads and writes a column that holds JSON.
type jsonColumn struct{ v any }

func (c jsonColumn) Scan(src any) error {
	switch s := src.(type) {
	case string:
		if m, ok := c.v.(*map[string]string); ok && s == "{}" {
			*m = map[string]string{} // most are empty
			return nil
		}
		return json.Unmarshal([]byte(s), c.v)
	case []byte:
		return json.Unmarshal(s, c.v)
	}
	return fmt.Errorf("a JSON column holds %T", src)
}

// asJSON is the text of a JSON column. The values are our own lists and maps of strings,
// which can always be encoded.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// notFoundOr returns the contract's error for an id that the workspace does not have:
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
