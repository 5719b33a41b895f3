package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"postern/internal/app"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// with runs a command on the running server, or else on the data directory.
func (d data) with(ctx context.Context, do func(*app.Commands) error) error {
	c, err := app.OpenCommands(ctx, d.Data)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// withNew is like with, but creates the database if there is none.
func (d data) withNew(ctx context.Context, do func(*app.Commands) error) error {
	c, err := app.OpenOrCreate(ctx, d.Data)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// place names the database, without its secrets.
func (d data) place() string {
	if d.DatabaseURL != "" {
		return "the database of POSTERN_DATABASE_URL"
	}
	return "the data directory " + d.Dir
}

// print prints v as JSON for programs, or else the formatted line for people.
func (d data) print(std streams, v any, format string, args ...any) error {
	if d.JSON {
		return json.NewEncoder(std.out).Encode(v)
	}
	_, err := fmt.Fprintf(std.out, format+"\n", args...)
	return err
}

// table prints a list as JSON for programs, or else in columns for people.
func table[T any](d data, std streams, list []T, header string, row func(T) string) error {
	if d.JSON {
		if list == nil {
			list = []T{}
		}
		return json.NewEncoder(std.out).Encode(map[string]any{"data": list})
	}
	w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, header)
	for _, v := range list {
		fmt.Fprintln(w, row(v))
	}
	return w.Flush()
}

type workspaceCmd struct {
	Create  workspaceCreateCmd  `cmd:"" help:"Create a workspace."`
	List    workspaceListCmd    `cmd:"" help:"List all workspaces."`
	SetPlan workspaceSetPlanCmd `cmd:"" help:"Change the plan of a workspace."`
	Set     workspaceSetCmd     `cmd:"" help:"Override the limits of the plan or the server for a workspace."`
}

type workspaceCreateCmd struct {
	data

	Name string `required:"" help:"Name of the workspace."`
	Plan string `enum:"free,starter,growth,pro,enterprise" default:"starter" help:"Plan: free, starter, growth, pro or enterprise (${default})."`
}

// Run creates a workspace.
func (c *workspaceCreateCmd) Run(ctx context.Context, std streams) error {
	return c.withNew(ctx, func(s *app.Commands) error {
		if s.Alone {
			fmt.Fprintf(std.err, "No server is running with %s. The workspace is created in the database there.\n", c.place())
		}
		ws, err := s.CreateWorkspace(ctx, c.Name, c.Plan)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": ws.ID}, "workspace %s (%s)", ws.ID, ws.Plan)
	})
}

type workspaceListCmd struct{ data }

// Run lists workspaces.
func (c *workspaceListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		list, err := s.Workspaces(ctx)
		if err != nil {
			return err
		}
		return table(c.data, std, list, "ID\tNAME\tPLAN\tCREATED", func(w postern.Workspace) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", w.ID, w.Name, w.Plan, w.CreatedAt)
		})
	})
}

type workspaceSetPlanCmd struct {
	data

	Workspace string `arg:"" help:"Id of the workspace."`
	Plan      string `arg:"" enum:"free,starter,growth,pro,enterprise" help:"Plan: free, starter, growth, pro or enterprise."`
}

// Run changes a plan.
func (c *workspaceSetPlanCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if err := s.SetPlan(ctx, c.Workspace, c.Plan); err != nil {
			return err
		}
		return c.print(std, map[string]string{"id": c.Workspace, "plan": c.Plan}, "workspace %s is now on the %s plan",
			c.Workspace, c.Plan)
	})
}

type workspaceSetCmd struct {
	data

	Workspace   string `arg:"" help:"Id of the workspace."`
	Messages    figure `help:"Outbound messages per month, or \"plan\" for the plan's limit."`
	Devices     figure `help:"Linked devices, or \"plan\" for the plan's limit."`
	EventDays   figure `help:"Days to keep events, at most the server's retention; \"plan\" restores the server's value."`
	MessageDays figure `help:"Days to keep messages, at most the server's retention; \"plan\" restores the server's value."`
	StorageMiB  figure `name:"storage-mib" help:"MiB of stored files, or \"plan\" for the plan's limit."`
}

// figure is a limit chosen by the operator: a number, -1 for "plan", or nil if it
// was not given.
type figure struct{ n *int }

// UnmarshalText reads a number or "plan".
func (f *figure) UnmarshalText(b []byte) error {
	n := -1
	if string(b) != "plan" {
		u, err := strconv.ParseUint(string(b), 10, 31)
		if err != nil {
			return errors.New(`must be a number, or "plan"`)
		}
		n = int(u)
	}
	f.n = &n
	return nil
}

// Run changes limits.
func (c *workspaceSetCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		ws, err := s.ChangeLimits(ctx, c.Workspace, postern.Limits{
			Messages: c.Messages.n, Devices: c.Devices.n, EventDays: c.EventDays.n,
			MessageDays: c.MessageDays.n, StorageMiB: c.StorageMiB.n,
		})
		if err != nil {
			return err
		}
		p, _ := ws.Entitlement()
		return c.print(std, ws, "workspace %s (%s) now has a limit of %d messages per month, %d devices and %s of files",
			ws.ID, ws.Plan, p.Messages, p.Devices, postern.BytesWords(p.Caps.Bytes))
	})
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key. It is shown only once."`
	Rotate keyRotateCmd `cmd:"" help:"Create a successor of a key. The old key stays valid for a while."`
	List   keyListCmd   `cmd:"" help:"List the keys of a workspace."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key immediately."`
}

type keyCreateCmd struct {
	data

	Workspace   string        `required:"" help:"Id of the workspace."`
	Name        string        `required:"" help:"Name of the key."`
	Environment string        `default:"production" help:"Label, such as staging (${default})."`
	Scope       []string      `help:"Scope, such as messages:write. Can be repeated; without it, the key has all scopes."`
	Device      []string      `help:"Id of a device to limit the key to. Can be repeated."`
	Expires     time.Duration `help:"Time until the key expires, such as 720h. Without it, the key does not expire."`
}

// Validate checks the flags.
func (c *keyCreateCmd) Validate() error {
	for _, s := range c.Scope {
		if !slices.Contains(postern.Scopes(), postern.Scope(s)) {
			return fmt.Errorf("--scope: there is no scope %q; it is one of %s", s,
				strings.Trim(fmt.Sprint(postern.Scopes()), "[]"))
		}
	}
	return checkExpires(c.Expires)
}

// Run creates a key.
func (c *keyCreateCmd) Run(ctx context.Context, std streams) error {
	in := gateway.NewKey{Name: c.Name, Environment: c.Environment, ExpiresAt: fromNow(c.Expires)}
	for _, s := range c.Scope {
		in.Scopes = append(in.Scopes, postern.Scope(s))
	}
	for _, id := range c.Device {
		in.Devices = append(in.Devices, postern.DeviceID(id))
	}
	return c.with(ctx, func(s *app.Commands) error {
		key, err := s.CreateKey(ctx, c.Workspace, in)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": key.ID, "key": key.Secret},
			"key %s\n%s\nStore it now: it cannot be shown again.", key.ID, key.Secret)
	})
}

func checkExpires(d time.Duration) error {
	if d < 0 {
		return errors.New("--expires must be positive, such as 720h")
	}
	return nil
}

// fromNow returns the time d from now, or 0 if d is 0.
func fromNow(d time.Duration) postern.Time {
	if d == 0 {
		return 0
	}
	return postern.TimeOf(time.Now().Add(d))
}

type keyListCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
}

// Run lists keys.
func (c *keyListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		list, err := s.Keys(ctx, c.Workspace)
		if err != nil {
			return err
		}
		return table(c.data, std, list,
			"ID\tNAME\tENVIRONMENT\tLAST 4\tSCOPES\tDEVICES\tCREATED\tLAST USED\tEXPIRES\tREVOKED",
			func(k postern.Key) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Name, k.Environment, k.LastFour,
					scopesOf(k), devicesOf(k), k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt)
			})
	})
}

func scopesOf(k postern.Key) string {
	if len(k.Scopes) == len(postern.Scopes()) {
		return "all"
	}
	return strings.Trim(fmt.Sprint(k.Scopes), "[]")
}

func devicesOf(k postern.Key) string {
	if k.Devices == nil {
		return "all"
	}
	return strings.Trim(fmt.Sprint(k.Devices), "[]")
}

type keyRotateCmd struct {
	data

	Workspace string        `required:"" help:"Id of the workspace."`
	Overlap   time.Duration `default:"24h" help:"How long the old key stays valid, from 0s to 720h (${default})."`
	Expires   time.Duration `help:"Time until the successor expires, such as 720h. Without it, the successor lasts as long as the old key did."`
	Key       string        `arg:"" help:"Id of the key."`
}

// Validate checks the flags.
func (c *keyRotateCmd) Validate() error {
	if c.Overlap < 0 || c.Overlap > gateway.MaxOverlap {
		return errors.New("--overlap must be from 0s to 720h")
	}
	return checkExpires(c.Expires)
}

// Run rotates a key.
func (c *keyRotateCmd) Run(ctx context.Context, std streams) error {
	in := gateway.Rotation{Overlap: c.Overlap, ExpiresAt: fromNow(c.Expires)}
	return c.with(ctx, func(s *app.Commands) error {
		key, err := s.RotateKey(ctx, c.Workspace, c.Key, in)
		if err != nil {
			return err
		}
		out := map[string]any{
			"id": key.ID, "key": key.Secret, "expiresAt": key.ExpiresAt, "oldExpiresAt": key.OldExpiresAt,
		}
		return c.print(std, out, "key %s%s\n%s\nStore it now: it cannot be shown again. %s expires at %s.",
			key.ID, expiry(key.ExpiresAt), key.Secret, c.Key, key.OldExpiresAt)
	})
}

// expiry says when a key expires; nothing if it does not.
func expiry(at postern.Time) string {
	if at == 0 {
		return ""
	}
	return " (expires at " + at.String() + ")"
}

type keyRevokeCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
	Key       string `arg:"" help:"Id of the key."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if err := s.RevokeKey(ctx, c.Workspace, c.Key); err != nil {
			return err
		}
		return c.print(std, map[string]string{"id": c.Key}, "key %s is revoked", c.Key)
	})
}

type deviceCmd struct {
	Link deviceLinkCmd `cmd:"" help:"Link a device: show QR codes until a phone has scanned one."`
	List deviceListCmd `cmd:"" help:"List the devices of a workspace."`
}

type deviceListCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
}

// Run lists devices.
func (c *deviceListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		list, err := s.Devices(ctx, c.Workspace)
		if err != nil {
			return err
		}
		return table(c.data, std, list, "ID\tNAME\tSTATUS\tREASON\tNUMBER\tCONNECTED", func(d postern.Device) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", d.ID, d.Name, d.Status, d.StatusReason, d.PhoneNumber,
				d.ConnectedAt)
		})
	})
}

type webhookCmd struct {
	Add  webhookAddCmd  `cmd:"" help:"Register a webhook endpoint and print its secret."`
	List webhookListCmd `cmd:"" help:"List the webhook endpoints of a workspace."`
}

type webhookAddCmd struct {
	data

	Workspace string   `required:"" help:"Id of the workspace."`
	URL       string   `required:"" help:"URL to which events are posted."`
	Event     []string `help:"Event type, or a pattern such as message.*. Can be repeated; without it, all events."`
	Handshake string   `enum:"echo,signed" default:"echo" help:"What the response to the challenge must contain: the challenge (echo), or also its signature (signed)."`
}

// Validate checks the flags.
func (c *webhookAddCmd) Validate() error {
	for _, pattern := range c.Event {
		if !postern.ValidEventPattern(pattern) {
			return fmt.Errorf("--event: there is no event %q; give *, a family such as message.*, or a type such as %s",
				pattern, postern.MessageReceived)
		}
	}
	return nil
}

// Run registers an endpoint.
func (c *webhookAddCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		e, err := s.AddWebhook(ctx, c.Workspace, gateway.NewEndpoint{
			URL: c.URL, Events: c.Event, Handshake: c.Handshake,
		})
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": e.ID, "secret": e.Secret},
			"webhook %s (%s until it answers the challenge)\n%s\nStore the secret now: this command does not show it again.",
			e.ID, e.Status, e.Secret)
	})
}

type webhookListCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
}

// Run lists endpoints.
func (c *webhookListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		list, err := s.Webhooks(ctx, c.Workspace)
		if err != nil {
			return err
		}
		return table(c.data, std, list, "ID\tURL\tSTATUS\tREASON\tEVENTS", func(e postern.Endpoint) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%v", e.ID, e.URL, e.Status, e.StatusReason, e.Events)
		})
	})
}
