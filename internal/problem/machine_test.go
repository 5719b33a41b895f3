package problem

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
)

// What fails because of the machine may succeed later, and is no mistake of ours.
func TestFailingMachineIsUnavailable(t *testing.T) {
	t.Parallel()
	w := NewWriter("", slog.New(slog.DiscardHandler))
	for err, want := range map[error]int{
		&os.PathError{Op: "open", Path: "media/x", Err: syscall.EROFS}:        http.StatusServiceUnavailable,
		fmt.Errorf("store a file: %w", &os.PathError{Err: syscall.ENOSPC}):    http.StatusServiceUnavailable,
		fmt.Errorf("store: %w", os.NewSyscallError("openat", syscall.EMFILE)): http.StatusServiceUnavailable,
		&os.PathError{Op: "open", Path: "media/x", Err: syscall.ENOENT}:       http.StatusInternalServerError,
		errors.New("a mistake"): http.StatusInternalServerError,
	} {
		d := w.Document(&obs.Request{}, err)
		if d.Status != want || strings.Contains(d.Detail, "media/x") {
			t.Errorf("%v: %d %s", err, d.Status, d.Detail)
		}
		if (d.GetHeaders().Get("Retry-After") != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%v: the headers are %v", err, d.GetHeaders())
		}
	}
}

// During an outage, the log does not say the same for each request.
func TestLogOfRefusalsDoesNotGrowWithTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		w := NewWriter("", slog.New(slog.NewTextHandler(&lines, nil)))
		for range 2 {
			for range 100 {
				w.Document(&obs.Request{}, postern.Errorf(postern.Unavailable, "the storage cannot be written now"))
			}
			time.Sleep(unavailableGap)
		}
		if n := strings.Count(lines.String(), "\n"); n != 2 || !strings.Contains(lines.String(), "others_before=99") {
			t.Errorf("200 refusals are %d lines:\n%s", n, lines.String())
		}
	})
}
