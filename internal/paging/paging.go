// Package paging cuts lists into pages. A cursor says where the next page begins; it
// is signed for its workspace and its kind of list, so that a caller can neither
// choose a place nor carry a cursor from one list to another.
package paging

import (
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/seal"
)

// DefaultLimit is the number of entries on a page that names no limit.
const DefaultLimit = 50

// Everywhere stands for the whole server in the cursors of operators' lists.
const Everywhere = postern.WorkspaceID("operators")

// Page asks for a part of a list; the zero Page is the first 50 entries.
type Page struct {
	Cursor string
	Limit  int
}

// List is a part of a list; Next is empty on the last one.
type List[T any] struct {
	Data []T
	Next string
}

// Cursors makes and reads the cursors of one server.
type Cursors struct{ Box *seal.Box }

// Open turns a page into a place, "" for the start, and a number of rows: one more
// than wanted, which shows whether there is a next page.
func (c Cursors) Open(ws postern.WorkspaceID, kind string, p Page) (after string, rows int, err error) {
	rows = p.Limit + 1
	if p.Limit == 0 {
		rows = DefaultLimit + 1
	}
	if p.Cursor != "" {
		after, err = c.read(ws, kind, p.Cursor)
	}
	return after, rows, err
}

// At is the cursor for a place.
func (c Cursors) At(ws postern.WorkspaceID, kind, place string) string {
	mac := c.Box.MAC("cursor "+kind+" "+string(ws), place)
	return base64.RawURLEncoding.EncodeToString(append([]byte(place+"."), mac...))
}

func (c Cursors) read(ws postern.WorkspaceID, kind, cursor string) (place string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	place, mac, ok := strings.Cut(string(raw), ".")
	if err != nil || !ok || !hmac.Equal([]byte(mac), c.Box.MAC("cursor "+kind+" "+string(ws), place)) {
		return "", postern.Errorf(
			postern.MalformedRequest, "the cursor is not from this list; use the cursor that the list returned",
		)
	}
	return place, nil
}

// Number is the place in a cursor as a number; 0 without a cursor.
func (c Cursors) Number(ws postern.WorkspaceID, kind, cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	place, err := c.read(ws, kind, cursor)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(place, 10, 64)
}

// Cut removes the extra row that Open asked for, and makes the next page's cursor
// from the last row that is left.
func Cut[T any](c Cursors, ws postern.WorkspaceID, kind string, list []T, rows int, place func(T) string) List[T] {
	if len(list) < rows {
		return List[T]{Data: list}
	}
	list = list[:rows-1]
	return List[T]{list, c.At(ws, kind, place(list[len(list)-1]))}
}
