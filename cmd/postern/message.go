package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"postern/internal/app"
	"postern/internal/postern"
)

type messageCmd struct {
	Send messageSendCmd `cmd:"" help:"Send a text, or a file with a caption."`
}

type messageSendCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
	Device    string `help:"Id of the device. It can be left out if only one device of the workspace is connected."`
	To        string `required:"" placeholder:"NUMBER" help:"Recipient: a phone number such as +15551234567, or the chatId of an event."`
	Body      string `help:"Text of the message, or caption of the file."`
	File      string `type:"existingfile" help:"File to send. Its type decides whether it is sent as a picture, a video, audio or a document."`
	Type      string `enum:",image,video,audio,voice,document,sticker" default:"" help:"Send the file as this type instead: image, video, audio, voice, document or sticker."`
	Priority  string `enum:",high,normal,low" default:"" help:"Priority over the device's other waiting messages: high, normal or low."`
}

// Validate checks the flags together.
func (c *messageSendCmd) Validate() error {
	switch {
	case c.Body == "" && c.File == "":
		return errors.New("there is nothing to send; give --body, --file or both")
	case c.Type != "" && c.File == "":
		return errors.New("--type says how a file is sent; give --file, too, or leave --type out")
	}
	return nil
}

// Run sends a message.
func (c *messageSendCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if s.Alone {
			return errors.New("no server is running on this data directory; start one with \"postern serve\"")
		}
		m, err := c.message(ctx, s)
		if err != nil {
			return err
		}
		id, err := s.Send(ctx, c.Workspace, m)
		if err != nil {
			return err
		}
		return c.print(std, map[string]any{"id": id, "type": m.Kind}, "message %s was accepted", id)
	})
}

func (c *messageSendCmd) message(ctx context.Context, s *app.Commands) (m app.NewMessage, err error) {
	m = app.NewMessage{To: c.To, Kind: postern.KindText, Text: c.Body, Priority: postern.Priority(c.Priority)}
	if m.DeviceID, err = c.device(ctx, s); err != nil || c.File == "" {
		return m, err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return m, err
	}
	defer f.Close()
	file, err := s.Upload(ctx, c.Workspace, filepath.Base(c.File), f)
	if err != nil {
		return m, err
	}
	m.Media, m.Kind = file.ID, postern.Kind(c.Type)
	if m.Kind == "" {
		m.Kind = kindOf(file.MIMEType)
	}
	return m, nil
}

// device returns the device that sends: the one that was named, or the only connected one.
func (c *messageSendCmd) device(ctx context.Context, s *app.Commands) (postern.DeviceID, error) {
	if c.Device != "" {
		return postern.DeviceID(c.Device), nil
	}
	list, err := s.Devices(ctx, c.Workspace)
	if err != nil {
		return "", err
	}
	var connected []postern.DeviceID
	for _, d := range list {
		if d.Status == postern.Connected {
			connected = append(connected, d.ID)
		}
	}
	if len(connected) != 1 {
		return "", fmt.Errorf("%d devices of the workspace are connected; name one with --device", len(connected))
	}
	return connected[0], nil
}

// kindOf returns the kind of messages as which a file of a type is sent.
func kindOf(mimeType string) postern.Kind {
	switch main, _, _ := strings.Cut(mimeType, "/"); {
	case mimeType == "image/jpeg", mimeType == "image/png", mimeType == "image/webp", mimeType == "image/gif":
		return postern.KindImage
	case mimeType == "video/mp4", mimeType == "video/3gpp":
		return postern.KindVideo
	case main == "audio":
		return postern.KindAudio
	}
	return postern.KindDocument
}
