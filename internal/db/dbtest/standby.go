package dbtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Standby starts a server that follows this one. If it is synchronous, each commit of this one waits from now
// on until it is on the disk of both.
func (c *Cluster) Standby(tb testing.TB, synchronous bool) *Cluster {
	tb.Helper()
	s, err := c.follower()
	if err == nil {
		tb.Cleanup(s.remove)
		err = c.awaitFollower()
	}
	if err == nil && synchronous {
		err = errors.Join(c.exec(`ALTER SYSTEM SET synchronous_standby_names = '*'`), c.exec(`SELECT pg_reload_conf()`),
			c.awaitFollower("sync"))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func (c *Cluster) follower() (s *Cluster, err error) {
	dir, err := os.MkdirTemp("", "postern-pg")
	if err != nil {
		return nil, err
	}
	s = &Cluster{bin: c.bin, dir: dir, fsync: c.fsync}
	err = errors.Join(s.leaveRoot())
	if err == nil {
		err = s.run("pg_basebackup", "-D", s.data(), "-h", c.dir, "-U", "postgres", "-X", "stream", "-c", "fast", "-R", "--no-sync")
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		s.remove()
	}
	return s, err
}

// awaitFollower waits until a standby follows, in one of some states if there are any.
func (c *Cluster) awaitFollower(states ...string) error {
	query := `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`
	if len(states) > 0 {
		query += ` AND sync_state IN ('` + strings.Join(states, `', '`) + `')`
	}
	for end := time.Now().Add(startLimit); ; {
		var n int
		if err := c.admin.QueryRow(query).Scan(&n); err != nil || n > 0 { //nolint:noctx // it ends with the tests
			return err
		}
		if time.Now().After(end) {
			return errors.New("the standby does not follow")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Promote makes a standby accept writes.
func (c *Cluster) Promote(tb testing.TB) {
	tb.Helper()
	if err := c.run("pg_ctl", "promote", "-w", "-D", c.data()); err != nil {
		tb.Fatal(err)
	}
}

// Kill kills all processes of the server with SIGKILL, as when its machine is lost. It cannot be started
// again.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	_ = c.admin.Close() // nothing is left to do with it
	memory := c.sharedMemory()
	c.signal(tb, syscall.SIGSTOP, syscall.SIGKILL)
	<-c.ended
	if memory != "" {
		_ = exec.Command("ipcrm", "-m", memory).Run() //nolint:gosec,noctx // a few bytes stay behind otherwise
	}
}

// Hold stops all processes of the server, as a machine does that has too much to do, until release is called. It
// works on Linux only.
func (c *Cluster) Hold(tb testing.TB) (release func()) {
	tb.Helper()
	c.signal(tb, syscall.SIGSTOP, syscall.SIGSTOP)
	return func() { c.signal(tb, syscall.SIGSTOP, syscall.SIGCONT) }
}

// signal sends a signal to the main process, so that it starts no other, and then another one to all.
func (c *Cluster) signal(tb testing.TB, first, then syscall.Signal) {
	tb.Helper()
	pid := c.proc.Process.Pid
	if err := syscall.Kill(pid, first); err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		tb.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			_ = syscall.Kill(child, then) // it may have ended
		}
	}
	if err := syscall.Kill(pid, then); err != nil {
		tb.Fatal(err)
	}
}

// sharedMemory returns the id of the server's segment, which outlives it.
func (c *Cluster) sharedMemory() string {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if lines := strings.Split(string(text), "\n"); err == nil && len(lines) > 6 {
		if words := strings.Fields(lines[6]); len(words) == 2 {
			return words[1]
		}
	}
	return ""
}

// Same returns the URL in this cluster of the database that has a URL in another one.
func (c *Cluster) Same(tb testing.TB, other string) string {
	tb.Helper()
	at, err := url.Parse(other)
	if err != nil {
		tb.Fatal(err)
	}
	return c.url(strings.TrimPrefix(at.Path, "/"))
}
