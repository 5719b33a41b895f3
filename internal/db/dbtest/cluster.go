// Package dbtest gives tests PostgreSQL servers of their own: private clusters run by
// the programs of Debian's package postgresql, reached over a socket in a temporary
// directory. It never touches a cluster that the machine runs.
package dbtest

import (
	"context"
	"database/sql"
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
	startLimit = 5 * time.Minute // after a crash it replays everything since its last checkpoint
	owner      = "postern"       // owns the databases; not a superuser, as in production
	pristine   = "template0"
)

// Cluster is a PostgreSQL server.
type Cluster struct {
	bin, dir  string
	fsync     string
	as        *syscall.SysProcAttr
	databases atomic.Int32

	proc  *exec.Cmd
	ended chan struct{} // closed when proc has ended
	admin *sql.DB       // one connection of the superuser; nil before the first start
}

// shared is the cluster of a test binary.
//
//nolint:gochecknoglobals // starting a cluster takes a second, so all tests of a binary share one
var shared struct {
	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// URL creates an empty database in the cluster of this test binary and returns its URL. The
// first call starts the cluster. The TestMain of the binary must run a [Binary].
func URL(tb testing.TB) string {
	tb.Helper()
	return sharedURL(tb, pristine)
}

func sharedURL(tb testing.TB, template string) string {
	tb.Helper()
	c, err := sharedCluster()
	if err != nil {
		tb.Fatal(err)
	}
	name, err := c.copyOf(template)
	if err != nil {
		tb.Fatal(err)
	}
	return c.url(name)
}

func sharedCluster() (*Cluster, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = create("off")
	}
	return shared.cluster, shared.err
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

// Run returns the exit status.
func (b Binary) Run() int {
	defer Stop()
	return b.M.Run()
}

// New starts a cluster for one test, which may stop and start it.
func New(tb testing.TB) *Cluster {
	tb.Helper()
	return own(tb, "off")
}

// NewDurable starts a cluster that waits for the disk at every commit, for measurements.
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
	dir, err := os.MkdirTemp("", "postern-pg") // a short path, because that of a socket is limited
	if err != nil {
		return nil, err
	}
	c = &Cluster{bin: bin, dir: dir, fsync: fsync}
	if err := errors.Join(c.leaveRoot(), c.run("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "--no-sync",
		"--no-instructions")); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err = c.start(); err == nil {
		err = c.exec(`CREATE ROLE ` + owner + ` LOGIN`)
	}
	if err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// exec runs a statement as the superuser. Statements run one after the other.
func (c *Cluster) exec(statement string) error {
	_, err := c.admin.ExecContext(context.Background(), statement)
	return err
}

// programs returns the directory of the newest installed PostgreSQL.
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
		return "", errors.New("these tests need PostgreSQL 15 or later: " +
			"install Debian's package postgresql, or run make deps as root, which does")
	}
	return best, nil
}

// leaveRoot makes the server run as another user, because PostgreSQL does not run as root.
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

// run runs one of PostgreSQL's programs and waits until it ends.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...) //nolint:gosec,noctx // our own choice; it ends by itself
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.as.Credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// start starts the server, which ends with this process: the goroutine locks its thread,
// because the kernel sends the signal when the thread that started the child ends.
func (c *Cluster) start() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.proc = exec.Command(filepath.Join(c.bin, "postgres"), //nolint:gosec,noctx // it lives as long as the tests
		"-D", c.data(), "-k", c.dir, "-c", "listen_addresses=",
		"-c", "fsync="+c.fsync, "-c", "full_page_writes="+c.fsync,
		"-c", "shared_buffers=64MB", "-c", "max_connections=200")
	c.proc.Dir, c.proc.SysProcAttr, c.proc.Stdout, c.proc.Stderr = c.dir, c.as, log, log
	c.ended = make(chan struct{})
	started := make(chan error)
	go func(proc *exec.Cmd, ended chan struct{}) {
		runtime.LockOSThread()
		err := proc.Start()
		started <- err
		if err == nil {
			_ = proc.Wait() // the log says how it ended
		}
		close(ended)
	}(c.proc, c.ended)
	if err := <-started; err != nil {
		return err
	}
	if err := c.await(); err != nil {
		return err
	}
	if c.admin, err = sql.Open("pgx", c.urlOf("postgres", "postgres")); err == nil {
		c.admin.SetMaxOpenConns(1)
	}
	return err
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
		log, _ := os.ReadFile(filepath.Join(c.dir, "log")) // empty when there is no log
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

// Crash stops the server at once, as pg_ctl stop -m immediate does: uncommitted changes are
// lost, and committed ones are recovered at the next start.
func (c *Cluster) Crash() {
	if c.admin != nil {
		_ = c.admin.Close() // nothing is left to do with it
	}
	_ = c.proc.Process.Signal(syscall.SIGQUIT) // it may have ended already
	<-c.ended
}

func (c *Cluster) remove() {
	if c.proc != nil && c.ended != nil {
		c.Crash()
	}
	_ = os.RemoveAll(c.dir)
}

// URL creates an empty database and returns its URL.
func (c *Cluster) URL(tb testing.TB) string {
	tb.Helper()
	name, err := c.copyOf(pristine)
	if err != nil {
		tb.Fatal(err)
	}
	return c.url(name)
}

// copyOf creates a database as a copy of another one and returns its name. To copy the files
// takes two thirds of the time that PostgreSQL's own strategy takes, which writes them to its log.
func (c *Cluster) copyOf(template string) (name string, err error) {
	name = fmt.Sprintf("test%d", c.databases.Add(1))
	return name, c.exec(`CREATE DATABASE ` + name + ` OWNER ` + owner + ` TEMPLATE ` + template + ` STRATEGY file_copy`)
}

func (c *Cluster) url(name string) string { return c.urlOf(owner, name) }

func (c *Cluster) urlOf(user, name string) string {
	q := url.Values{"host": {c.dir}, "sslmode": {"disable"}}
	return "postgres://" + user + "@/" + name + "?" + q.Encode()
}
