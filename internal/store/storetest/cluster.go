// Package storetest gives tests PostgreSQL servers of their own: private
// clusters from the programs of Debian's package postgresql, reached over a
// socket in a temporary directory. A cluster that the machine runs is never
// touched.
package storetest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 30 * time.Second
	owner      = "postern" // of the databases; no superuser, as in production
)

// Cluster is a PostgreSQL server.
type Cluster struct {
	bin, dir  string
	fsync     string
	as        *syscall.SysProcAttr
	databases atomic.Int32

	proc  *exec.Cmd
	ended chan struct{} // closed when proc has
}

// shared is the cluster of a test binary.
//
//nolint:gochecknoglobals // starting one takes a second: all tests of a binary use it
var shared struct {
	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// URL makes an empty database in the cluster of this test binary, which starts
// with the first call. The binary's TestMain runs a Binary.
func URL(tb testing.TB) string {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = create("off")
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster.URL(tb)
}

// Stop stops the cluster of this test binary, if it was started.
func Stop() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil {
		shared.cluster.remove()
		shared.cluster = nil
	}
}

// Binary runs the tests of a binary that uses URL, and then Stop.
type Binary struct{ M *testing.M }

// Run gives the exit status.
func (b Binary) Run() int {
	defer Stop()
	return b.M.Run()
}

// New starts a cluster for one test, which may stop and start it.
func New(tb testing.TB) *Cluster {
	tb.Helper()
	return own(tb, "off")
}

// NewDurable starts a cluster that waits for the disk at every commit, for what
// is measured.
func NewDurable(tb testing.TB) *Cluster {
	tb.Helper()
	return own(tb, "on")
}

func own(tb testing.TB, fsync string) *Cluster {
	tb.Helper()
	c, err := create(fsync)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.remove)
	return c
}

func create(fsync string) (c *Cluster, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "postern-pg") // short enough for a socket
	if err != nil {
		return nil, err
	}
	c = &Cluster{bin: bin, dir: dir, fsync: fsync}
	if err := errors.Join(c.leaveRoot(), c.run("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "--no-sync", "--no-instructions")); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := errors.Join(c.start(), c.run("createuser", "-h", c.dir, "-U", "postgres", owner)); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// programs finds the newest PostgreSQL that is installed.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	best, newest := "", -1
	for _, path := range found {
		dir := filepath.Dir(path)
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && v > newest {
			best, newest = dir, v
		}
	}
	if newest < 15 {
		return "", errors.New("these tests need PostgreSQL 15 or later: install Debian's package postgresql, or run make deps as root, which does")
	}
	return best, nil
}

// leaveRoot makes the server run as another user, which PostgreSQL insists on.
func (c *Cluster) leaveRoot() error {
	c.as = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	c.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return errors.Join(err1, err2, os.Chown(c.dir, int(uid), int(gid)))
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// run runs one of PostgreSQL's programs to its end.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...) //nolint:gosec,noctx // our own choice; it ends by itself
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.as.Credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// start starts the server. It dies with this process: the goroutine keeps its
// thread, because the kernel looks at the thread that started the child.
func (c *Cluster) start() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.proc = exec.Command(filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", //nolint:gosec,noctx // it lives as long as the tests
		"-c", "fsync="+c.fsync, "-c", "full_page_writes="+c.fsync, "-c", "shared_buffers=64MB", "-c", "max_connections=200")
	c.proc.Dir, c.proc.SysProcAttr, c.proc.Stdout, c.proc.Stderr = c.dir, c.as, log, log
	c.ended = make(chan struct{})
	started := make(chan error)
	go func(proc *exec.Cmd, ended chan struct{}) {
		runtime.LockOSThread()
		err := proc.Start()
		started <- err
		if err == nil {
			_ = proc.Wait() // how it ends is in its log
		}
		close(ended)
	}(c.proc, c.ended)
	if err := <-started; err != nil {
		return err
	}
	return c.await()
}

func (c *Cluster) await() error {
	for end := time.Now().Add(startLimit); ; {
		err := c.run("pg_isready", "-q", "-h", c.dir)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			err = errors.New("it ended")
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(end) {
				continue
			}
		}
		log, _ := os.ReadFile(filepath.Join(c.dir, "log")) // shown if there is one
		return fmt.Errorf("PostgreSQL did not start: %w: %s", err, log)
	}
}

// Start starts the server again after Crash.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	if err := c.start(); err != nil {
		tb.Fatal(err)
	}
}

// Crash stops the server at once, as pg_ctl stop -m immediate does: what was
// not committed is lost, and what was is recovered at the next start.
func (c *Cluster) Crash() {
	_ = c.proc.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-c.ended
}

func (c *Cluster) remove() {
	if c.proc != nil && c.ended != nil {
		c.Crash()
	}
	_ = os.RemoveAll(c.dir)
}

// URL makes an empty database and says where it is.
func (c *Cluster) URL(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", c.databases.Add(1))
	if err := c.run("createdb", "-h", c.dir, "-U", "postgres", "-O", owner, "-T", "template0", name); err != nil {
		tb.Fatal(err)
	}
	q := url.Values{"host": {c.dir}, "sslmode": {"disable"}}
	return "postgres://" + owner + "@/" + name + "?" + q.Encode()
}
