package library

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/media/blob"
	"postern/internal/postern"
)

const workspace = postern.WorkspaceID("ws_01JD8Z3NDEKTSV4RRFFQ69G5FA")

func open(t *testing.T) *Library {
	t.Helper()
	dir := t.TempDir()
	blobs, err := blob.OpenDirectory(filepath.Join(dir, "media"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(blobs, filepath.Join(dir, "transit"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A nearly full disk is left to the database.
func TestNearlyFullDiskTakesNoFiles(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.floor = math.MaxUint64
	if _, err := l.Take(t.Context(), workspace, strings.NewReader("hello")); postern.ReasonOf(err) != postern.Unavailable {
		t.Errorf("a file is taken with %v", err)
	}
}

// The sweep removes what is old and unknown, and nothing else.
func TestSweepRemovesWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	l := open(t)
	take := func(text string) postern.Media {
		m, err := l.Take(t.Context(), workspace, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	held, unknown := take("held"), take("unknown")
	holds := func(_ context.Context, _ postern.WorkspaceID, hash string) (bool, error) {
		return hash == held.SHA256, nil
	}
	read := func(m postern.Media) error {
		r, err := l.Open(t.Context(), workspace, m)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = io.ReadAll(r)
		return err
	}
	if err := l.Sweep(t.Context(), time.Now().Add(-time.Hour), holds); err != nil || read(unknown) != nil {
		t.Errorf("a sweep of older files: %v, then %v", err, read(unknown))
	}
	if err := l.Sweep(t.Context(), time.Now().Add(time.Hour), holds); err != nil || read(held) != nil {
		t.Errorf("a sweep: %v, then %v", err, read(held))
	}
	if err := read(unknown); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody holds is read with %v", err)
	}
}
