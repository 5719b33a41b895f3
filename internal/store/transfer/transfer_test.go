package transfer

import (
	"database/sql"
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
	h, err := from.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	if _, err := Move(t.Context(), from, Place{Dir: t.TempDir()}); err == nil {
		t.Error("a database is copied while it is in use")
	}
}

// A second move from a directory does not overwrite the file of the first one, and copies nothing.
func TestFileOfAnEarlierMoveIsKept(t *testing.T) {
	t.Parallel()
	from := filled(t)
	name, to := from.database().File+Retired, Place{Dir: filepath.Join(t.TempDir(), "new")}
	if err := os.WriteFile(name, []byte("the first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Move(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "earlier move") {
		t.Errorf("the error is %v", err)
	}
	if text, err := os.ReadFile(name); string(text) != "the first" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := os.Stat(to.Dir); err == nil {
		t.Error("the target was made")
	}
}

// Nobody can open the source between the copy and the renaming of its file.
func TestSourceStaysLockedUntilItIsRenamed(t *testing.T) {
	t.Parallel()
	from := filled(t)
	_, err := move(t.Context(), from, Place{Dir: t.TempDir()}, func() error {
		_, err := store.Open(t.Context(), store.Options{Dir: from.Dir})
		if _, locked := errors.AsType[*db.LockedError](err); !locked {
			t.Errorf("opening the source: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A database of another version is not backed up: what it lacks would look as if it had been lost.
func TestDatabaseOfAnotherVersionIsNotCopied(t *testing.T) {
	t.Parallel()
	from := filled(t)
	s, err := sql.Open("sqlite", from.database().File)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ExecContext(t.Context(), `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), from, t.TempDir()); err == nil || !strings.Contains(err.Error(), "the release that the server runs") {
		t.Errorf("the error is %v", err)
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
