// Package config defines the settings of a server. Each one comes from a flag, a
// POSTERN_… environment variable or the configuration file, in this order of
// precedence.
package config

import (
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"postern/internal/seal"
)

// Switch is a setting that is on or off.
type Switch bool

// UnmarshalText reads "on" and "off".
func (s *Switch) UnmarshalText(b []byte) error {
	switch strings.ToLower(string(b)) {
	case "on", "true", "1":
		*s = true
	case "off", "false", "0", "":
		*s = false
	default:
		return fmt.Errorf("%q is neither on nor off", b)
	}
	return nil
}

// String returns "on" or "off".
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// Span is a retention: days such as 30d, or a duration such as 720h.
type Span time.Duration

// UnmarshalText reads a span of at least an hour.
func (s *Span) UnmarshalText(b []byte) error {
	bad := fmt.Errorf("%q is not a number of days such as 30d, or a duration such as 720h, of at least 1h", b)
	text := string(b)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(strings.TrimSpace(days), 10, 16)
		if err != nil {
			return bad
		}
		text = strconv.FormatUint(24*n, 10) + "h"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Hour {
		return bad
	}
	*s = Span(d)
	return nil
}

// String formats a span as UnmarshalText reads it.
func (s Span) String() string {
	const day = 24 * time.Hour
	if d := time.Duration(s); d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return time.Duration(s).String()
}

// Data says where the data is. A command that works without a server needs no other
// settings.
type Data struct {
	Dir           string      `name:"data-dir" env:"POSTERN_DATA_DIR" default:"./data" placeholder:"DIR" help:"Directory of the embedded database, the keys and the command socket (${default})."`
	DatabaseURL   seal.Secret `name:"database-url" env:"POSTERN_DATABASE_URL" placeholder:"URL" help:"URL of a PostgreSQL database to use instead of the embedded one, postgres://…. Prefer the environment variable, which other users of the machine cannot see."`
	SecretKeyFile string      `env:"POSTERN_SECRET_KEY_FILE" placeholder:"FILE" help:"File with the keys that encrypt secrets: the base64 of 32 random bytes in each line. The first one encrypts. Created in the data directory at the first start; required with --database-url."`
}

// Validate checks settings that depend on each other.
func (d Data) Validate() error {
	if d.DatabaseURL != "" && d.SecretKeyFile == "" {
		return errors.New("POSTERN_DATABASE_URL requires POSTERN_SECRET_KEY_FILE, because every server that opens " +
			"the database needs the same key; create a key with \"openssl rand -base64 32\", readable only by the server, " +
			"or use the secret.key of the data directory used so far")
	}
	return nil
}

// LoadKeys reads the secret keys. If the file of an embedded database is missing, it
// creates one.
func (d Data) LoadKeys() (seal.Keys, error) {
	if d.DatabaseURL != "" {
		return seal.LoadKeys(d.KeyFile())
	}
	return seal.LoadOrMakeKeys(d.KeyFile())
}

// KeyFile is the path of the secret key.
func (d Data) KeyFile() string {
	if d.SecretKeyFile != "" {
		return d.SecretKeyFile
	}
	return filepath.Join(d.Dir, "secret.key")
}

// SocketPath is the path of the socket on which a running server accepts commands.
func (d Data) SocketPath() string { return filepath.Join(d.Dir, "admin.sock") }

// Server contains all settings of a server.
type Server struct {
	Data

	Addr      string `env:"POSTERN_ADDR" default:"127.0.0.1:8080" help:"Address of the API (${default})."`
	OpsAddr   string `env:"POSTERN_OPS_ADDR" default:"127.0.0.1:9090" help:"Address of /metrics, /healthz, /readyz and pprof (${default})."`
	PublicOps Switch `name:"public-ops" env:"POSTERN_PUBLIC_OPS" default:"off" help:"Allow an operations address that other networks may reach, because a firewall or the network of a container protects it."`
	BaseURL   string `env:"POSTERN_BASE_URL" placeholder:"URL" help:"Public URL of the server; derived from the address if not set."`

	TLSCertFile    string         `name:"tls-cert-file" env:"POSTERN_TLS_CERT_FILE" placeholder:"FILE" help:"TLS certificate with its chain, as PEM. Reloaded when it changes."`
	TLSKeyFile     string         `name:"tls-key-file" env:"POSTERN_TLS_KEY_FILE" placeholder:"FILE" help:"Private key of the TLS certificate, as PEM."`
	TrustedProxies []netip.Prefix `env:"POSTERN_TRUSTED_PROXIES" placeholder:"CIDR" help:"Networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted."`

	ShutdownDelay time.Duration `env:"POSTERN_SHUTDOWN_DELAY" default:"0s" placeholder:"DURATION" help:"How long the server keeps accepting requests after it is told to stop. Meanwhile, /readyz reports that it is stopping. Set it to slightly longer than a load balancer takes to notice (${default}; at most 5m)."`

	InsecureHTTP Switch `name:"insecure-http" env:"POSTERN_INSECURE_HTTP" default:"off" help:"Allow listening on non-loopback addresses without TLS."`

	Sandbox        Switch `env:"POSTERN_SANDBOX" default:"off" help:"Link devices to a simulated vendor instead of the real one."`
	NetworkURL     string `env:"POSTERN_NETWORK_URL" placeholder:"URL" help:"Address of another vendor, wss://…, for tests."`
	NetworkRootKey string `env:"POSTERN_NETWORK_ROOT_KEY" placeholder:"HEX" help:"Root key of that vendor: 32 bytes in hex."`
	NetworkCA      string `name:"network-ca" env:"POSTERN_NETWORK_CA" placeholder:"FILE" help:"TLS certificate authority of that vendor, as PEM."`
	Pace           Pace   `env:"POSTERN_PACE" placeholder:"PACE" help:"How fast a device may send, unless it has its own pace: off, or limits such as \"30/min,5 new chats/min\", which is the default on the real network. Replies are never delayed."`
	ConnectRate    int    `env:"POSTERN_CONNECT_RATE" default:"200" placeholder:"NUMBER" help:"How many devices this server connects to the network per second at most, after a start or an outage (${default}; 0 for no limit)."`
	DeviceName     string `env:"POSTERN_DEVICE_NAME" default:"Postern" help:"Name shown on the phone under linked devices (${default})."`

	AllowPrivateWebhooks Switch         `env:"POSTERN_ALLOW_PRIVATE_WEBHOOKS" default:"off" help:"Allow http and private addresses for webhooks, for development."`
	PrivateNetworks      []netip.Prefix `env:"POSTERN_PRIVATE_NETWORKS" placeholder:"CIDR" help:"Private networks that webhooks may reach."`

	MediaURL seal.Secret `name:"media-url" env:"POSTERN_MEDIA_URL" placeholder:"URL" help:"Where the files of messages are stored: file:///directory, or s3://key:secret@host/bucket for S3-compatible storage. By default they are in the data directory. Prefer the environment variable."`

	SignOn  SignOn      `embed:""`
	SMTPURL seal.Secret `name:"smtp-url" env:"POSTERN_SMTP_URL" placeholder:"URL" help:"Mail server for invitations and forgotten passwords, such as smtp://user:password@mail.example.com:587?from=postern@example.com. Without it, links are shown to be passed on by hand. Prefer the environment variable."`

	AlertURL   seal.Secret   `name:"alert-url" env:"POSTERN_ALERT_URL" placeholder:"URL" help:"Where to POST what is wrong with devices and webhook endpoints, once each, and once more when it is over: an address of yours, or of a chat system that shows the text of a webhook."`
	AlertMail  string        `name:"alert-mail" env:"POSTERN_ALERT_MAIL" placeholder:"ADDRESS" help:"Email address that is told the same. It needs POSTERN_SMTP_URL."`
	AlertAfter time.Duration `name:"alert-after" env:"POSTERN_ALERT_AFTER" default:"5m" placeholder:"DURATION" help:"How long something must be wrong before it is told (${default}; from 1s to 24h)."`

	RetentionMessages Span `env:"POSTERN_RETENTION_MESSAGES" default:"90d" placeholder:"SPAN" help:"How long messages are kept (${default})."`
	RetentionMedia    Span `env:"POSTERN_RETENTION_MEDIA" default:"30d" placeholder:"SPAN" help:"How long the files of received messages are kept, and uploaded ones after their last use (${default})."`
	RetentionEvents   Span `env:"POSTERN_RETENTION_EVENTS" default:"30d" placeholder:"SPAN" help:"How long events are kept (${default})."`
	RetentionAudit    Span `env:"POSTERN_RETENTION_AUDIT" default:"365d" placeholder:"SPAN" help:"How long the audit log of the dashboard is kept (${default})."`

	MetricsWorkspaces Switch `env:"POSTERN_METRICS_WORKSPACES" default:"off" help:"Count messages and events per workspace, too: of the first 1,000 workspaces after a start, with their ids, and of the others together."`

	OTLPEndpoint string `name:"otlp-endpoint" env:"POSTERN_OTLP_ENDPOINT" placeholder:"URL" help:"Base URL of a collector that takes traces as OTLP over HTTP, such as http://127.0.0.1:4318. Without it, nothing is traced. The OTEL_… variables of OpenTelemetry set the rest, such as OTEL_EXPORTER_OTLP_HEADERS and OTEL_TRACES_SAMPLER."`

	LogLevel  string `env:"POSTERN_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Log level: debug, info, warn or error (${default})."`
	LogFormat string `env:"POSTERN_LOG_FORMAT" default:"json" enum:"json,text" help:"Format of the log: json for programs, text for people (${default})."`
}

const maxShutdownDelay = 5 * time.Minute

// Validate checks settings that depend on each other. Its errors say how to fix them.
func (s *Server) Validate() error {
	errs := []error{s.checkForms(), s.Data.Validate(), s.SignOn.Validate(), s.checkAddresses()}
	if (s.TLSCertFile == "") != (s.TLSKeyFile == "") {
		errs = append(errs, errors.New("POSTERN_TLS_CERT_FILE and POSTERN_TLS_KEY_FILE must be set together"))
	}
	if bool(s.Sandbox) && s.NetworkURL != "" {
		errs = append(errs, errors.New("POSTERN_SANDBOX and POSTERN_NETWORK_URL cannot both be set"))
	}
	errs = append(errs, s.checkAlerts())
	if s.ShutdownDelay < 0 || s.ShutdownDelay > maxShutdownDelay {
		errs = append(errs, fmt.Errorf("POSTERN_SHUTDOWN_DELAY must be from 0s to %s, such as 5s", maxShutdownDelay))
	}
	if s.ConnectRate < 0 {
		errs = append(errs, errors.New("POSTERN_CONNECT_RATE must be the connections per second, such as 200, or 0 for no limit"))
	}
	if _, err := s.RootKey(); err != nil {
		errs = append(errs, err)
	}
	if s.NetworkURL != "" && s.NetworkRootKey == "" {
		errs = append(errs, errors.New("POSTERN_NETWORK_URL requires POSTERN_NETWORK_ROOT_KEY"))
	}
	return errors.Join(errs...)
}

// TLS reports whether the server itself speaks TLS.
func (s *Server) TLS() bool { return s.TLSCertFile != "" && s.TLSKeyFile != "" }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// RootKey is the vendor's root key; nil means that of the real vendor.
func (s *Server) RootKey() ([]byte, error) {
	if s.NetworkRootKey == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(s.NetworkRootKey)
	if err != nil || len(key) != 32 {
		return nil, errors.New("POSTERN_NETWORK_ROOT_KEY must be 32 bytes in hex")
	}
	return key, nil
}

// CA is the certificate authority for the vendor's address; nil means the system's.
func (s *Server) CA() (*x509.CertPool, error) {
	if s.NetworkCA == "" {
		return nil, nil //nolint:nilnil // nil means the system's authorities
	}
	pem, err := os.ReadFile(s.NetworkCA)
	if err != nil {
		return nil, fmt.Errorf("read POSTERN_NETWORK_CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("POSTERN_NETWORK_CA does not contain a certificate in PEM format")
	}
	return pool, nil
}

// Level is the log level.
func (s *Server) Level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return l
}
