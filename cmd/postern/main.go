// Command postern is the messaging gateway: server, demo and operator's tools
// in one binary.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"postern/internal/api"
	"postern/internal/config"

	"github.com/alecthomas/kong"
)

// version is set at build time.
var version = "0.1.0-dev"

// cli is the command line. Its exit status is 0, 1 (failed) or 2 (usage).
type cli struct {
	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Demo      demoCmd      `cmd:"" help:"Show the whole loop against a simulated phone: link, send, receive, signed webhooks."`
	Workspace workspaceCmd `cmd:"" help:"Workspaces: the tenants."`
	Key       keyCmd       `cmd:"" help:"API keys."`
	User      userCmd      `cmd:"" help:"People who sign in to the dashboard."`
	Device    deviceCmd    `cmd:"" help:"Devices."`
	Webhook   webhookCmd   `cmd:"" help:"Webhook endpoints."`
	Listen    listenCmd    `cmd:"" help:"Stream events to this machine, and post them to a receiver on it as webhooks."`
	Migrate   migrateCmd   `cmd:"" help:"Bring the database up to date and exit."`
	OpenAPI   openAPICmd   `cmd:"" name:"openapi" help:"Print the OpenAPI document of the API."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	ConfigFile kong.ConfigFlag `name:"config-file" env:"POSTERN_CONFIG_FILE" placeholder:"FILE" help:"Settings as JSON, below flags and variables."`
}

// streams is where a command writes.
type streams struct{ out, err io.Writer }

func main() {
	syscall.Umask(0o077) // what we write holds keys and conversations: for its owner only
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
	left := -1 // what help asks for
	parser, err := kong.New(&c, kong.Name("postern"), kong.Description("An open-source messaging gateway: link accounts by QR code, send and receive over REST, learn of everything by signed webhooks."),
		kong.Configuration(kong.JSON), kong.Writers(std.out, std.err), kong.UsageOnError(), kong.Exit(func(code int) { left = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		fmt.Fprintln(std.err, "postern:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(args)
	if left >= 0 {
		return left
	}
	if err != nil {
		fmt.Fprintln(std.err, "postern:", err)
		fmt.Fprintln(std.err, "Run \"postern --help\" to see the commands.")
		return exitUsage
	}
	if err := kctx.Run(); err != nil {
		fmt.Fprintln(std.err, "postern:", err)
		return exitFailed
	}
	return 0
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, "postern", version)
	return err
}

type openAPICmd struct {
	BaseURL string `help:"Where callers reach the server; left out, the document's own address."`
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

// data is where a command finds the server or its data.
type data struct {
	config.Data

	JSON bool `help:"Print JSON, for programs."`
}
