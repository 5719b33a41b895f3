package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"postern/internal/app"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

type deviceLinkCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
	Name      string `default:"device" help:"Name of the new device (${default})."`
	Device    string `help:"Id of an existing device to link again, instead of creating one."`

	PhoneNumber string `help:"Number of the phone. Shows a code to enter on it instead of a QR code to scan."`
}

// Run shows QR codes, or a code to enter on the phone, and waits until the device
// is connected.
func (c *deviceLinkCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if s.Alone {
			return errors.New("no server is running on this data directory; start one with \"postern serve\"")
		}
		id, err := c.open(ctx, s)
		if err != nil {
			return err
		}
		if err := c.show(ctx, s, std, id); err != nil {
			return c.failed(ctx, s, id, err)
		}
		d, err := c.connected(ctx, s, id)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": d.ID, "phoneNumber": d.PhoneNumber}, "device %s is connected as %s",
			d.ID, d.PhoneNumber)
	})
}

func (c *deviceLinkCmd) open(ctx context.Context, s *app.Commands) (id string, err error) {
	id = c.Device
	if id == "" {
		d, err := s.CreateDevice(ctx, c.Workspace, c.Name)
		if err != nil {
			return "", err
		}
		id = string(d.ID)
	}
	in := gateway.NewLink{Method: postern.ByQR, PhoneNumber: c.PhoneNumber}
	if c.PhoneNumber != "" {
		in.Method = postern.ByCode
	}
	if _, err = s.OpenLink(ctx, c.Workspace, id, in); err != nil {
		return "", errors.Join(err, c.forget(ctx, s, id))
	}
	return id, nil
}

// forget deletes the device if it was created for this attempt, which cannot succeed.
func (c *deviceLinkCmd) forget(ctx context.Context, s *app.Commands, id string) error {
	if c.Device != "" {
		return nil
	}
	return s.DeleteDevice(ctx, c.Workspace, id)
}

// linkFailure is why an attempt has failed.
type linkFailure string

func (f linkFailure) Error() string { return "linking failed: " + string(f) }

// unreachable reports that no connection to the network could be made.
func (f linkFailure) unreachable() bool {
	return f == "dial" || f == "dns" || strings.HasPrefix(string(f), "tls-")
}

// failed explains a failure, and deletes the device that was created for the attempt: nobody knows its id. If the
// network could not be reached, it says what was dialled.
func (c *deviceLinkCmd) failed(ctx context.Context, s *app.Commands, id string, err error) error {
	why, ended := errors.AsType[linkFailure](err)
	if !ended && ctx.Err() == nil {
		return err
	}
	if why.unreachable() {
		status, bad := app.ServerStatus(ctx, c.Data)
		err = errors.Join(fmt.Errorf("the server cannot reach the messaging network at %s (%s); \"postern doctor\" "+
			"looks for the cause", status.Network, string(why)), bad)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime) // it may have been interrupted
	defer cancel()
	return errors.Join(err, c.forget(ctx, s, id))
}

// forgetTime is how long a command that was interrupted tries to delete its device.
const forgetTime = 10 * time.Second

const pollEvery = 300 * time.Millisecond

// show prints each new code until the attempt ends.
func (c *deviceLinkCmd) show(ctx context.Context, s *app.Commands, std streams, id string) error {
	var shown postern.Maybe
	var guided guidance
	for {
		l, err := s.Link(ctx, c.Workspace, id)
		switch {
		case err != nil:
			return err
		case l.Status == postern.LinkLinked:
			return nil
		case !l.Status.Open():
			return linkFailure(l.Reason)
		case l.Status == postern.LinkPasskey || l.Status == postern.LinkConfirm:
			if err := c.guide(ctx, s, std, id, l, &guided); err != nil {
				return err
			}
		case l.PairingCode != "" && l.PairingCode != shown:
			shown = l.PairingCode
			fmt.Fprintf(std.err,
				"\nOn the phone, open Linked devices > Link a device > Link with phone number instead. "+
					"Enter this code:\n\n    %s\n\n",
				shown)
		case l.QR != "" && l.QR != shown:
			shown = l.QR
			fmt.Fprintf(std.err, "\nOn the phone, open Linked devices > Link a device. Scan this code before %s.\n\n",
				l.QRExpiresAt.Std().Local().Format(time.TimeOnly))
			if err := showQR(std.err, l.QR); err != nil {
				return err
			}
		}
		if err := postern.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// guidance is what was said about the passkey of the account.
type guidance struct {
	page    string // that leads through the steps; "" before there is one
	checked bool   // that the network has the passkey
	code    postern.Maybe
}

// guide says once what to do at each step of a link by passkey.
func (c *deviceLinkCmd) guide(
	ctx context.Context, s *app.Commands, std streams, id string, l postern.Link, said *guidance,
) error {
	if said.page == "" {
		p, err := s.OpenLinkPage(ctx, c.Workspace, id)
		if err != nil {
			return err
		}
		said.page = p.URL
		fmt.Fprintf(std.err, "\nThe network asks for the passkey of the account. Browsers use it only on the network's own page.\n"+
			"Open this page on a computer, in a browser that can use the passkey. It leads you through the steps:\n\n    %s\n\n",
			said.page)
	}
	switch {
	case l.ConfirmationCode != "" && l.ConfirmationCode != said.code:
		said.code = l.ConfirmationCode
		fmt.Fprintf(std.err, "\nThe phone shows a code, too. Compare it with this one:\n\n    %s\n\n"+
			"Then press the button on the page that says whether they are the same.\n", said.code)
	case l.Status == postern.LinkPasskey && l.Passkey == nil && !said.checked:
		said.checked = true
		fmt.Fprintln(std.err, "The network checks the passkey. Keep the phone at hand: it may ask you to confirm.")
	}
	return nil
}

func showQR(w io.Writer, code postern.Maybe) error {
	text, err := qrcode.Text(string(code))
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

func (c *deviceLinkCmd) connected(ctx context.Context, s *app.Commands, id string) (postern.Device, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		d, err := s.Device(ctx, c.Workspace, id)
		if err != nil || d.Status == postern.Connected {
			return d, err
		}
		if err := postern.Sleep(ctx, pollEvery); err != nil {
			return d, fmt.Errorf("the device is linked but not connected yet (%s %s): %w", d.Status, d.StatusReason,
				err)
		}
	}
}
