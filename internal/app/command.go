package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"postern/internal/config"
	"postern/internal/db/dbcopy"
	"postern/internal/egress"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/secretkey"
	"postern/internal/store/transfer"
	"postern/internal/web"
)

// Commands runs the operator's commands. It talks to the server that holds the data
// directory, or opens the database itself if no server is running.
type Commands struct {
	client *http.Client
	stop   func() error
	// Alone is true if no server is running. Commands that need a server then fail.
	Alone bool
}

// OpenCommands connects to the running server of the data directory, or opens the database
// if no server is running. It is an error if there is no database. The caller must call [Commands.Close].
func OpenCommands(ctx context.Context, cfg config.Data) (*Commands, error) {
	if err := transfer.Exists(ctx, placeOf(cfg)); err != nil && !isServed(ctx, cfg) {
		return nil, fmt.Errorf("%w; check %s", err, placeSetting(cfg))
	}
	return OpenOrCreate(ctx, cfg)
}

// isServed reports whether a server listens on the socket of the data directory. It may have another database
// than the command was told.
func isServed(ctx context.Context, cfg config.Data) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", cfg.SocketPath())
	return err == nil && c.Close() == nil
}

func placeSetting(cfg config.Data) string {
	if cfg.DatabaseURL != "" {
		return "POSTERN_DATABASE_URL"
	}
	return "--data-dir, or create one with \"postern workspace create\" or \"postern serve\""
}

// OpenOrCreate is like OpenCommands, but creates the database if there is none.
func OpenOrCreate(ctx context.Context, cfg config.Data) (*Commands, error) {
	alone := true
	stop, err := serveCommands(ctx, cfg)
	if _, locked := errors.AsType[*store.LockedError](err); locked {
		stop, err, alone = func() error { return nil }, nil, false // a running server answers on its socket
	}
	if err != nil {
		return nil, err
	}
	c := socketCommands(cfg)
	c.stop, c.Alone = stop, alone
	return c, nil
}

// socketCommands returns commands for the server that listens on the socket of the data directory.
func socketCommands(cfg config.Data) *Commands {
	dialer := &net.Dialer{Timeout: time.Second}
	return &Commands{client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", cfg.SocketPath())
		},
	}}}
}

// serveCommands serves the command socket in this process until stop is called.
func serveCommands(ctx context.Context, cfg config.Data) (stop func() error, err error) {
	core, err := openCore(ctx, cfg, store.Options{Nodes: cfg.DatabaseURL != ""})
	if err != nil {
		return nil, err
	}
	l, err := listenSocket(ctx, cfg.SocketPath())
	if err != nil {
		return nil, errors.Join(err, core.db.Close())
	}
	// The server checks the URL again by its own settings before it delivers.
	client := egress.NewClient(egress.Options{})
	g := gateway.New(gateway.Options{
		DB: core.db, Box: core.box, Log: slog.New(slog.DiscardHandler), CheckURL: client.CheckURL,
		CheckProxy: client.CheckProxy,
	})
	p := people.New(people.Options{DB: core.db, Box: core.box})
	commands := adminHandler(g, p, "")
	secretKeyCommands(commands, core.keys)
	srv := web.NewServer(context.WithoutCancel(ctx), commands, slog.New(slog.DiscardHandler))
	go srv.Serve(l) //nolint:errcheck // it ends when stop is called
	return func() error { return errors.Join(srv.Close(), core.db.Close()) }, nil
}

// Close releases the data directory.
func (c *Commands) Close() error {
	c.client.CloseIdleConnections()
	return c.stop()
}

// CreateWorkspace creates a workspace with a name and a plan.
func (c *Commands) CreateWorkspace(ctx context.Context, name, plan string) (ws postern.Workspace, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces", newWorkspace{name, plan}, &ws)
	return ws, err
}

// Workspaces lists all workspaces.
func (c *Commands) Workspaces(ctx context.Context) (list []postern.Workspace, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces", nil, &list)
	return list, err
}

// SetPlan changes the plan of a workspace.
func (c *Commands) SetPlan(ctx context.Context, ws, plan string) error {
	return c.call(ctx, http.MethodPut, "/workspaces/"+ws+"/plan", newPlan{plan}, nil)
}

// ChangeLimits overrides limits of a workspace: nil keeps a limit, and a negative value
// restores that of the plan or the server.
func (c *Commands) ChangeLimits(
	ctx context.Context, ws string, change postern.Limits,
) (w postern.Workspace, err error) {
	err = c.call(ctx, http.MethodPut, "/workspaces/"+ws+"/limits", change, &w)
	return w, err
}

// RotateKey creates the successor of a key. Only the answer contains its secret.
func (c *Commands) RotateKey(ctx context.Context, ws, id string, in gateway.Rotation) (key NewKey, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/keys/"+id+"/rotate", in, &key)
	return key, err
}

// CreateKey creates an API key. Only the answer contains its secret.
func (c *Commands) CreateKey(ctx context.Context, ws string, in gateway.NewKey) (key NewKey, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/keys", in, &key)
	return key, err
}

// Keys lists a workspace's keys.
func (c *Commands) Keys(ctx context.Context, ws string) (list []postern.Key, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/keys", nil, &list)
	return list, err
}

// RevokeKey revokes a key immediately.
func (c *Commands) RevokeKey(ctx context.Context, ws, id string) error {
	return c.call(ctx, http.MethodDelete, "/workspaces/"+ws+"/keys/"+id, nil, nil)
}

// CreateUser adds a user to a workspace.
func (c *Commands) CreateUser(ctx context.Context, ws string, in people.NewUser) (u NewUser, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/users", in, &u)
	return u, err
}

// Members lists the members of a workspace.
func (c *Commands) Members(ctx context.Context, ws string) (list []postern.Member, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/users", nil, &list)
	return list, err
}

// SetUpLink returns a new link with which the first user sets up the dashboard, or "" if there is a user.
func (c *Commands) SetUpLink(ctx context.Context) (string, error) {
	var u NewUser
	err := c.call(ctx, http.MethodPost, "/users/setup", none{}, &u)
	return u.Link, err
}

// ResetPassword creates a link at which a user chooses a new password.
func (c *Commands) ResetPassword(ctx context.Context, in people.Reset) (u NewUser, err error) {
	err = c.call(ctx, http.MethodPost, "/users/reset-password", in, &u)
	return u, err
}

// SetOperator makes a user an operator, or revokes that right.
func (c *Commands) SetOperator(ctx context.Context, in people.OperatorChange) (u postern.User, err error) {
	err = c.call(ctx, http.MethodPut, "/users/operator", in, &u)
	return u, err
}

// Devices lists a workspace's devices.
func (c *Commands) Devices(ctx context.Context, ws string) (list []postern.Device, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/devices", nil, &list)
	return list, err
}

// CreateDevice creates a device that can be linked.
func (c *Commands) CreateDevice(ctx context.Context, ws, name string) (d postern.Device, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/devices", newDevice{name}, &d)
	return d, err
}

// Device returns a device.
func (c *Commands) Device(ctx context.Context, ws, id string) (d postern.Device, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/devices/"+id, nil, &d)
	return d, err
}

// DeleteDevice deletes a device.
func (c *Commands) DeleteDevice(ctx context.Context, ws, id string) error {
	return c.call(ctx, http.MethodDelete, "/workspaces/"+ws+"/devices/"+id, nil, nil)
}

// OpenLink starts a link attempt for a device.
func (c *Commands) OpenLink(ctx context.Context, ws, id string, in gateway.NewLink) (l postern.Link, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/devices/"+id+"/link", in, &l)
	return l, err
}

// Link returns the newest link attempt of a device, with the code to show now.
func (c *Commands) Link(ctx context.Context, ws, id string) (l postern.Link, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/devices/"+id+"/link", nil, &l)
	return l, err
}

// OpenLinkPage creates a page that leads through the open link attempt of a device, and returns its address.
func (c *Commands) OpenLinkPage(ctx context.Context, ws, id string) (p LinkPage, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/devices/"+id+"/link/page", nil, &p)
	return p, err
}

// AddWebhook creates a webhook endpoint. The answer contains its secret.
func (c *Commands) AddWebhook(
	ctx context.Context, ws string, in gateway.NewEndpoint,
) (e gateway.EndpointWithSecret, err error) {
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/webhooks", in, &e)
	return e, err
}

// Webhooks lists a workspace's webhook endpoints.
func (c *Commands) Webhooks(ctx context.Context, ws string) (list []postern.Endpoint, err error) {
	err = c.call(ctx, http.MethodGet, "/workspaces/"+ws+"/webhooks", nil, &list)
	return list, err
}

// SecretKeys shows the secret keys, after the server has looked at its key file.
func (c *Commands) SecretKeys(ctx context.Context) (s SecretKeys, err error) {
	err = c.call(ctx, http.MethodGet, "/secret-keys", nil, &s)
	return s, err
}

// RotateSecretKey puts a new key in the key file of the server. The server takes it up.
func (c *Commands) RotateSecretKey(ctx context.Context) (id seal.KeyID, s SecretKeys, err error) {
	if s, err = c.SecretKeys(ctx); err != nil {
		return "", s, err
	}
	for _, k := range s.Keys {
		if k.State == keyWaits || k.State == secretkey.Retiring {
			return "", s, fmt.Errorf("the rotation to another key has not ended: the key %s is %s", k.ID, k.State)
		}
	}
	if id, err = seal.AddKey(s.File, time.Now().UTC().Format(time.DateOnly)); err != nil {
		return "", s, err
	}
	s, err = c.SecretKeys(ctx)
	return id, s, err
}

// PruneSecretKeys removes the keys that are not needed any more from the key file of the server. With lost, it
// removes those too that values are encrypted with which no key opens.
func (c *Commands) PruneSecretKeys(ctx context.Context, lost bool) (file string, ids []seal.KeyID, err error) {
	s, err := c.SecretKeys(ctx)
	if err == nil {
		err = c.call(ctx, http.MethodPost, "/secret-keys/unneeded", unneededIn{lost}, &ids)
	}
	if err != nil || len(ids) == 0 {
		return s.File, nil, err
	}
	return s.File, ids, seal.DropKeys(s.File, ids...)
}

func (c *Commands) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://postern"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the id contains characters that are not allowed: %w", err)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("reach the running server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		if out == nil {
			return nil
		}
		return json.NewDecoder(res.Body).Decode(out)
	}
	return readError(res)
}

func readError(res *http.Response) error {
	var e postern.Error
	err := json.NewDecoder(res.Body).Decode(&e) //nolint:musttag // the server is the same program
	if err != nil || e.Reason == "" {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	return &e
}

// Migrate migrates the database to the newest version and returns that version.
func Migrate(ctx context.Context, cfg config.Data) (version int64, err error) {
	db, err := store.Open(ctx, store.Options{Dir: cfg.Dir, URL: cfg.DatabaseURL.Reveal(), Nodes: cfg.DatabaseURL != ""})
	if err != nil {
		return 0, err
	}
	version, err = db.Version(ctx)
	return version, errors.Join(err, db.Close())
}

// MovedTable is what [Move] has copied of a table.
type MovedTable = dbcopy.Table

// Move moves the data from a data directory, or the PostgreSQL database at a URL, to another one that is
// empty; see [transfer.Move].
func Move(ctx context.Context, from, to string) ([]MovedTable, error) {
	return transfer.Move(ctx, transfer.ParsePlace(from), transfer.ParsePlace(to))
}
