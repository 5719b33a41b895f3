package chaos_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries are built once per run of the tests, without the race detector.
type binaries struct{ postern, vendorsim string }

// built returns the programs as they are released; rigged returns them with fail points
// and saboteurs, which only the gateway has.
var (
	built         = sync.OnceValues(func() (binaries, error) { return build("") })
	rigged        = sync.OnceValues(func() (binaries, error) { return build("failpoints") })
	vendorProgram = sync.OnceValues(func() (string, error) { return goBuild("", "vendorsim") })
)

var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "chaos-bin") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func build(tags string) (b binaries, err error) {
	if b.vendorsim, err = vendorProgram(); err != nil {
		return b, err
	}
	b.postern, err = goBuild(tags, "postern")
	return b, err
}

// goBuild builds one of the programs, with further flags, and returns its path.
func goBuild(tags, program string, flags ...string) (string, error) {
	root, err := buildDir()
	if err := errors.Join(err, lookAtSources()); err != nil {
		return "", err
	}
	path := filepath.Join(root, fmt.Sprintf("with-%s-%d", tags, len(flags)), program)
	cmd := exec.Command("go", slices.Concat(
		[]string{"build", "-tags", tags, "-ldflags", "-s -w", "-o", path}, flags, []string{"postern/cmd/" + program})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// lookAtSources calls stat on every source file, so that the test cache knows that the
// result depends on them.
func lookAtSources() error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.':
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
}

// process is a running program. It dies with the harness.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // how it ended
}

// launch starts a program. The goroutine keeps its thread, because the kernel kills the
// child when the thread that started it ends.
func launch(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the program to end, and returns how it ended.
func (p *process) stop(limit time.Duration) error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not stop within %s", filepath.Base(p.cmd.Path), limit)
	}
}

// memory is the resident memory of a process in KiB: now and at its peak, and how much of it has files, such as the
// program.
type memory struct{ now, peak, files int }

func (m memory) or(n memory) memory {
	return memory{max(m.now, n.now), max(m.peak, n.peak), max(m.files, n.files)}
}

func (m memory) String() string {
	return fmt.Sprintf("at most %d MiB at a kill, %d MiB at its peak", m.now>>10, m.peak>>10)
}

func (p *process) memory(t *testing.T) (m memory) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		fmt.Sscanf(string(line), "VmRSS: %d", &m.now)
		fmt.Sscanf(string(line), "VmHWM: %d", &m.peak)
		fmt.Sscanf(string(line), "RssFile: %d", &m.files)
	}
	return m
}

// firstLine calls want with each line until it returns true, and copies everything to
// another writer.
type firstLine struct {
	to    io.Writer
	want  func(line []byte) bool
	buf   []byte
	found bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if !f.found {
		f.buf = append(f.buf, p...)
		for !f.found {
			line, rest, whole := bytes.Cut(f.buf, []byte("\n"))
			if !whole {
				break
			}
			f.found, f.buf = f.want(line), rest
		}
	}
	return f.to.Write(p)
}

// gateway is "postern serve" in a directory, started again after each kill. Each start
// uses another port.
type gateway struct {
	bin   binaries
	dir   string
	flags []string
	env   []string // for the next start
	log   *os.File

	mu      sync.Mutex // guards what follows
	proc    *process
	url     string        // "" while it is down
	ops     string        // the address of its health
	changed chan struct{} // closed when url changes
}

// start starts the program; ready is closed once it serves.
func (g *gateway) start() (ready <-chan struct{}, err error) {
	serving := make(chan struct{})
	out := &firstLine{to: g.log, want: func(line []byte) bool {
		var l struct {
			Msg, URL string
			Ops      string `json:"ops_url"`
		}
		if json.Unmarshal(line, &l) != nil || l.Msg != "serving" {
			return false
		}
		g.mu.Lock()
		g.ops = l.Ops
		g.mu.Unlock()
		g.serve(l.URL)
		close(serving)
		return true
	}}
	cmd := exec.Command(
		g.bin.postern,
		append(
			[]string{
				"serve", "--data-dir", g.dir, "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0",
				"--allow-private-webhooks", "on",
			},
			g.flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), g.env...), out
	p, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.proc = p
	g.mu.Unlock()
	return serving, nil
}

func (g *gateway) serve(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = url
	close(g.changed)
	g.changed = make(chan struct{})
}

// where returns the address of the API, and a channel that is closed when it changes.
func (g *gateway) where() (string, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.url, g.changed
}

// readiness is the address at which the server says whether it accepts requests.
func (g *gateway) readiness() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ops + "/readyz"
}

func (g *gateway) running() *process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proc
}

// kill sends SIGKILL and waits until the process is gone.
func (g *gateway) kill() {
	if p := g.running(); p != nil {
		p.kill()
	}
	g.serve("")
}

// crashes reports whether the program is set to crash at a fail point.
func (g *gateway) crashes() bool {
	return slices.ContainsFunc(g.env, func(v string) bool {
		return strings.HasPrefix(v, "POSTERN_FAILPOINT=") && strings.Contains(v, "=crash")
	})
}

// boot starts the program and waits until it serves.
func (w *world) boot() {
	w.t.Helper()
	w.bootNode(w.gateway)
}

func (w *world) bootNode(g *gateway) {
	w.t.Helper()
	began := time.Now()
	ready, err := g.start()
	if err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-ready:
		w.boots = append(w.boots, time.Since(began))
	case <-g.running().ended:
		if g.crashes() {
			return // before it served: meet checks whether it reached its fail point
		}
		w.t.Fatalf("the gateway did not start: %v; see %s", g.running().err, g.log.Name())
	case <-time.After(patience(w.t)):
		w.t.Fatalf("the gateway did not serve; see %s", g.log.Name())
	}
}

// vendor is the simulated vendor as a program.
type vendor struct {
	proc    *process
	flags   []string // for the gateway
	control string
}

func startVendor(t *testing.T, bin, dir string) *vendor {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--state", dir,
		"--shown", "1000000") // a vote is judged that a device sends hours after the poll
	cmd.Stdout, cmd.Stderr = in, os.Stderr
	p, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { p.kill(); out.Close() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	go io.Copy(io.Discard, lines) //nolint:errcheck // until the program ends: it must never wait for a full pipe
	var ready struct{ URL, RootKey, CA, Control string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("vendorsim did not start: %v", err)
	}
	return &vendor{
		proc: p, control: ready.Control,
		flags: []string{"--network-url", ready.URL, "--network-root-key", ready.RootKey, "--network-ca", ready.CA},
	}
}

// control makes requests to the vendor. It does not use http.DefaultTransport because the end
// of each httptest.Server closes the idle connections of that one, which fails a POST that has
// just taken one of them.
var control = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// ask calls the control interface.
func (v *vendor) ask(method, path string, in, out any) error {
	return caller{control, nil}.call(method, v.control+path, in, out)
}

// caller makes requests that must be answered with 2xx.
type caller struct {
	http   *http.Client
	header http.Header
}

func (c caller) call(method, url string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if in == nil {
		text = nil
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if c.header != nil {
		req.Header = c.header.Clone()
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, url, res.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}
