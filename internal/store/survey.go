package store

import (
	"context"
	"database/sql"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// WorkspaceUse is a workspace with what it uses.
type WorkspaceUse struct {
	postern.Workspace

	Messages int // of the month's quota
	Devices  int // that hold a slot
	Members  int
}

// within is the pattern of what holds a text, whatever that is. ASCII alone is made
// lower: both engines' lower does no more, for columns with the collation C.
func within(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.Map(lowerASCII, text)) + "%"
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

const (
	useColumns = workspaceColumns + `, coalesce((SELECT messages FROM usage WHERE workspace_id = w.id AND month = $1), 0),
		(SELECT count(*) FROM device WHERE workspace_id = w.id AND deleted_at = 0 AND status IN ` + slotStates + `),
		(SELECT count(*) FROM member WHERE workspace_id = w.id)`
	workspacesUsed = `SELECT ` + useColumns + ` FROM workspace w WHERE w.id > $2 AND ($3 = '' OR w.id = $3 OR lower(w.name) LIKE $4 ESCAPE '\') ORDER BY w.id LIMIT $5 + 0`
	workspaceUsed  = `SELECT ` + useColumns + ` FROM workspace w WHERE w.id = $2`
)

func scanUse(s db.Scanner) (u WorkspaceUse, err error) {
	u.Workspace, err = scanWorkspace(withTail{s, []any{&u.Messages, &u.Devices, &u.Members}})
	return u, err
}

// WithUsage lists the workspaces that have a text in their name, or as their
// id, "" for all, oldest first, with what they use in a month.
func (s Workspaces) WithUsage(ctx context.Context, month, text string, p Page) (list []WorkspaceUse, err error) {
	err = s.db.Rows(ctx, workspacesUsed, []any{month, p.After, text, within(text), p.Limit}, func(r *sql.Rows) error {
		u, err := scanUse(r)
		list = append(list, u)
		return err
	})
	return list, err
}

// GetWithUsage is one of WorkspacesUsed.
func (s Workspaces) GetWithUsage(ctx context.Context, id postern.WorkspaceID, month string) (WorkspaceUse, error) {
	u, err := scanUse(s.db.One(ctx, workspaceUsed, month, id))
	return u, notFoundOr(err, func() (bool, error) { return false, nil }, "workspace")
}

// Person is a user with what an operator sees of one.
type Person struct {
	postern.User

	Chosen     bool // a password
	Second     bool // has a second step
	SignedIn   postern.Time
	Workspaces int
	Names      []string // of the first of them
}

const (
	persons = `SELECT u.id, u.email, u.epoch, u.created_at, u.operator, u.password_hash <> '',
		EXISTS (SELECT 1 FROM totp WHERE user_id = u.id AND confirmed_at > 0) OR EXISTS (SELECT 1 FROM passkey WHERE user_id = u.id),
		coalesce((SELECT a.at FROM audit a WHERE a.workspace_id = '' AND a.user_id = u.id AND a.act = 'user.signed-in' ORDER BY a.n DESC LIMIT 1), 0),
		(SELECT count(*) FROM member WHERE user_id = u.id)
		FROM users u WHERE u.email > $1 AND ($2 = '' OR u.email LIKE $3 ESCAPE '\') ORDER BY u.email LIMIT $4 + 0`
	// namesOf are the first workspaces of each of some users, and of no more.
	namesOf = `SELECT user_id, name FROM (SELECT m.user_id, w.name, row_number() OVER (PARTITION BY m.user_id ORDER BY m.workspace_id) AS place
		FROM member m JOIN workspace w ON w.id = m.workspace_id WHERE m.user_id IN %s) named WHERE place <= $2 ORDER BY user_id, place`
)

// List lists the users that have a text in their address, "" for all, by their
// addresses, with the names of their first workspaces.
func (s Users) List(ctx context.Context, text string, names int, p Page) (list []Person, err error) {
	err = s.db.Rows(ctx, persons, []any{p.After, text, within(text), p.Limit}, func(r *sql.Rows) error {
		var u Person
		err := r.Scan(&u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator, &u.Chosen, &u.Second, &u.SignedIn, &u.Workspaces)
		list = append(list, u)
		return err
	})
	if err != nil || len(list) == 0 {
		return list, err
	}
	err = s.nameWorkspaces(ctx, list, names)
	return list, err
}

func (s Users) nameWorkspaces(ctx context.Context, list []Person, names int) error {
	at, ids := map[postern.UserID]int{}, make([]postern.UserID, len(list))
	for i, u := range list {
		at[u.ID], ids[i] = i, u.ID
	}
	return s.db.Rows(ctx, strings.Replace(namesOf, "%s", s.db.InList(1), 1), []any{asJSON(ids), names}, func(r *sql.Rows) error {
		var id postern.UserID
		var name string
		err := r.Scan(&id, &name)
		list[at[id]].Names = append(list[at[id]].Names, name)
		return err
	})
}
