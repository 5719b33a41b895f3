package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"postern/internal/app"
)

type secretKeyCmd struct {
	Rotate secretKeyRotateCmd `cmd:"" help:"Put a new key in the key file. The server encrypts with it, and all values again."`
	List   secretKeyListCmd   `cmd:"" help:"List the secret keys, and what they are needed for."`
	Prune  secretKeyPruneCmd  `cmd:"" help:"Remove the keys from the key file that no value needs any more."`
}

type secretKeyRotateCmd struct{ data }

// Run adds a key.
func (c *secretKeyRotateCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		id, keys, err := s.RotateSecretKey(ctx)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": id, "file": keys.File}, rotatedText, id, keys.File)
	})
}

const rotatedText = `The new secret key is %s, in the first line of %s.

- Keep a copy of the file in another place, now.
- If several servers share the database, copy the file to all of them. They take it up within seconds, without a
  restart, and encrypt with the new key once all of them know it.
- "postern secret-key list" shows when the key before it is retired. Then "postern secret-key prune" removes it.`

type secretKeyListCmd struct{ data }

// Run lists the keys.
func (c *secretKeyListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		keys, err := s.SecretKeys(ctx)
		if err != nil {
			return err
		}
		return table(c.data, std, keys.Keys, "ID\tSTATE\tIN FILE\tSINCE\tENCRYPTED AGAIN\tNOT KNOWN BY", func(k app.SecretKey) string {
			since := ""
			if k.Since != 0 {
				since = k.Since.String()
			}
			return fmt.Sprintf("%s\t%s\t%t\t%s\t%d\t%s", k.ID, k.State, k.InFile, since, k.Resealed, strings.Join(k.Lacking, ", "))
		})
	})
}

type secretKeyPruneCmd struct {
	data

	AllowLost bool `help:"Remove replaced keys although there are values that no key opens."`
}

// Run removes keys.
func (c *secretKeyPruneCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		file, ids, err := s.PruneSecretKeys(ctx, c.AllowLost)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return errors.New("there is nothing to remove: all keys in the key file are needed, or not in use yet")
		}
		return c.print(std, map[string]any{"removed": ids, "file": file}, "Removed from %s: %v. Keep a copy of these keys for "+
			"as long as you keep backups that need them.", file, ids)
	})
}
