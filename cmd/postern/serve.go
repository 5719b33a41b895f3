package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/obs"
)

type serveCmd struct{ config.Server }

// Run serves until ctx is done.
func (c *serveCmd) Run(ctx context.Context, std streams) error {
	signal.Ignore(syscall.SIGHUP) // a terminal that is closed does not end the server
	log := c.logger(std.err)
	a, err := app.New(ctx, c.Server, app.Options{Log: log, Version: version})
	if err != nil {
		return err
	}
	if err := invite(ctx, a, std.out); err != nil {
		return errors.Join(err, a.Close())
	}
	return a.Run(ctx)
}

// logger returns the log in the format of the settings.
func (c *serveCmd) logger(out io.Writer) *slog.Logger {
	if c.LogFormat == "text" {
		return obs.NewTextLogger(out, c.Level())
	}
	return obs.NewLogger(out, c.Level())
}

// invite prints the link that creates the first user. If there already is a user, it
// prints nothing.
func invite(ctx context.Context, a *app.App, out io.Writer) error {
	url, err := a.SetUpURL(ctx)
	if err != nil || url == "" {
		return err
	}
	_, err = fmt.Fprintf(out,
		"There are no users yet. Open this URL to create the first user, who owns the first workspace. It works once.\n\n"+
			"    %s\n\n",
		url)
	return err
}
