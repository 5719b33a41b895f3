package gateway

import (
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
)

// Page asks for a part of a list; the zero Page is the first 50.
type Page struct {
	Cursor string
	Limit  int
}

const defaultPage = 50

// List is a part of a list; Next is empty on the last one.
type List[T any] struct {
	Data []T
	Next string
}

// open turns a page into what the store asks for: one row more than wanted, to
// see whether there is a next page. Cursors are signed for the workspace and
// the kind of list.
func (g *core) open(ws postern.WorkspaceID, kind string, p Page) (store.Page, error) {
	limit := p.Limit
	if limit == 0 {
		limit = defaultPage
	}
	if p.Cursor == "" {
		return store.Page{Limit: limit + 1}, nil
	}
	after, err := g.openCursor(ws, kind, p.Cursor)
	return store.Page{After: after, Limit: limit + 1}, err
}

func (g *core) cursor(ws postern.WorkspaceID, kind, place string) string {
	mac := g.box.MAC("cursor "+kind+" "+string(ws), place)
	return base64.RawURLEncoding.EncodeToString(append([]byte(place+"."), mac...))
}

func (g *core) openCursor(ws postern.WorkspaceID, kind, cursor string) (place string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	place, mac, ok := strings.Cut(string(raw), ".")
	if err != nil || !ok || !hmac.Equal([]byte(mac), g.box.MAC("cursor "+kind+" "+string(ws), place)) {
		return "", postern.Errorf(postern.MalformedRequest, "the cursor is not one that this list gave")
	}
	return place, nil
}

// openPlace is the place that a cursor holds as a number; 0 without one.
func (g *core) openPlace(ws postern.WorkspaceID, kind, cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	place, err := g.openCursor(ws, kind, cursor)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(place, 10, 64)
}

// page cuts the extra row off and makes the cursor from the last one shown.
func page[T any](g *core, ws postern.WorkspaceID, kind string, rows []T, limit int, id func(T) string) List[T] {
	if len(rows) < limit {
		return List[T]{Data: rows}
	}
	rows = rows[:limit-1]
	return List[T]{rows, g.cursor(ws, kind, id(rows[len(rows)-1]))}
}
