package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key. It is shown once."`
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
	if c.Expires < 0 {
		return errors.New("--expires is a time from now, such as 720h")
	}
	if c.Expires > 0 {
		in.ExpiresAt = postern.TimeOf(time.Now().Add(c.Expires))
	}
	return c.with(ctx, func(s *app.Commands) error {
		key, err := s.CreateKey(ctx, c.Workspace, in)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": key.ID, "key": key.Secret}, "key %s\n%s\nKeep it now: it cannot be shown again.", key.ID, key.Secret)
	})
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
		return table(c.data, std, list, "ID\tNAME\tENVIRONMENT\tENDS IN\tCREATED\tLAST USED\tEXPIRES\tREVOKED", func(k postern.Key) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Name, k.Environment, k.LastFour, k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt)
		})
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
