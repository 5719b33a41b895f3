package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"postern/internal/network/whatsapp/keys"
	"postern/internal/network/whatsapp/logline"

	waBinary "go.mau.fi/whatsmeow/binary"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// tap is whatsmeow's logger. It does three things.
//
// It logs each line with the arguments that cannot contain anything private, such as
// counts, ids of messages and errors; see [logline.Format]. The others are numbers, addresses,
// whole stanzas and texts. A test checks that the formats are constants.
//
// It also passes on each stanza, which whatsmeow logs on its "Recv" and "Send"
// loggers before acting on it. This is the only place where the reason for the end
// of a connection and the copies in a message can be seen; see endedBy and
// outgoing.
//
// And it passes on that a frame could not be read, and that the decryption of a message
// panicked, which whatsmeow only logs.
type tap struct {
	log    *slog.Logger
	module string
	see    func(*waBinary.Node) // of this module; nil if it logs no stanzas

	received, sent func(*waBinary.Node)
	undecoded      func(decrypted bool)
	panicked       func(id string)
}

// The formats with which whatsmeow logs what tap passes on, or treats in another way.
const (
	undecryptedFrame = "Failed to decrypt frame: %v"
	uncompressed     = "Failed to decompress frame: %v"
	undecodedFrame   = "Failed to decode node in frame: %v"
	panickedMessage  = "Message decryption for %s panicked: %v\n%s"
	unfetchedFirst   = "Failed to do initial fetch of app state %s: %v"
	unfetchedLater   = "Failed to sync app state after notification: %v"
	brokenSocket     = "Error reading from websocket: %v"
)

var _ waLog.Logger = (*tap)(nil)

func newTap(log *slog.Logger) *tap { return &tap{log: log, module: "whatsmeow"} }

// Sub returns the logger of a part of whatsmeow.
func (t *tap) Sub(module string) waLog.Logger {
	sub := *t
	sub.module, sub.see = t.module+"/"+module, nil
	switch module {
	case "Recv":
		sub.see = t.received
	case "Send":
		sub.see = t.sent
	}
	return &sub
}

// Debugf passes on a stanza, and logs any other line.
func (t *tap) Debugf(format string, args ...any) {
	if len(args) == 1 && t.see != nil {
		if node, ok := args[0].(*waBinary.Node); ok {
			t.see(node)
			return
		}
	}
	t.print(slog.LevelDebug, format, args)
}

// Infof logs at level debug: whatsmeow's details.
func (t *tap) Infof(format string, args ...any) { t.print(slog.LevelDebug, format, args) }

// Warnf logs at level debug, because every end of a connection is a warning.
func (t *tap) Warnf(format string, args ...any) {
	t.print(slog.LevelDebug, format, args)
	switch {
	case t.undecoded == nil:
	case format == undecryptedFrame:
		t.undecoded(false)
	case format == uncompressed, format == undecodedFrame:
		t.undecoded(true)
	}
}

// Errorf logs a warning; the gateway handles the consequences itself. That whatsmeow may not fetch the
// app state is logged at level debug, and so is that the database cannot be used, which would be said for each
// message, and that a socket was closed, which the engine says with its reason, unless it closed the socket itself.
func (t *tap) Errorf(format string, args ...any) {
	level := slog.LevelWarn
	if slices.Contains([]string{unfetchedFirst, unfetchedLater, brokenSocket}, format) ||
		slices.ContainsFunc(args, isUnavailable) {
		level = slog.LevelDebug
	}
	t.print(level, format, args)
	if format == panickedMessage && t.panicked != nil && len(args) > 0 {
		id, _ := args[0].(string)
		t.panicked(id)
	}
}

func isUnavailable(arg any) bool {
	err, is := arg.(error)
	return is && errors.Is(err, keys.ErrUnavailable)
}

func (t *tap) print(level slog.Level, format string, args []any) {
	ctx := context.Background()
	if t.log.Enabled(ctx, level) {
		t.log.LogAttrs(ctx, level, logline.Format(format, args), slog.String("module", t.module))
	}
}
