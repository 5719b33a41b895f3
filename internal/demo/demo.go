// Package demo demonstrates Postern on one machine, without a phone: it starts a
// sandbox server, links a simulated phone by QR code, sends and receives messages,
// and verifies every webhook with the official Standard Webhooks library. It uses
// only the public API, as any backend would.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"postern/internal/access"
	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

// Options say how the demo runs.
type Options struct {
	Server  config.Server
	LogFile string // for the server's log, because the demo uses the terminal
	Version string
	Once    bool // end after the last step
	Out     io.Writer
}

const (
	stepTimeout = 20 * time.Second
	name        = "Demo"
	phone       = "+15550001111" // the account that is linked
	customer    = "+15551234567" // writes to it
	reader      = "+15005550003" // a sandbox number that reads each message immediately
)

// Run runs the demo. Unless opts.Once is set, it then keeps serving until ctx is done.
func Run(ctx context.Context, opts Options) error {
	if err := os.MkdirAll(filepath.Dir(opts.LogFile), 0o700); err != nil {
		return fmt.Errorf("create the demo's directory: %w", err)
	}
	logFile, err := os.OpenFile(opts.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the demo's log: %w", err)
	}
	a, err := app.New(ctx, opts.Server,
		app.Options{Log: obs.NewLogger(logFile, opts.Server.Level()), Version: opts.Version})
	if err != nil {
		return errors.Join(err, logFile.Close())
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- a.Run(serving) }()
	err = show(serving, a, opts)
	stop()
	return errors.Join(err, <-served, logFile.Close())
}

// show runs the steps, and then prints webhooks as they arrive unless opts.Once is set.
func show(ctx context.Context, a *app.App, opts Options) error {
	d := &demo{out: opts.Out, gateway: a.Gateway()}
	if err := d.play(ctx, a, opts.LogFile); err != nil {
		if ctx.Err() != nil && !opts.Once {
			return nil //nolint:nilerr // the user stopped it
		}
		return err
	}
	if opts.Once {
		return nil
	}
	if err := d.invite(ctx, a); err != nil {
		return err
	}
	d.receiver.follow(ctx)
	return nil
}

// demo is one run.
type demo struct {
	out      io.Writer
	gateway  *gateway.Gateway
	client   *client
	receiver *receiver
	device   postern.Device
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *demo) play(ctx context.Context, a *app.App, logFile string) error {
	d.say("Postern is running at %s (log: %s)", a.URL(), logFile)
	for _, step := range []func(context.Context, *app.App) error{d.prepare, d.listen, d.link, d.send, d.receive} {
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		err := step(ctx, a)
		cancel()
		if err != nil {
			return err
		}
	}
	d.say("\nEverything worked: %d webhooks arrived, and every signature was verified.", d.receiver.count())
	return nil
}

// prepare creates a workspace and a key, as "postern workspace create" and
// "postern key create" do.
func (d *demo) prepare(ctx context.Context, a *app.App) error {
	ws, err := d.workspace(ctx)
	if err != nil {
		return err
	}
	keys, err := d.gateway.Keys.ListForOperator(ctx, access.Operator(), ws.ID)
	if err != nil {
		return err
	}
	for _, k := range keys { // of earlier runs: nobody has their secrets
		if k.RevokedAt == 0 {
			if err := d.gateway.Keys.Revoke(ctx, access.Operator(), ws.ID, k.ID); err != nil {
				return err
			}
		}
	}
	_, secret, err := d.gateway.Keys.Create(ctx, access.Operator(), ws.ID,
		gateway.NewKey{Name: "demo", Environment: "demo"})
	d.client = &client{base: a.URL(), key: secret}
	d.say("\n1. Create a workspace on the %s plan, and an API key:\n   %s", ws.Plan, secret)
	return err
}

func (d *demo) workspace(ctx context.Context) (postern.Workspace, error) {
	list, err := d.gateway.Workspaces.List(ctx, access.Operator())
	if err != nil {
		return postern.Workspace{}, err
	}
	for _, ws := range list {
		if ws.Name == name {
			return ws, nil
		}
	}
	return d.gateway.Workspaces.Create(ctx, access.Operator(), gateway.NewWorkspace{Name: name, Plan: "growth"})
}

// listen starts a webhook receiver and registers it.
func (d *demo) listen(ctx context.Context, _ *app.App) error {
	var old struct{ Data []postern.Endpoint }
	if err := d.client.get(ctx, "/v1/webhooks", &old); err != nil {
		return err
	}
	for _, e := range old.Data { // of earlier runs: nobody listens there
		if err := d.client.delete(ctx, "/v1/webhooks/"+string(e.ID)); err != nil {
			return err
		}
	}
	var err error
	if d.receiver, err = startReceiver(ctx, d.out); err != nil {
		return err
	}
	d.say("\n2. Start a webhook receiver at %s and register it with POST /v1/webhooks:", d.receiver.url)
	var e gateway.EndpointWithSecret
	if err := d.client.post(ctx, "/v1/webhooks", map[string]any{
		"url": d.receiver.url, "secret": d.receiver.secret, "handshake": postern.HandshakeSigned,
	}, &e); err != nil {
		return err
	}
	if err := d.receiver.await(ctx, postern.WebhookVerification); err != nil {
		return err
	}
	return d.awaitActive(ctx, e.ID)
}

func (d *demo) awaitActive(ctx context.Context, id postern.EndpointID) error {
	return poll(ctx, "the webhook endpoint to become active", func() (bool, error) {
		var e postern.Endpoint
		err := d.client.get(ctx, "/v1/webhooks/"+string(id), &e)
		return e.Status == postern.EndpointActive, err
	})
}

// link links a device, or finds the one that an earlier run linked.
func (d *demo) link(ctx context.Context, _ *app.App) error {
	var list struct{ Data []postern.Device }
	if err := d.client.get(ctx, "/v1/devices", &list); err != nil {
		return err
	}
	for _, dev := range list.Data {
		if dev.PhoneNumber == phone && dev.Status.HoldsSlot() {
			d.device = dev
			d.say("\n3. Device %s was linked in an earlier run and reconnects without a scan.", dev.ID)
			if dev.Status == postern.Paused || dev.Status == postern.Conflict {
				path := "/v1/devices/" + string(dev.ID) + "/resume"
				if err := d.client.post(ctx, path, nil, &postern.Device{}); err != nil {
					return err
				}
			}
			return d.awaitConnected(ctx)
		}
	}
	return d.linkAnew(ctx, list.Data)
}

func (d *demo) linkAnew(ctx context.Context, have []postern.Device) error {
	if len(have) > 0 {
		d.device = have[0]
	} else if err := d.client.post(ctx, "/v1/devices", map[string]any{"name": "Support"}, &d.device); err != nil {
		return err
	}
	path := "/v1/devices/" + string(d.device.ID)
	if err := d.client.post(ctx, path+"/link", nil, &postern.Link{}); err != nil {
		return err
	}
	var l postern.Link
	err := poll(ctx, "a QR code", func() (bool, error) {
		err := d.client.get(ctx, path+"/link", &l)
		return l.QR != "", err
	})
	if err != nil {
		return err
	}
	d.say("\n3. Create device %s. POST /v1/devices/{id}/link returns the code to scan:\n", d.device.ID)
	code, err := qrcode.Text(string(l.QR))
	if err != nil {
		return err
	}
	fmt.Fprint(d.out, code)
	d.say("   The simulated phone %s scans it.", phone)
	if err := d.client.post(ctx, "/v1/sandbox/devices/"+string(d.device.ID)+"/scan",
		map[string]any{"phoneNumber": phone},
		nil); err != nil {
		return err
	}
	return d.awaitConnected(ctx)
}

func (d *demo) awaitConnected(ctx context.Context) error {
	return poll(ctx, "the device to be connected", func() (bool, error) {
		err := d.client.get(ctx, "/v1/devices/"+string(d.device.ID), &d.device)
		return d.device.Status == postern.Connected, err
	})
}

// send sends a message to a number that reads it immediately.
func (d *demo) send(ctx context.Context, _ *app.App) error {
	d.say("\n4. Send a message to %s, which reads it immediately, with POST /v1/messages:", reader)
	d.receiver.forget()
	var m postern.Message
	if err := d.client.post(ctx, "/v1/messages",
		map[string]any{"deviceId": d.device.ID, "to": reader, "body": "Hello from Postern"},
		&m); err != nil {
		return err
	}
	return d.receiver.await(ctx, postern.MessageSent, postern.MessageDelivered, postern.MessageRead)
}

// receive lets a customer write to the device.
func (d *demo) receive(ctx context.Context, _ *app.App) error {
	d.say("\n5. Receive a message that customer %s writes to %s:", customer, phone)
	err := d.client.post(ctx, "/v1/sandbox/devices/"+string(d.device.ID)+"/inbound",
		map[string]any{"from": customer, "body": "Hi! Is this the support team?"}, nil)
	if err != nil {
		return err
	}
	return d.receiver.await(ctx, postern.MessageReceived)
}

// invite prints what to try next.
func (d *demo) invite(ctx context.Context, a *app.App) error {
	d.say(`
Try it yourself in another terminal:

  export KEY=%s

Send a message:

  curl -sS %s/v1/messages -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
    -d '{"deviceId":"%s","to":"+15005550004","body":"Is anyone there?"}'

Let the customer write a message:

  curl -sS %s/v1/sandbox/devices/%s/inbound -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
    -d '{"from":"%s","body":"Hello again"}'

List the devices:

  curl -sS %s/v1/devices -H "Authorization: Bearer $KEY"
`, d.client.key, a.URL(), d.device.ID, a.URL(), d.device.ID, customer, a.URL())
	return d.inviteToDashboard(ctx, a)
}

// inviteToDashboard prints a link to the dashboard.
func (d *demo) inviteToDashboard(ctx context.Context, a *app.App) error {
	url, err := a.SetUpURL(ctx)
	if err != nil {
		return err
	}
	if url == "" {
		url = a.URL()
	}
	d.say("Open the dashboard in a browser: %s", url)
	d.say("\nWebhooks appear below as they arrive. Press Ctrl-C to stop.")
	return nil
}
