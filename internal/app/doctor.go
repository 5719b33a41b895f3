package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"postern/internal/backup"
	"postern/internal/config"
	"postern/internal/doctor"
	"postern/internal/media/blob"
	"postern/internal/network/whatsapp"
	"postern/internal/seal"
	"postern/internal/store/transfer"
)

// Wants is what a server is to be examined for.
type Wants struct {
	Devices int    // that it should hold
	Key     string // an API key, with which streams are tried; "" tries none
}

// Examine looks for what would keep a server with these settings from working well.
func Examine(ctx context.Context, cfg config.Server, w Wants) []doctor.Finding {
	beside := cfg.DatabaseURL == "" && cfg.KeyFile() == filepath.Join(cfg.Dir, "secret.key")
	return doctor.Examine(ctx, []doctor.Check{
		{Name: "settings", Run: func(context.Context) doctor.Finding { return examineSettings(cfg) }},
		doctor.Disk(cfg.Dir),
		doctor.Memory(w.Devices),
		doctor.Files(w.Devices),
		doctor.Clock(),
		doctor.Key(cfg.KeyFile(), beside, func(ctx context.Context) error { return examineKeys(ctx, cfg.Data) }),
		{Name: "database", Run: func(ctx context.Context) doctor.Finding { return examineDatabase(ctx, cfg.Data) }},
		{Name: "media-storage", Run: func(ctx context.Context) doctor.Finding { return examineMedia(ctx, cfg) }},
		vendorCheck(cfg),
		mailCheck(cfg),
		signOnCheck(cfg),
		publicCheck(ctx, cfg, w.Key),
	})
}

func examineSettings(cfg config.Server) doctor.Finding {
	if err := errors.Join(cfg.Validate(), cfg.CheckFiles()); err != nil {
		return doctor.Fail(err.Error(), "Change the setting; \"postern config\" shows where each value comes from.")
	}
	return doctor.Finding{Grade: doctor.OK, Detail: "They are valid."}
}

// examineKeys looks whether the key file has all keys that the database needs. A database that cannot be read is
// reported by another check.
func examineKeys(ctx context.Context, cfg config.Data) error {
	if transfer.Exists(ctx, placeOf(cfg)) != nil {
		return nil
	}
	needed, err := transfer.SecretKeys(ctx, placeOf(cfg))
	if err != nil || len(needed) == 0 {
		return nil //nolint:nilerr // reported by the check of the database
	}
	k := &secretKeys{path: cfg.KeyFile()}
	if k.file, err = seal.LoadKeys(k.path); err != nil {
		return err
	}
	ids := make([]seal.KeyID, len(needed))
	for i, id := range needed {
		ids[i] = seal.KeyID(id)
	}
	return k.refuse(ids)
}

// examineDatabase looks whether there is a database. An embedded one is created by the server.
func examineDatabase(ctx context.Context, cfg config.Data) doctor.Finding {
	err := transfer.Exists(ctx, placeOf(cfg))
	switch {
	case err == nil:
		return doctor.Finding{Grade: doctor.OK, Detail: "It can be read."}
	case strings.Contains(err.Error(), "there is no Postern database"):
		return doctor.Skip("It is empty. The server creates its tables when it starts.")
	}
	return doctor.Fail(err.Error(), "Check POSTERN_DATABASE_URL, and that PostgreSQL runs and lets this user in.")
}

// examineMedia creates no storage.
func examineMedia(ctx context.Context, cfg config.Server) doctor.Finding {
	found := doctor.Finding{
		Grade: doctor.Warning, Detail: "None is set, so files can neither be sent nor received.",
		Remedy: "Set POSTERN_MEDIA_URL to storage that all servers of the database can reach.",
	}
	err := withMedia(cfg.Data, cfg.MediaURL, blob.ParseExisting, func(open backup.Opener) error {
		if open == nil {
			return nil
		}
		blobs, err := open()
		if err == nil {
			err = blobs.Check(ctx)
		}
		found = doctor.Finding{Grade: doctor.OK, Detail: "Files can be stored."}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doctor.Skip("The server creates the directory for files when it starts.")
	case err != nil:
		return doctor.Fail(err.Error(), "Check POSTERN_MEDIA_URL and the storage.")
	}
	return found
}

func vendorCheck(cfg config.Server) doctor.Check {
	const name = "network"
	skip := func(why string) doctor.Check {
		return doctor.Check{Name: name, Run: func(context.Context) doctor.Finding { return doctor.Skip(why) }}
	}
	if cfg.Sandbox {
		return skip("The sandbox simulates it.")
	}
	address, err := url.Parse(whatsapp.Network{URL: cfg.NetworkURL}.Address())
	if err != nil {
		return skip(err.Error())
	}
	pool, err := cfg.CA()
	if err != nil {
		return skip(err.Error())
	}
	return doctor.Reach(name, "The messaging network", address, &tls.Config{RootCAs: pool,
		MinVersion: tls.VersionTLS12})
}

func mailCheck(cfg config.Server) doctor.Check {
	if address, err := url.Parse(cfg.SMTPURL.Reveal()); err == nil && cfg.SMTPURL != "" {
		return doctor.Reach("mail", "The mail server", address, nil)
	}
	return doctor.Check{Name: "mail", Run: func(context.Context) doctor.Finding {
		return doctor.Skip("POSTERN_SMTP_URL is not set: links for invitations and passwords are passed on by hand.")
	}}
}

func signOnCheck(cfg config.Server) doctor.Check {
	if cfg.SignOn.On() {
		return doctor.Page("single-sign-on", "The OpenID Connect provider",
			strings.TrimSuffix(cfg.SignOn.Issuer, "/")+"/.well-known/openid-configuration")
	}
	return doctor.Check{Name: "single-sign-on", Run: func(context.Context) doctor.Finding {
		return doctor.Skip("POSTERN_OIDC_ISSUER is not set.")
	}}
}

func publicCheck(ctx context.Context, cfg config.Server, key string) doctor.Check {
	base := strings.TrimSuffix(cfg.BaseURL, "/")
	if base == "" {
		if !isServed(ctx, cfg.Data) {
			return doctor.Check{Name: "public-address", Run: func(context.Context) doctor.Finding {
				return doctor.Skip("No server is running, and POSTERN_BASE_URL is not set.")
			}}
		}
		base = fmt.Sprintf("%s%s", map[bool]string{true: "https://", false: "http://"}[cfg.TLS()], cfg.Addr)
	}
	return doctor.Public(base, key)
}
