package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sums writes the file of checksums.
type sums struct {
	dir string
	f   *os.File
	w   *bufio.Writer
}

func newSums(dir string) (*sums, error) {
	f, err := os.OpenFile(filepath.Join(dir, sumsName), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o600) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	return &sums{dir, f, bufio.NewWriter(f)}, nil
}

// add adds a file whose checksum is known.
func (s *sums) add(hash, path string) error {
	_, err := fmt.Fprintf(s.w, "%s  %s\n", hash, filepath.ToSlash(path))
	return err
}

// hash reads a file and adds it.
func (s *sums) hash(path string) error {
	hash, err := hashOf(filepath.Join(s.dir, path))
	if err != nil {
		return err
	}
	return s.add(hash, path)
}

func (s *sums) close() error { return errors.Join(s.w.Flush(), s.f.Close()) }

func hashOf(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // as above
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Verify reads a whole backup. It is an error if a file differs from its checksum, is missing, or has no
// checksum.
func Verify(ctx context.Context, dir string) (m Manifest, err error) {
	list, err := os.Open(filepath.Join(dir, sumsName)) //nolint:gosec // as above
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is not a complete backup: it has no file %s", dir, sumsName)
	}
	if err != nil {
		return m, err
	}
	defer list.Close()
	listed := 0
	for lines := bufio.NewScanner(list); lines.Scan(); listed++ {
		if err := errors.Join(ctx.Err(), checkLine(dir, lines.Text())); err != nil {
			return m, fmt.Errorf("the backup is damaged: %w", err)
		}
	}
	found, err := countFiles(dir)
	if err != nil {
		return m, err
	}
	if m, err = readManifest(dir); err != nil {
		return m, err
	}
	if want := int(m.Media.Files) + 2; found != want || listed != want {
		return m, fmt.Errorf("the backup is damaged: it has %d files and %d checksums, and should have %d", found,
			listed, want)
	}
	return m, nil
}

// checkLine compares a file with the line of its checksum.
func checkLine(dir, line string) error {
	want, path, ok := strings.Cut(line, "  ")
	if !ok || !filepath.IsLocal(path) {
		return fmt.Errorf("%s has a line that is not a checksum", sumsName)
	}
	got, err := hashOf(filepath.Join(dir, path))
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has the checksum %s, and should have %s", path, got, want)
	}
	return nil
}

// countFiles counts the files that have checksums.
func countFiles(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && path != filepath.Join(dir, sumsName) {
			n++
		}
		return err
	})
	return n, err
}

func readManifest(dir string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName)) //nolint:gosec // as above
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", manifestName, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("the backup has the format %d, and this release reads %d; use the release %s", m.Format,
			format,
			m.Release)
	}
	return m, nil
}
