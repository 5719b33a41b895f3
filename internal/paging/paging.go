// Package paging cuts lists into pages. A cursor says where the next page begins; it
// is signed for its workspace and its kind of list, so that a caller can neither
// choose a place nor carry a cursor from one list to another.
package paging

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/seal"
)

// MaxBytes is how large the JSON of a page may be. A page ends before the entry that would
// make it larger, and its cursor continues with that entry.
const MaxBytes = 1 << 20

// around is the part of MaxBytes that is left for what surrounds the entries.
const around = 1 << 10

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
	if err != nil || !ok || !c.Box.Verify([]byte(mac), "cursor "+kind+" "+string(ws), place) {
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

// Cut removes the extra row that Open asked for and the rows that [MaxBytes] has no room
// for, and makes the next page's cursor from the last row that is left.
func Cut[T any](c Cursors, ws postern.WorkspaceID, kind string, list []T, rows int, place func(T) string) List[T] {
	n := Fit(list[:min(len(list), rows-1)], MaxBytes)
	if n == len(list) {
		return List[T]{Data: list}
	}
	list = list[:n]
	return List[T]{list, c.At(ws, kind, place(list[n-1]))}
}

// Whole cuts a list that is there as a whole, and has no places of its own, into pages by the numbers of its entries. A
// page that names neither a limit nor a cursor has all of them, even beyond [MaxBytes].
func Whole[T any](c Cursors, ws postern.WorkspaceID, kind string, list []T, p Page) (List[T], error) {
	from, err := c.Number(ws, kind, p.Cursor)
	if err != nil {
		return List[T]{}, err
	}
	if p == (Page{}) {
		return List[T]{Data: list}, nil
	}
	rest := list[min(from, int64(len(list))):]
	most := len(rest)
	if p.Limit > 0 {
		most = min(most, p.Limit)
	}
	n := Fit(rest[:most], MaxBytes)
	if n == len(rest) {
		return List[T]{Data: rest}, nil
	}
	return List[T]{rest[:n], c.At(ws, kind, strconv.FormatInt(from+int64(n), 10))}, nil
}

// bounded is an entry that knows how many bytes its JSON has at most.
type bounded interface{ JSONBound() int }

// Fit returns how many entries from the start of a list have room in a page of so many
// bytes of JSON. The first one always has room.
func Fit[T any](list []T, bytes int) int {
	room := bytes - around
	if most(list) <= room {
		return len(list)
	}
	for i, entry := range list {
		b, _ := postern.EncodeJSON(entry) // an entry that has no JSON is reported when it is sent
		if room -= len(b) + len(","); room < 0 && i > 0 {
			return i
		}
	}
	return len(list)
}

// most returns a number of bytes that the JSON of a list does not exceed, without encoding
// it. A list of entries that are not bounded may have any size.
func most[T any](list []T) (n int) {
	for _, entry := range list {
		b, ok := any(entry).(bounded)
		if !ok {
			return math.MaxInt
		}
		n += b.JSONBound() + len(",")
	}
	return n
}
