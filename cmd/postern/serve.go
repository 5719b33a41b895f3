package main

import (
	"context"
	"fmt"

	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/obs"
)

type serveCmd struct{ config.Server }

// Run serves until it is told to stop.
func (c *serveCmd) Run(ctx context.Context, std streams) error {
	log := obs.NewLogger(std.err, c.Level())
	a, err := app.New(ctx, c.Server, app.Options{Log: log, Version: version})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

type migrateCmd struct{ config.Data }

// Run migrates.
func (c *migrateCmd) Run(ctx context.Context, std streams) error {
	v, err := app.Migrate(ctx, c.Data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "the database is at version %d\n", v)
	return err
}
