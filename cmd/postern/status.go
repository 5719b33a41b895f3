package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"postern/internal/app"
	"postern/internal/health"
)

type statusCmd struct{ data }

// Run shows what /readyz responds. It fails if the server is not ready.
func (c statusCmd) Run(ctx context.Context, std streams) error {
	s, err := app.ServerStatus(ctx, c.Data)
	if err != nil {
		return err
	}
	if c.JSON {
		err = c.print(std, s, "")
	} else {
		err = printStatus(std.out, s)
	}
	if err == nil && s.Status != health.Ready {
		err = errors.New("the server is not ready")
	}
	return err
}

func printStatus(out io.Writer, s app.Status) error {
	word := "ready"
	if s.Status != health.Ready {
		word = "not ready"
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "server\t%s\nversion\t%s\nurl\t%s\noperations\t%s\nnetwork\t%s\nprocess\t%d\n", word, s.Version, s.URL, s.OpsURL, s.Network,
		s.Process)
	for _, k := range s.SecretKeys {
		fmt.Fprintf(w, "secret key\t%s\n", describeSecretKey(k))
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "problem\t%s: %s\n", p.Reason, p.Detail)
	}
	for _, p := range s.Warnings {
		fmt.Fprintf(w, "warning\t%s: %s\n", p.Reason, p.Detail)
	}
	return w.Flush()
}

// describeSecretKey says what a key is needed for, and how far a rotation is.
func describeSecretKey(k app.SecretKey) string {
	text := fmt.Sprintf("%s (%s)", k.ID, k.State)
	if k.Resealed > 0 {
		text += fmt.Sprintf(", %d values were encrypted again with it", k.Resealed)
	}
	if len(k.Lacking) > 0 {
		text += ", not known by " + strings.Join(k.Lacking, ", ")
	}
	return text
}
