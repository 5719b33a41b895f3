package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// A place without a database is refused, and not made one.
func TestSourceMustHaveADatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL(t)
	dir := t.TempDir()
	for _, from := range []Place{ParsePlace(dir), ParsePlace(url)} {
		_, err := Move(t.Context(), from, ParsePlace(filepath.Join(dir, "new")))
		if err == nil || !strings.Contains(err.Error(), "there is no Postern database") {
			t.Errorf("the error is %v", err)
		}
	}
	for _, name := range []string{db.FileName, "new"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// A target with data is refused, and the source can still be used.
func TestTargetMustBeEmpty(t *testing.T) {
	t.Parallel()
	from, to := filled(t), filled(t)
	_, err := Move(t.Context(), from, to)
	if err == nil || !strings.Contains(err.Error(), "the target is not empty: the table has 1 rows") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(from.database().File); err != nil {
		t.Error(err)
	}
}

// A source that a server uses is refused.
func TestSourceMustNotBeInUse(t *testing.T) {
	t.Parallel()
	from := filled(t)
	release, err := from.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := Move(t.Context(), from, Place{Dir: t.TempDir()}); err == nil {
		t.Error("a database is copied while it is in use")
	}
}

// filled returns a data directory whose database has a workspace.
func filled(t *testing.T) Place {
	t.Helper()
	p := Place{Dir: t.TempDir()}
	s, err := store.Open(t.Context(), store.Options{Dir: p.Dir})
	if err != nil {
		t.Fatal(err)
	}
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "acme", Plan: "free", CreatedAt: postern.TimeOf(time.Now())}
	if err := errors.Join(s.Workspaces.Create(t.Context(), ws), s.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}
