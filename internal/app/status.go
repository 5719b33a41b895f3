package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"postern/internal/config"
	"postern/internal/health"
	"postern/internal/network/whatsapp"
)

// Status is what "postern status" shows of a running server.
type Status struct {
	health.Report

	Version string `json:"version"`
	URL     string `json:"url"`
	OpsURL  string `json:"opsUrl"`
	Process int    `json:"process"`
	Network string `json:"network"` // the address of the messaging network; "sandbox" if it is simulated

	SecretKeys []SecretKey `json:"secretKeys"`
}

func (a *App) status(*http.Request, none) (any, error) {
	network := "sandbox"
	if a.vendor == nil {
		network = whatsapp.Network{URL: a.cfg.NetworkURL}.Address()
	}
	return Status{a.health.Report(), a.version, a.URL(), a.OpsURL(), os.Getpid(), network,
		a.keys.show().Keys}, nil
}

// ServerStatus asks the server that holds the data directory. Unlike the commands it never opens the
// database itself.
func ServerStatus(ctx context.Context, cfg config.Data) (s Status, err error) {
	c := socketCommands(cfg)
	defer c.client.CloseIdleConnections()
	err = c.call(ctx, http.MethodGet, "/status", nil, &s)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return s, fmt.Errorf("no server is running on the data directory %s; start one with \"postern serve\", or "+
			"name its directory with --data-dir", cfg.Dir)
	}
	return s, err
}
