package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"postern/internal/lease"
	"postern/internal/postern"
)

// joinNodes makes this server one of those that share the database, if others may use it.
func (a *App) joinNodes(ctx context.Context) (*lease.Holder, error) {
	if !a.shared {
		return lease.Alone(), nil
	}
	id, err := nodeID(a.cfg.Dir)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := lease.New(a.db, a.log, id, fmt.Sprintf("process %d on %s", os.Getpid(), host))
	return h, h.Join(ctx)
}

// nodeID returns the id of this server, which stays in its data directory: after a crash it
// continues with what it owned, without waiting for its lease to end.
func nodeID(dir string) (string, error) {
	path := filepath.Join(dir, "node.id")
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err == nil && strings.TrimSpace(string(text)) != "" {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := postern.NewNodeID()
	return id, os.WriteFile(path, []byte(id+"\n"), 0o600)
}

// holdLease renews the lease of this server until release is called.
func (a *App) holdLease(ctx context.Context) (release func() error) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.leases.Run(ctx) }()
	return func() error { end(); return <-ended }
}

// handOver lets other servers have the devices of this one, and then ends its sessions. It does not wait for
// the requests in flight, because any server answers requests for any device. done is closed at the end. A
// server that is alone keeps its sessions until the requests are finished.
func (a *App) handOver(ctx context.Context, stopSessions func()) (done <-chan struct{}) {
	over := make(chan struct{})
	if !a.leases.Shared() {
		close(over)
		return over
	}
	go func() {
		defer close(over)
		defer stopSessions()
		if err := a.leases.Leave(ctx); err != nil {
			a.log.WarnContext(ctx, "other servers get some devices of this one only when it has stopped", "error", err)
			return
		}
		a.log.InfoContext(ctx, "other servers can have the devices of this one")
	}()
	return over
}

// leadCheck is how often a server looks whether it does what only one may do.
const leadCheck = time.Second

// whileLeading runs a task of which only one server may run one, while this is that server.
func (a *App) whileLeading(ctx context.Context, task func(context.Context) error) error {
	if !a.leases.Shared() {
		return task(ctx)
	}
	for {
		if postern.Sleep(ctx, leadCheck) != nil {
			return nil //nolint:nilerr // the server stops
		}
		if !a.leases.Leads() {
			continue
		}
		leading, end := context.WithCancel(ctx)
		go func() {
			for a.leases.Leads() && postern.Sleep(leading, leadCheck) == nil {
			}
			end()
		}()
		err := task(leading)
		end()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}
