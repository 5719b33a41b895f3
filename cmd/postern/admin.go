package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"postern/internal/app"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// with runs one command on the running server, or on the data directory.
func (d data) with(ctx context.Context, do func(*app.Commands) error) error {
	c, err := app.OpenCommands(ctx, d.Data)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// print shows one value: v as JSON for programs, or the line for people.
func (d data) print(std streams, v any, format string, args ...any) error {
	if d.JSON {
		return json.NewEncoder(std.out).Encode(v)
	}
	_, err := fmt.Fprintf(std.out, format+"\n", args...)
	return err
}

// table shows a list: as JSON for programs, or in columns for people.
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
	Create  workspaceCreateCmd  `cmd:"" help:"Add a workspace."`
	List    workspaceListCmd    `cmd:"" help:"List all workspaces."`
	SetPlan workspaceSetPlanCmd `cmd:"" help:"Change what a workspace is entitled to."`
	Set     workspaceSetCmd     `cmd:"" help:"Give a workspace figures of its own in place of its plan's and the server's."`
}

type workspaceCreateCmd struct {
	data

	Name string `required:"" help:"Name of the workspace."`
	Plan string `default:"starter" help:"free, starter, growth, pro or enterprise (${default})."`
}

// Run adds a workspace.
func (c *workspaceCreateCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
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
	Plan      string `arg:"" help:"free, starter, growth, pro or enterprise."`
}

// Run changes a plan.
func (c *workspaceSetPlanCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if err := s.SetPlan(ctx, c.Workspace, c.Plan); err != nil {
			return err
		}
		return c.print(std, map[string]string{"id": c.Workspace, "plan": c.Plan}, "workspace %s has the plan %s now", c.Workspace, c.Plan)
	})
}

type workspaceSetCmd struct {
	data

	Workspace   string `arg:"" help:"Id of the workspace."`
	Messages    figure `help:"Outbound messages a month; \"plan\" for the plan's."`
	Devices     figure `help:"Linked devices; \"plan\" for the plan's."`
	EventDays   figure `help:"Days that events are kept, if fewer than the server's; \"plan\" for the server's."`
	MessageDays figure `help:"Days that messages are kept, if fewer than the server's; \"plan\" for the server's."`
}

// figure is a number of the operator's, or "plan"; nil when it was not given.
type figure struct{ n *int }

// UnmarshalText reads a figure.
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
		ws, err := s.ChangeLimits(ctx, c.Workspace, postern.Limits{Messages: c.Messages.n, Devices: c.Devices.n, EventDays: c.EventDays.n, MessageDays: c.MessageDays.n})
		if err != nil {
			return err
		}
		p, _ := ws.Entitlement()
		return c.print(std, ws, "workspace %s (%s) has %d messages a month and %d devices now", ws.ID, ws.Plan, p.Messages, p.Devices)
	})
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key. It is shown once."`
	Rotate keyRotateCmd `cmd:"" help:"Make a key's successor; the old one lives on for a time."`
	List   keyListCmd   `cmd:"" help:"List a workspace's keys."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key at once."`
}

type keyCreateCmd struct {
	data

	Workspace   string        `required:"" help:"Id of the workspace."`
	Name        string        `required:"" help:"Name of the key."`
	Environment string        `default:"production" help:"A label, such as staging (${default})."`
	Scope       []string      `help:"A permission, such as messages:write; all when none is named."`
	Device      []string      `help:"Limit the key to a device."`
	Expires     time.Duration `help:"End the key after this long, such as 720h."`
}

// Run makes a key.
func (c *keyCreateCmd) Run(ctx context.Context, std streams) error {
	in := gateway.NewKey{Name: c.Name, Environment: c.Environment}
	for _, s := range c.Scope {
		in.Scopes = append(in.Scopes, postern.Scope(s))
	}
	for _, id := range c.Device {
		in.Devices = append(in.Devices, postern.DeviceID(id))
	}
	var err error
	if in.ExpiresAt, err = fromNow(c.Expires); err != nil {
		return err
	}
	return c.with(ctx, func(s *app.Commands) error {
		key, err := s.CreateKey(ctx, c.Workspace, in)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": key.ID, "key": key.Secret}, "key %s\n%s\nKeep it now: it cannot be shown again.", key.ID, key.Secret)
	})
}

// fromNow is when something ends that lives so long; 0 is never.
func fromNow(d time.Duration) (postern.Time, error) {
	switch {
	case d < 0:
		return 0, errors.New("--expires is a time from now, such as 720h")
	case d == 0:
		return 0, nil
	}
	return postern.TimeOf(time.Now().Add(d)), nil
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
		return table(c.data, std, list, "ID\tNAME\tENVIRONMENT\tENDS IN\tSCOPES\tDEVICES\tCREATED\tLAST USED\tEXPIRES\tREVOKED", func(k postern.Key) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Name, k.Environment, k.LastFour, scopesOf(k), devicesOf(k), k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt)
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
	Overlap   time.Duration `default:"24h" help:"How long the old key lives on, 0s to 720h (${default})."`
	Expires   time.Duration `help:"End the successor after this long, such as 720h."`
	Key       string        `arg:"" help:"Id of the key."`
}

// Run rotates a key.
func (c *keyRotateCmd) Run(ctx context.Context, std streams) error {
	expires, err := fromNow(c.Expires)
	if err != nil {
		return err
	}
	return c.with(ctx, func(s *app.Commands) error {
		key, err := s.RotateKey(ctx, c.Workspace, c.Key, gateway.Rotation{Overlap: c.Overlap, ExpiresAt: expires})
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": key.ID, "key": key.Secret}, "key %s\n%s\nKeep it now: it cannot be shown again. %s ends in %s.", key.ID, key.Secret, c.Key, c.Overlap)
	})
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
	Link deviceLinkCmd `cmd:"" help:"Link a device: show QR codes here until a phone scanned one."`
	List deviceListCmd `cmd:"" help:"List a workspace's devices."`
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
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", d.ID, d.Name, d.Status, d.StatusReason, d.PhoneNumber, d.ConnectedAt)
		})
	})
}

type webhookCmd struct {
	Add  webhookAddCmd  `cmd:"" help:"Register a webhook endpoint. Its secret is shown once."`
	List webhookListCmd `cmd:"" help:"List a workspace's webhook endpoints."`
}

type webhookAddCmd struct {
	data

	Workspace string   `required:"" help:"Id of the workspace."`
	URL       string   `required:"" help:"Where events are posted."`
	Event     []string `help:"A kind of event, or a family such as message.*; all when none is named."`
}

// Run registers an endpoint.
func (c *webhookAddCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		e, err := s.AddWebhook(ctx, c.Workspace, gateway.NewEndpoint{URL: c.URL, Events: c.Event})
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": e.ID, "secret": e.Secret}, "webhook %s (%s until it answers the handshake)\n%s\nKeep the secret now.", e.ID, e.Status, e.Secret)
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
