package main

import (
	"context"
	"fmt"

	"postern/internal/app"
)

type migrateCmd struct {
	data

	From string `and:"move" placeholder:"PLACE" help:"Move the data from here: a data directory or a PostgreSQL URL. No server may be running on it. Requires --to."`
	To   string `and:"move" placeholder:"PLACE" help:"Move the data to here: a directory without a database, or the URL of an empty PostgreSQL database."`
}

// Run migrates the database and prints its version, or moves the data to another database.
func (c *migrateCmd) Run(ctx context.Context, std streams) error {
	if c.From != "" {
		return c.move(ctx, std)
	}
	v, err := app.Migrate(ctx, c.Data)
	if err != nil {
		return err
	}
	return c.print(std, map[string]int64{"version": v}, "the database is at version %d", v)
}

func (c *migrateCmd) move(ctx context.Context, std streams) error {
	tables, err := app.Move(ctx, c.From, c.To)
	if err != nil {
		return err
	}
	var rows int64
	for _, t := range tables {
		rows += t.Rows
	}
	err = table(c.data, std, tables, "TABLE\tROWS\tCHECKSUM", func(t app.MovedTable) string {
		return fmt.Sprintf("%s\t%d\t%s", t.Name, t.Rows, t.Sum)
	})
	if err != nil || c.JSON {
		return err
	}
	_, err = fmt.Fprintf(std.out, movedText, rows, len(tables))
	return err
}

const movedText = `
Copied %d rows of %d tables, and compared them. The words of messages are indexed again in the background.

Start the server on the new database with the same secret key (secret.key, or POSTERN_SECRET_KEY_FILE) and
the same media files (media, or POSTERN_MEDIA_URL). Never start a server on the old database again:
two servers with the same linked accounts disconnect each other and lose messages. A database file is
renamed to postern.db.moved for this reason.
`
