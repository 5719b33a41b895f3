// Command postern is the messaging gateway: the server, the demo and the operator's
// commands in one binary.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"postern/internal/api"
	"postern/internal/config"
	"postern/internal/postern"

	"github.com/alecthomas/kong"
)

// version is set at build time.
var version = "0.1.0-dev"

// cli is the command line. Its exit status is 0, 1 (failed) or 2 (wrong usage).
type cli struct {
	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Status    statusCmd    `cmd:"" help:"Show whether the server is ready, and if not, why."`
	Demo      demoCmd      `cmd:"" help:"Link a simulated phone, send and receive messages, and verify signed webhooks."`
	Workspace workspaceCmd `cmd:"" help:"Manage workspaces."`
	Key       keyCmd       `cmd:"" help:"Manage API keys."`
	SecretKey secretKeyCmd `cmd:"" help:"Rotate the secret key, with which secrets in the database are encrypted."`
	User      userCmd      `cmd:"" help:"Manage people who sign in to the dashboard."`
	Device    deviceCmd    `cmd:"" help:"Link and list devices."`
	Message   messageCmd   `cmd:"" help:"Send messages."`
	Webhook   webhookCmd   `cmd:"" help:"Manage webhook endpoints."`
	Listen    listenCmd    `cmd:"" help:"Stream events to this machine and forward them to a local webhook receiver."`
	Doctor    doctorCmd    `cmd:"" help:"Look for what would keep a server from working well, and say what to do."`
	Config    configCmd    `cmd:"" help:"Print the settings of the server, and where each one comes from."`
	Migrate   migrateCmd   `cmd:"" help:"Migrate the database to the current version and exit, or move the data to another database."`
	Backup    backupCmd    `cmd:"" help:"Back up the database and the files of messages, also while servers run."`
	Restore   restoreCmd   `cmd:"" help:"Fill an empty data directory or PostgreSQL database from a backup."`
	OpenAPI   openAPICmd   `cmd:"" name:"openapi" help:"Print the OpenAPI document."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	ConfigFile settingsFile `name:"config-file" env:"POSTERN_CONFIG_FILE" placeholder:"FILE" help:"File with settings in TOML or JSON, by the names of their flags. Flags and environment variables take precedence."`
}

// streams are the outputs of a command.
type streams struct{ out, err io.Writer }

func main() {
	syscall.Umask(0o077) // our files contain keys and conversations: only their owner may read them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	discardStandardLog()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})) //nolint:gocritic // stop has nothing left to do
}

// discardStandardLog keeps out of the terminal what libraries write to the standard
// log: net/http quotes there what the hosts of webhooks send unasked.
func discardStandardLog() { log.SetOutput(io.Discard) }

const (
	exitFailed = 1
	exitUsage  = 2
)

func run(ctx context.Context, args []string, std streams) (exit int) {
	var c cli
	left := -1 // the exit status if --help was given
	parser, err := newParser(ctx, &c, std, kong.Exit(func(code int) { left = code }))
	if err != nil {
		fmt.Fprintln(std.err, "postern:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parse(parser, args)
	if left >= 0 {
		return left
	}
	if err != nil {
		fmt.Fprintln(std.err, "postern:", explain(err, args))
		fmt.Fprintln(std.err, "Run \"postern --help\" to list the commands.")
		return exitUsage
	}
	if err := kctx.Run(); err != nil {
		fmt.Fprintln(std.err, "postern:", describe(err))
		return exitFailed
	}
	return 0
}

// describe returns the text of an error. For an error that the API may return too, it adds
// the reason, by which the pages under /problems/ explain it.
func describe(err error) string {
	if e, ok := errors.AsType[*postern.Error](err); ok && e.Reason != "" {
		return fmt.Sprintf("%v (%s)", err, e.Reason)
	}
	return err.Error()
}

func newParser(ctx context.Context, c *cli, std streams, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(more, kong.Name("postern"),
		kong.Description("An open-source messaging gateway: link accounts by QR code, "+
			"send and receive messages over REST, and get signed webhooks."),
		kong.TypeMapper(reflect.TypeFor[config.Switch](), switches{}),
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](), kong.MapperFunc(networks)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(durations)), kong.Writers(std.out, std.err),
		kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))...)
}

// parse reads the settings. An unknown name is an error, wherever it is.
func parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	kctx, err := parser.Parse(args)
	if err != nil || kctx.Command() == "version" {
		return kctx, err
	}
	_, variables := settings(parser.Model.Node)
	return kctx, config.CheckVariables(config.Variables(), variables)
}

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the version.
func (c versionCmd) Run(std streams) error {
	if c.JSON {
		return json.NewEncoder(std.out).Encode(map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(std.out, "postern", version)
	return err
}

type openAPICmd struct {
	BaseURL string `help:"Address of the server in the document. Without it, paths are relative to the document."`
}

// Run prints the document.
func (c openAPICmd) Run(std streams) error {
	doc, err := api.Document(c.BaseURL)
	if err != nil {
		return err
	}
	_, err = std.out.Write(doc)
	return err
}

// data contains the settings by which a command finds the server or its data.
type data struct {
	config.Data

	JSON bool `help:"Print JSON."`
}
