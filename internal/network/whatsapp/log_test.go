package whatsapp

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/postern"
	"postern/vendorsim"
)

// lines is a log that can be written to from anywhere.
type lines struct {
	mu   sync.Mutex
	more sync.Cond // of mu, after each line; await needs it
	buf  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more.Broadcast()
	return l.buf.Write(p)
}

// await waits until the log contains a text.
func (l *lines) await(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.more.L = &l.mu; !bytes.Contains(l.buf.Bytes(), []byte(text)); {
		l.more.Wait()
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestLogKeepsSecrets goes through all that can happen, with the log at its most
// talkative, and looks for what must not be in it.
func TestLogKeepsSecrets(t *testing.T) {
	log := &lines{}
	w := newWorld(t, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	const number, friend, secret = "+15550107777", "+15550108888", "canary-text"
	rec := &networktest.Recorder{}
	account := networktest.Link(t, w.World, number)
	c := networktest.Connect(t, w.World, account, rec).Live(t, 1)
	var errs []error
	try := func(_ any, err error) { errs = append(errs, err) }
	faults := []vendorsim.Fault{"", vendorsim.FaultGarble, vendorsim.FaultRetry, vendorsim.FaultDropBeforeAck}
	for i, fault := range faults {
		if fault != "" {
			if err := w.vendor.Fault(t.Context(), number, fault); err != nil {
				t.Fatal(err)
			}
		}
		try(c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000E%d", i), friend, secret)))
		try(c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000F%d", i), vendorsim.NumberUnknown, secret)))
		try(w.vendor.Type(t.Context(), number, friend, secret))
		try(w.vendor.Send(t.Context(), number, friend, secret))
	}
	c.EndedAs(t, postern.Disconnected, "")
	rec.Rule(func(network.Update) error { return networktest.ErrRefused })
	c = networktest.Reconnect(t, c.Session, rec)
	c.EndedAs(t, postern.Disconnected, "")
	rec.Rule(nil)
	c = networktest.Reconnect(t, c.Session, rec).Live(t, 2)
	mend := w.failWrites(t, "INSERT", kindEvent)
	try(w.vendor.Send(t.Context(), number, friend, secret))
	c.EndedAs(t, postern.Disconnected, "")
	mend()
	c = networktest.Reconnect(t, c.Session, rec).Live(t, 3)
	if err := w.vendor.Fault(t.Context(), number, vendorsim.FaultLogout); err != nil {
		t.Fatal(err)
	}
	c.EndedAs(t, postern.LoggedOut, "")
	for _, err := range errs {
		if err != nil {
			fmt.Fprintln(log, err)
		}
	}
	secrets := []string{number[1:], friend[1:], vendorsim.NumberUnknown[1:], secret, "@lid", "@s.whatsapp.net"}
	for _, code := range networktest.All(rec, networktest.Any[network.Code]) {
		secrets = append(secrets, code.Text)
	}
	for _, m := range networktest.All(rec, networktest.Any[network.Inbound]) {
		secrets = append(secrets, m.FromLID, m.FromName)
	}
	for _, s := range secrets {
		if s == "" {
			t.Error("an empty secret was looked for")
		} else if strings.Contains(log.String(), s) {
			t.Errorf("the log holds %q", s)
		}
	}
	if raw := regexp.MustCompile(`.*%[+#]?[svdqXT!].*`).FindString(log.String()); raw != "" {
		t.Errorf("the log has a line that is not formatted: %s", raw)
	}
	if !strings.Contains(log.String(), "module=whatsmeow") {
		t.Error("nothing of whatsmeow reached the log: the test proves nothing")
	}
}

// TestFormatsOfWhatsmeowAreConstants guards what tap passes on to the log.
func TestFormatsOfWhatsmeowAreConstants(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.mau.fi/whatsmeow").Output()
	if err != nil {
		t.Fatal(err)
	}
	dynamic := regexp.MustCompile(`[lL]og\.(Debug|Info|Warn|Error)f\(\s*[^"\s]`)
	found := 0
	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found += bytes.Count(src, []byte("Log.Warnf("))
		if hit := dynamic.Find(src); hit != nil {
			t.Errorf("%s: a format that is no constant: %s", filepath.Base(path), hit)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("looked at %d calls, %v", found, err)
	}
}

// While the database cannot be used, the log does not say so for each message.
func TestUnavailableKeysAreNoWarning(t *testing.T) {
	t.Parallel()
	log := &lines{}
	tap := newTap(slog.New(slog.NewTextHandler(log, nil)))
	tap.Errorf("Failed to save push name of %s in device store: %v", "x", fmt.Errorf("save: %w", keys.ErrUnavailable))
	tap.Errorf("Error reading from websocket: %v", errors.New("closed"))
	if log.String() != "" {
		t.Errorf("the log says %s", log)
	}
	tap.Errorf("Failed to save push name of %s in device store: %v", "x", errors.New("another reason"))
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("the log says %q", log)
	}
}
