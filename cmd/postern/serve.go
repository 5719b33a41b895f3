package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/obs"

	"github.com/mattn/go-isatty"
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
	if err := invite(ctx, a, std.out, log); err != nil {
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

// invite prints the link that creates the first user, if there is none. Anyone who reads the link can take over the
// server,
// so it is shown in a terminal only: other outputs are collected and kept.
func invite(ctx context.Context, a *app.App, out io.Writer, log *slog.Logger) error {
	needed, err := a.NeedsSetUp(ctx)
	if err != nil || !needed {
		return err
	}
	if !isTerminal(out) {
		log.InfoContext(ctx, "there are no users yet; \"postern user setup-link\" prints the link that creates the "+
			"first one")
		return nil
	}
	url, err := a.SetUpURL(ctx)
	if err != nil || url == "" {
		return err
	}
	_, err = fmt.Fprintf(out,
		"There are no users yet. Open this URL to create the first user, who owns the first workspace. It works "+
			"once.\n"+
			"\"postern user setup-link\" shows a new one.\n\n"+
			"    %s\n\n",
		url)
	return err
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
