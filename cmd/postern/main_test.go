package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/db/dbtest"
	"postern/internal/seal"
)

const asProgram = "POSTERN_TEST_AS_PROGRAM"

// TestMain lets this test binary act as the program, because the protocol library
// allows one vendor per process, and users run a real process.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(dbtest.Binary{M: m}.Run())
}

// output collects what a command prints.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed by the next write; nil while nobody waits
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return o.buf.Write(p)
}

// changes returns a channel that the next write closes.
func (o *output) changes() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// untilTimeout returns a context that ends shortly before the test binary's timeout,
// so that a test can still say what it was waiting for.
func untilTimeout(t *testing.T) context.Context {
	t.Helper()
	end, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end.Add(-10*time.Second))
	t.Cleanup(cancel)
	return ctx
}

func program(ctx context.Context, out, errs *output, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), out, errs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// command runs a command to its end.
func command(t *testing.T, args ...string) (exit int, out, errs string) {
	t.Helper()
	var o, e output
	cmd := program(t.Context(), &o, &e, args...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	exit, out, errs := command(t, args...)
	if exit != 0 {
		t.Fatalf("postern %v = %d\n%s%s", args, exit, out, errs)
	}
	return out
}

// shortDir makes a directory whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "p") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// serve runs a server until the test ends and returns its URL.
func serve(t *testing.T, dir string, args ...string) (url string) {
	t.Helper()
	var errs output
	ctx, stop := context.WithCancel(context.Background())
	cmd := program(
		ctx,
		&errs,
		&errs,
		append([]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if exit := cmd.ProcessState.ExitCode(); exit != 0 {
			t.Errorf("serve = %d\n%s", exit, errs.String())
		}
	})
	at := regexp.MustCompile(`"msg":"serving","url":"([^"]+)"`)
	timeout := untilTimeout(t)
	for {
		changed := errs.changes()
		if m := at.FindStringSubmatch(errs.String()); m != nil {
			return m[1]
		}
		select {
		case <-changed:
		case <-ended:
			t.Fatalf("serve ended\n%s", errs.String())
		case <-timeout.Done():
			t.Fatalf("the server did not start\n%s", errs.String())
		}
	}
}

func TestCommandsWorkBesideARunningServerAndWithoutOne(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"running": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			if running {
				serve(t, dir, "--sandbox", "on")
			}
			at := "--data-dir=" + dir
			ws := matched(t, `^\{"id":"(ws_[0-9A-Z]{26})"\}\n$`,
				mustRun(t, "workspace", "create", "--name", "X", "--plan", "growth", "--json", at))
			out := mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at)
			key := matched(t, `^\{"id":"(key_[0-9A-Z]{26})","key":"pst_[0-9A-Za-z]{38}"\}\n$`, out)
			if list := mustRun(t, "key", "list", "--workspace", ws, "--json", at); !strings.Contains(list, key) ||
				strings.Contains(list, "pst_") {
				t.Errorf("key list = %s", list)
			}
			mustRun(t, "key", "revoke", "--workspace", ws, key, at)
			mustRun(t, "workspace", "set-plan", ws, "pro", at)
			if list := mustRun(t, "workspace", "list", at); !strings.Contains(list, "pro") {
				t.Errorf("workspace list = %s", list)
			}
			if list := mustRun(t, "device", "list", "--workspace", ws, "--json", at); list != "{\"data\":[]}\n" {
				t.Errorf("device list = %s", list)
			}
			mustRun(t, "webhook", "add", "--workspace", ws, "--url", "https://example.com/x", at)
			if exit, _, errs := command(t, "webhook", "add", "--workspace", ws, "--url", "http://127.0.0.1/x",
				at); exit != 1 ||
				!strings.Contains(errs, "/url: ") {
				t.Errorf("a private webhook = %d %s", exit, errs)
			}
			free := matched(t, `"id":"(ws_[0-9A-Z]{26})"`,
				mustRun(t, "workspace", "create", "--name", "Y", "--plan", "free", "--json", at))
			if exit, _, errs := command(t, "webhook", "add", "--workspace", free, "--url", "https://example.com/x",
				at); exit != 1 || !strings.Contains(errs, "(plan-without-api)") {
				t.Errorf("a webhook on the free plan = %d %s", exit, errs)
			}
			if list := mustRun(t, "webhook", "list", "--workspace", ws, at); !strings.Contains(list,
				"https://example.com/x") {
				t.Errorf("webhook list = %s", list)
			}
			out = mustRun(t, "user", "create", "--workspace", ws, "--email", "ada@example.com", "--role", "owner",
				"--json", at)
			matched(t,
				`^\{"id":"usr_[0-9A-Z]{26}","email":"ada@example.com","link":"(`+map[bool]string{true: "http://127.0.0.1:[0-9]+"}[running]+`/join/[0-9A-Za-z_-]{43})"\}\n$`,
				out)
			if list := mustRun(t, "user", "list", "--workspace", ws, at); !strings.Contains(list,
				"ada@example.com  owner") {
				t.Errorf("user list = %s", list)
			}
			if out := mustRun(t, "user", "reset-password", "ADA@example.com", at); !strings.Contains(out, "/join/") ||
				!strings.Contains(out, "within 72 hours") {
				t.Errorf("user reset-password = %s", out)
			}
			matched(t, `^\{"email":"ada@example.com","id":"(usr_[0-9A-Z]{26})","operator":true\}\n$`,
				mustRun(t, "user", "operator", "Ada@example.com", "--json", at))
			if out := mustRun(t, "user", "operator", "ada@example.com", "--remove", at); !strings.Contains(out,
				"(ada@example.com) is no longer an operator") {
				t.Errorf("user operator --remove = %s", out)
			}
			if exit, _, errs := command(t, "user", "operator", "eve@example.com", at); exit != 1 ||
				!strings.Contains(errs, "no user has") {
				t.Errorf("an unknown user as an operator = %d %s", exit, errs)
			}
			if exit, _, errs := command(t, "user", "reset-password", "eve@example.com", at); exit != 1 ||
				!strings.Contains(errs, "no user has") {
				t.Errorf("the password of an unknown user = %d %s", exit, errs)
			}
			if exit, _, errs := command(t, "key", "list", "--workspace", "ws_none", at); exit != 1 ||
				!strings.Contains(errs, "no such workspace") {
				t.Errorf("an unknown workspace = %d %s", exit, errs)
			}
		})
	}
}

// TestCommandsAndServersShareAPostgreSQLDatabase also checks that nothing prints the
// database URL.
func TestCommandsAndServersShareAPostgreSQLDatabase(t *testing.T) {
	t.Parallel()
	dir, other := shortDir(t), shortDir(t)
	url := strings.Replace(dbtest.URL(t), "postern@", "postern:canary@", 1)
	keyFile := filepath.Join(shortDir(t), "key")
	if err := os.WriteFile(keyFile, []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--database-url", url, "--secret-key-file", keyFile}
	on := func(dir string, args ...string) (int, string) {
		t.Helper()
		exit, out, errs := command(t, append(append(args, "--data-dir", dir), flags...)...)
		if strings.Contains(out+errs, "canary") {
			t.Errorf("postern %v shows the database URL: %s%s", args, out, errs)
		}
		return exit, out + errs
	}
	if exit, said := on(dir, "migrate"); exit != 0 || !strings.Contains(said, "is at version ") {
		t.Errorf("migrate = %d %s", exit, said)
	}
	t.Run("server", func(t *testing.T) {
		serve(t, dir, append(flags, "--sandbox", "on")...)
		if exit, said := on(dir, "workspace", "create", "--name", "made beside a server"); exit != 0 {
			t.Errorf("workspace create = %d %s", exit, said)
		}
		for _, args := range [][]string{
			{"workspace", "list"},
			{"migrate"},
			{"serve", "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"},
		} {
			if exit, said := on(other, args...); exit != 1 || !strings.Contains(said, "in use by postern, process ") {
				t.Errorf("%v from elsewhere = %d %s, want the name of the server", args, exit, said)
			}
		}
	})
	if exit, said := on(other, "workspace", "list"); exit != 0 || !strings.Contains(said, "made beside a server") {
		t.Errorf("workspace list from elsewhere = %d %s", exit, said)
	}
	if exit, _, errs := command(t, "workspace", "list", "--data-dir", other, "--database-url", url); exit != 2 ||
		!strings.Contains(errs, "openssl rand") ||
		strings.Contains(errs, "canary") {
		t.Errorf("without a key file = %d %s, want what to do", exit, errs)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if exit, said := on(other, "workspace", "list"); exit != 1 || !strings.Contains(said, keyFile) {
		t.Errorf("with a missing key file = %d %s, want its name", exit, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "postern.db")); err == nil {
		t.Error("a SQLite file was made as well")
	}
}

func matched(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%q does not match %s", text, pattern)
	}
	return m[1]
}

func TestKeyOfTheCommandOpensTheAPI(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--plan", "free", "--json", at))
	var made struct{ ID, Key string }
	if err := json.Unmarshal([]byte(mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at)),
		&made); err != nil {
		t.Fatal(err)
	}
	status := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/devices", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+made.Key)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := status(); got != 403 {
		t.Errorf("on the plan free: %d, want 403", got)
	}
	mustRun(t, "workspace", "set-plan", ws, "starter", at)
	if got := status(); got != 200 {
		t.Errorf("on the plan starter: %d, want 200 at once", got)
	}
	mustRun(t, "key", "revoke", "--workspace", ws, made.ID, at)
	if got := status(); got != 401 {
		t.Errorf("a revoked key: %d, want 401 at once", got)
	}
}

// A file that was uploaded for a message is removed when the message is refused.
func TestRefusedMessageLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--plan", "starter", "--json", at))
	key := matched(t, `"(pst_[^"]+)"`, mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at))
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("some notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	exit, _, errs := command(t, "message", "send", "--workspace", ws, "--device", "dev_none", "--to", "+15551234567",
		"--file", file, at)
	if exit != 1 || !strings.Contains(errs, "device") {
		t.Errorf("a message by an unknown device = %d\n%s", exit, errs)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/usage", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if usage, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(usage), `"storage":{"used":0,`) {
		t.Errorf("usage is %s, %v; want no bytes stored", usage, err)
	}
}

func TestErrorsAtStartSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	file := filepath.Join(shortDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		exit int
		want string
	}{
		"second server on the directory":    {[]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}, 1, "is in use by process"},
		"migrate beside a server":           {[]string{"migrate", "--data-dir", dir}, 1, "is in use by process"},
		"taken port":                        {[]string{"serve", "--data-dir", shortDir(t), "--sandbox", "on", "--addr", strings.TrimPrefix(url, "http://"), "--ops-addr", "127.0.0.1:0"}, 1, "address already in use"},
		"directory that cannot be written":  {[]string{"serve", "--data-dir", filepath.Join(file, "data")}, 1, "data directory"},
		"reachable from elsewhere, no TLS":  {[]string{"serve", "--data-dir", shortDir(t), "--addr", "0.0.0.0:0"}, 2, "POSTERN_INSECURE_HTTP"},
		"unknown command":                   {[]string{"fly"}, 2, "unexpected argument fly"},
		"unknown flag":                      {[]string{"serve", "--fly"}, 2, "there is no flag --fly; the nearest one is"},
		"missing flag":                      {[]string{"key", "create"}, 2, "missing flags"},
		"unknown plan":                      {[]string{"workspace", "create", "--data-dir", dir, "--name", "x", "--plan", "gold"}, 2, "is not one of free"},
		"linking without a running gateway": {[]string{"device", "link", "--data-dir", shortDir(t), "--workspace", "ws_x"}, 1, "postern serve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, _, errs := command(t, tt.args...)
			if exit != tt.exit || !strings.Contains(errs, tt.want) {
				t.Errorf("postern %v = %d %q, want %d and %q", tt.args, exit, errs, tt.exit, tt.want)
			}
		})
	}
}

func TestAnotherSecretKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	at := "--data-dir=" + dir
	mustRun(t, "workspace", "create", "--name", "X", at)
	other := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, _, errs := command(t, "workspace", "list", at); exit != 1 ||
		!strings.Contains(errs, "lacks the secret key ") {
		t.Errorf("with another key = %d %s", exit, errs)
	}
}

func TestDataIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "--sandbox", "on")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v (%v)", e.Name(), info.Mode(), err)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	if exit, out, _ := command(t, "--help"); exit != 0 || !strings.Contains(out, "serve") {
		t.Errorf("--help = %d %s", exit, out)
	}
	if exit, out, _ := command(t, "serve", "--help"); exit != 0 || !strings.Contains(out, "POSTERN_DATA_DIR") {
		t.Errorf("serve --help = %d %s", exit, out)
	}
	if exit, out, _ := command(t, "version"); exit != 0 || !strings.HasPrefix(out, "postern ") {
		t.Errorf("version = %d %s", exit, out)
	}
}

func TestDeviceIsLinkedFromTheTerminal(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--plan", "growth", "--json", at))
	key := matched(t, `"(pst_[^"]+)"`, mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at))
	for _, tt := range []struct {
		shows, number string
		args          []string
	}{
		{"▄", "+15550001111", nil},
		{"Enter this code:", "+15550002222", []string{"--phone-number", "+15550002222"}},
	} {
		var out, errs output
		cmd := program(
			t.Context(),
			&out,
			&errs,
			append([]string{"device", "link", "--workspace", ws, "--name", "support", at}, tt.args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitText(t, &errs, tt.shows)
		device := matched(t, `"id":"(dev_[^"]+)"`,
			mustRun(t, "device", "list", "--workspace", ws, "--json", at)) // the newest
		if status := scanIn(t, url, key, device, tt.number); status != http.StatusOK {
			t.Errorf("scan = %d", status)
		}
		if err := cmd.Wait(); err != nil || out.String() != "device "+device+" is connected as "+tt.number+"\n" {
			t.Errorf("device link: %v, %q\n%s", err, out.String(), errs.String())
		}
	}
}

// scanIn lets a simulated phone scan or enter the code of a device's link attempt.
func scanIn(t *testing.T, url, key, device, number string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/sandbox/devices/"+device+"/scan",
		strings.NewReader(`{"phoneNumber":"`+number+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// When the network cannot be reached, the command says what was dialled, and leaves no device behind.
func TestLinkingWithoutTheNetworkLeavesNoDevice(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	serve(t, dir, "--network-url", "wss://127.0.0.1:1/ws", "--network-root-key", strings.Repeat("00", 32))
	ws := strings.Fields(mustRun(t, "workspace", "create", "--data-dir", dir, "--name", "x"))[1]
	exit, _, errs := command(t, "device", "link", "--data-dir", dir, "--workspace", ws)
	if exit != 1 || !strings.Contains(errs, "cannot reach the messaging network at wss://127.0.0.1:1/ws (dial)") {
		t.Errorf("device link = %d %s", exit, errs)
	}
	if out := mustRun(t, "device", "list", "--data-dir", dir, "--workspace", ws, "--json"); out != "{\"data\":[]}\n" {
		t.Errorf("the devices are %s", out)
	}
}

// Ctrl-C ends the command, and with it the attempt and its device.
func TestInterruptedLinkLeavesNoDevice(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	serve(t, dir, "--sandbox")
	ws := strings.Fields(mustRun(t, "workspace", "create", "--data-dir", dir, "--name", "x"))[1]
	var out, errs output
	cmd := program(t.Context(), &out, &errs, "device", "link", "--data-dir", dir, "--workspace", ws)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitText(t, &errs, "Scan this code")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the interrupted command ends as if it had linked a phone")
	}
	if out := mustRun(t, "device", "list", "--data-dir", dir, "--workspace", ws, "--json"); out != "{\"data\":[]}\n" {
		t.Errorf("the devices are %s", out)
	}
}

func TestRefusedLinkLeavesNoDevice(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	serve(t, dir, "--sandbox")
	ws := strings.Fields(mustRun(t, "workspace", "create", "--data-dir", dir, "--name", "x"))[1]
	exit, _, errs := command(t, "device", "link", "--data-dir", dir, "--workspace", ws, "--phone-number", "x")
	if exit != 1 || !strings.Contains(errs, "write a phone number as + and 7 to 15 digits") {
		t.Errorf("device link = %d %s", exit, errs)
	}
	if out := mustRun(t, "device", "list", "--data-dir", dir, "--workspace", ws, "--json"); out != "{\"data\":[]}\n" {
		t.Errorf("the devices are %s", out)
	}
}

// The demo listens on all addresses if it is told that it may, as in the image of a container.
func TestDemoListensOnAllAddresses(t *testing.T) {
	t.Parallel()
	var out, errs output
	cmd := program(untilTimeout(t), &out, &errs, "demo", "--once", "--dir", shortDir(t))
	cmd.Env = append(cmd.Env, "POSTERN_ADDR=:0", "POSTERN_OPS_ADDR=:0",
		"POSTERN_INSECURE_HTTP=on", "POSTERN_PUBLIC_OPS=on")
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "Everything worked") {
		t.Errorf("%v\n%s%s", err, out.String(), errs.String())
	}
}
