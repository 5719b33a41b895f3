package main

import (
	"context"
	"fmt"
	"strings"

	"postern/internal/app"
	"postern/internal/backup"
	"postern/internal/seal"
)

// files says where the files of messages are.
type files struct {
	MediaURL seal.Secret `name:"media-url" env:"POSTERN_MEDIA_URL" placeholder:"URL" help:"Where the files of messages are stored, as for the server."`
}

type backupCmd struct {
	data
	files

	AllowLost bool `help:"Make the backup although files of messages are missing from the storage."`

	Dir string `arg:"" help:"Directory for the backup. It must not exist yet."`
}

// Run makes a backup and says what is in it.
func (c *backupCmd) Run(ctx context.Context, std streams) error {
	m, err := app.Backup(ctx, c.Data, app.BackupOptions{Media: c.MediaURL, Release: version, AllowLost: c.AllowLost}, c.Dir)
	if err != nil {
		return err
	}
	return c.print(std, m, "%s", describeBackup(m)+fmt.Sprintf(backedUpText, c.Dir, secretKeysOf(m)))
}

const backedUpText = `

The backup is in %s, and was read back. The secret key%s is not in it: keep a copy of it elsewhere.
The backup has conversations in the clear, so protect it like the server.`

type restoreCmd struct {
	data
	files

	Dir string `arg:"" help:"Directory of the backup."`
}

// Run restores a backup and says what comes next.
func (c *restoreCmd) Run(ctx context.Context, std streams) error {
	m, err := app.Restore(ctx, c.Data, c.MediaURL, c.Dir)
	if err != nil {
		return err
	}
	return c.print(std, m, "%s", describeBackup(m)+fmt.Sprintf(restoredText, secretKeysOf(m), c.KeyFile()))
}

const restoredText = `

All of it is restored. Before you start the server:
- Put the secret key%s of the server that was backed up in %s.
- Make sure that this server does not run any more: two servers with the same linked accounts disconnect
  each other and lose messages.
`

// secretKeysOf names the secret keys that a backup needs, behind the words "secret key".
func secretKeysOf(m backup.Manifest) string {
	if len(m.SecretKeys) == 0 {
		return ""
	}
	return " " + strings.Join(m.SecretKeys, " and ")
}

// describeBackup says what is in a backup.
func describeBackup(m backup.Manifest) string {
	var rows int64
	for _, t := range m.Tables {
		rows += t.Rows
	}
	text := fmt.Sprintf("State of %s: %d rows of %d tables", m.Moment.Format("2006-01-02 15:04:05 MST"), rows,
		len(m.Tables))
	if !m.Media.Included {
		return text + ". The files of messages are not in it, because POSTERN_MEDIA_URL is not set."
	}
	text += fmt.Sprintf(", %d files with %d bytes.", m.Media.Files, m.Media.Bytes)
	if m.Media.Missing > 0 {
		text += fmt.Sprintf(" %d files were deleted meanwhile.", m.Media.Missing)
	}
	if m.Media.Lost > 0 {
		text += fmt.Sprintf(" %d files are missing from the storage, and from the backup.", m.Media.Lost)
	}
	return text
}
