package postern_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

// TestNoDataDirectoryIsCommitted looks for what a server leaves in its data directory, such as its secret
// key. The directories bin and data are ignored by git.
func TestNoDataDirectoryIsCommitted(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (skipped(path, d.Name()) || path == "bin" || path == "data"):
			return fs.SkipDir
		case !d.IsDir() && isData(d.Name()):
			t.Errorf("%s belongs in the data directory of a server; remove it", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isData reports whether a server names a file so.
func isData(name string) bool {
	names := []string{"secret.key", "postern.lock", "setup-link"}
	return slices.Contains(names, name) || slices.Contains([]string{".db", ".db-wal", ".db-shm"}, filepath.Ext(name))
}

func TestIsData(t *testing.T) {
	for name, want := range map[string]bool{
		"secret.key": true, "postern.db": true, "postern.db-wal": true, "postern.lock": true, "db.go": false,
	} {
		if got := isData(name); got != want {
			t.Errorf("isData(%q) = %t, want %t", name, got, want)
		}
	}
}
