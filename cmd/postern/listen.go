package main

import (
	"context"

	"postern/internal/listen"
	"postern/internal/seal"
)

type listenCmd struct {
	ForwardTo string      `placeholder:"URL" help:"Post each event there as a webhook, such as http://localhost:3000/hook; without it events are only shown."`
	URL       string      `env:"POSTERN_URL" default:"http://127.0.0.1:8080" help:"Where the API is reached (${default})."`
	Key       seal.Secret `env:"POSTERN_KEY" placeholder:"pst_…" help:"API key with the scope events:read; better as a variable, which is not kept in the shell's history."`
	Secret    seal.Secret `env:"POSTERN_LISTEN_SECRET" placeholder:"whsec_…" help:"Sign with this secret; without it one is made and shown at the start."`
	Type      []string    `placeholder:"TYPE" help:"Only these kinds of events: names and families such as message.*."`
	Device    string      `placeholder:"dev_…" help:"Only events of this device."`
	After     string      `placeholder:"evt_…" help:"Begin behind this event instead of now; \"start\" begins with the oldest that the server keeps."`
	ShowText  bool        `help:"Show also what messages say: the beginning in a line, the whole event with --json."`
	JSON      bool        `help:"Print an object a line, for programs; what else there is to say goes to standard error."`
}

// Help says what the flags do not.
func (*listenCmd) Help() string {
	return `Events come over the API, so the server can be anywhere and needs no way to this machine. Each one is posted with the body, the headers and the time-out (15 s) of a webhook, one after another, in the order of the log.

An event that the receiver does not take (it cannot be reached, or answers other than 2xx) is shown as such and not posted again: while you work on the receiver, old events in between would only confuse. At the end you are told the --after that brings them again. A registered webhook endpoint gets each event at least once, with retries over 72 hours.

A cut connection is made anew and goes on behind the last event that was dealt with. No handshake (webhook.verification) is sent; deduplicate on eventId as always.`
}

// Validate checks what the form of single flags does not show.
func (c *listenCmd) Validate() error { return c.options().Validate() }

// Run streams events until it is told to stop.
func (c *listenCmd) Run(ctx context.Context, std streams) error {
	o := c.options()
	o.Out, o.Err = std.out, std.err
	return listen.Run(ctx, o)
}

func (c *listenCmd) options() listen.Options {
	return listen.Options{
		URL: c.URL, Key: c.Key, After: c.After, Types: c.Type, Device: c.Device, ForwardTo: c.ForwardTo, Secret: c.Secret,
		JSON: c.JSON, ShowText: c.ShowText, Version: version,
	}
}
