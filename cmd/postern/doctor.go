package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/doctor"
	"postern/internal/seal"
)

type doctorCmd struct {
	config.Server

	Devices int         `default:"100" help:"How many devices the server should hold (${default})."`
	Key     seal.Secret `env:"POSTERN_KEY" placeholder:"KEY" help:"API key with which a stream is tried at the public address."`
	JSON    bool        `help:"Print JSON."`
}

// Run prints what was found, and fails if something does not work.
func (c *doctorCmd) Run(ctx context.Context, std streams) error {
	list := app.Examine(ctx, c.Server, app.Wants{Devices: c.Devices, Key: c.Key.Reveal()})
	if err := c.print(std, list); err != nil {
		return err
	}
	failed := 0
	for _, f := range list {
		if f.Grade == doctor.Failed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(list))
	}
	return nil
}

func (c *doctorCmd) print(std streams, list []doctor.Finding) error {
	if c.JSON {
		return table(data{JSON: true}, std, list, "", nil)
	}
	return printFindings(std.out, list)
}

func printFindings(out io.Writer, list []doctor.Finding) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Grade, f.Check, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", f.Remedy)
		}
	}
	return w.Flush()
}
