package accounts

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const testNow = postern.Time(1_795_000_000_000) // 2026-11-18

// onBoth runs a test with each of the two databases, which are empty.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store, tables Tables)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			test(t, s, Of(s))
		})
	}
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newWorkspace adds a workspace with the name acme.
func newWorkspace(t *testing.T, s *store.Store) postern.WorkspaceID {
	t.Helper()
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "acme", Plan: "growth", CreatedAt: testNow}
	if err := s.Workspaces.Create(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	return ws.ID
}

// addUser adds a user who owns the workspaces.
func addUser(
	t *testing.T, s *store.Store, email, passwordHash string, workspaces ...postern.WorkspaceID,
) postern.User {
	t.Helper()
	u := postern.User{ID: postern.NewUserID(), Email: email, CreatedAt: testNow}
	err := s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		if err := insertUser(tx, u, passwordHash); err != nil {
			return err
		}
		for _, ws := range workspaces {
			if err := insertMember(tx, ws, u, postern.Owner, testNow); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The lists are found by indexes, without reading rows that are not listed.
func TestListsHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	for _, tt := range []struct{ query, want string }{
		{membershipsOf, "PRIMARY KEY (user_id=? AND workspace_id>?)"},
		{identitiesOf, "INDEX identity_user (user_id=?)"},
		{persons, "INDEX audit_sign_in (workspace_id=? AND user_id=?)"},
		{persons, "SEARCH u USING INDEX sqlite_autoindex_users_2 (email>? AND email<?)"},
	} {
		if got := plan(t, s, tt.query); !strings.Contains(got, tt.want) ||
			tt.query == persons && strings.Contains(got, "TEMP B-TREE FOR ORDER") {
			t.Errorf("the plan is %s\nwant %s", got, tt.want)
		}
	}
}

// plan returns SQLite's plan for a query, whatever its arguments are.
func plan(t *testing.T, s *store.Store, query string) string {
	t.Helper()
	var steps []string
	args := make([]any, strings.Count(query, "$")) // a parameter may be used twice
	err := s.Engine().Rows(t.Context(), `EXPLAIN QUERY PLAN `+query, args, func(r *sql.Rows) error {
		var id, parent, x int
		var detail string
		err := r.Scan(&id, &parent, &x, &detail)
		steps = append(steps, detail)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}
