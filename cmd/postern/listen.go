package main

import (
	"context"

	"postern/internal/listen"
	"postern/internal/seal"
)

type listenCmd struct {
	ForwardTo string      `placeholder:"URL" help:"Post each event to this URL as a webhook, such as http://localhost:3000/hook. Without it, events are only printed."`
	URL       string      `env:"POSTERN_URL" default:"http://127.0.0.1:8080" help:"Address of the API (${default})."`
	Key       seal.Secret `env:"POSTERN_KEY" placeholder:"pst_…" help:"API key with the scope events:read. Prefer the environment variable, which does not end up in the shell's history."`
	Secret    seal.Secret `env:"POSTERN_LISTEN_SECRET" placeholder:"whsec_…" help:"Secret that signs the requests. Without it, one is generated and printed."`
	Type      []string    `placeholder:"TYPE" help:"Only these event types: names, and patterns such as message.*."`
	Device    string      `placeholder:"dev_…" help:"Only events of this device."`
	After     string      `placeholder:"evt_…" help:"Begin after this event instead of with new events; \"start\" begins with the oldest event on the server."`
	ShowText  bool        `help:"Print the text of messages too: its beginning, or the whole event with --json."`
	JSON      bool        `help:"Print one JSON object per line. Everything else goes to standard error."`
}

// Help is the text above the flags.
func (*listenCmd) Help() string {
	return "Events arrive over the API, so the server does not need to reach this machine. " +
		"They are posted one after another, in the order in which they were recorded, with the body, the headers and " +
		"the timeout (15 s) of a webhook.\n\n" +
		"An event that the receiver does not accept (it cannot be reached, or responds with a status other than 2xx) is " +
		"reported and not posted again, so that old events do not get in your way while you work on the receiver. " +
		"When you stop the command, it prints the --after value that repeats them. " +
		"A registered webhook endpoint receives each event at least once, with retries over 72 hours.\n\n" +
		"If the connection is lost, the command reconnects and resumes after the last event it handled. " +
		"It sends no challenge (webhook.verification). Deduplicate on eventId as usual."
}

// Validate checks the flags together.
func (c *listenCmd) Validate() error { return c.options().Validate() }

// Run streams events until ctx is done.
func (c *listenCmd) Run(ctx context.Context, std streams) error {
	o := c.options()
	o.Out, o.Err = std.out, std.err
	return listen.Run(ctx, o)
}

func (c *listenCmd) options() listen.Options {
	return listen.Options{
		URL: c.URL, Key: c.Key, After: c.After, Types: c.Type, Device: c.Device, ForwardTo: c.ForwardTo,
		Secret: c.Secret,
		JSON:   c.JSON, ShowText: c.ShowText, Version: version,
	}
}
