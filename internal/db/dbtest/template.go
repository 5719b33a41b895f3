package dbtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Template is a migrated database of which tests get copies: to migrate one takes longer than
// most tests.
type Template struct {
	files func() (map[string][]byte, error) // of the SQLite database, by name
	name  func() (string, error)            // of the PostgreSQL database
}

// NewTemplate returns the template that migrate makes: in a directory, or in the PostgreSQL
// database at a URL when that is not empty. Each is made when a test first needs it.
func NewTemplate(migrate func(dir, url string) error) Template {
	return Template{
		files: sync.OnceValues(func() (map[string][]byte, error) { return migratedFiles(migrate) }),
		name:  sync.OnceValues(func() (string, error) { return migratedDatabase(migrate) }),
	}
}

// Dir returns a new directory with a copy of the SQLite database.
func (t Template) Dir(tb testing.TB) string {
	tb.Helper()
	files, err := t.files()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// URL creates a copy of the PostgreSQL database in the cluster of this test binary and
// returns its URL; see the function [URL].
func (t Template) URL(tb testing.TB) string {
	tb.Helper()
	name, err := t.name()
	if err != nil {
		tb.Fatal(err)
	}
	return sharedURL(tb, name)
}

func migratedFiles(migrate func(dir, url string) error) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "postern-template")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := migrate(dir, ""); err != nil {
		return nil, err
	}
	made := os.DirFS(dir)
	names, err := fs.Glob(made, "*")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = fs.ReadFile(made, name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func migratedDatabase(migrate func(dir, url string) error) (string, error) {
	c, err := sharedCluster()
	if err != nil {
		return "", err
	}
	name, err := c.copyOf(pristine)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "postern-template")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return name, migrate(dir, c.url(name))
}
