package whatsapp

import (
	"context"
	"log/slog"

	waBinary "go.mau.fi/whatsmeow/binary"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// tap is the logger that whatsmeow is given. It does two things.
//
// It logs which line of whatsmeow spoke, never what it said: the arguments carry
// numbers, addresses, whole stanzas and texts, so only the format, a constant of
// whatsmeow's source, is passed on. A test checks that they are constants.
//
// And it hands over each stanza, which whatsmeow logs on its "Recv" and "Send"
// loggers before it acts on it. That is the only place where the reason of an
// ending and the copies in a message can be seen; see endedBy and outgoing.
type tap struct {
	log    *slog.Logger
	module string
	see    func(*waBinary.Node) // for this module; nil when it carries no stanzas

	received, sent func(*waBinary.Node)
}

var _ waLog.Logger = (*tap)(nil)

func newTap(log *slog.Logger) *tap { return &tap{log: log, module: "whatsmeow"} }

// Sub makes the logger of a part of whatsmeow.
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

// Debugf takes a stanza, or the chatter of whatsmeow.
func (t *tap) Debugf(format string, args ...any) {
	if len(args) == 1 && t.see != nil {
		if node, ok := args[0].(*waBinary.Node); ok {
			t.see(node)
			return
		}
	}
	t.print(slog.LevelDebug, format)
}

// Infof is chatter too.
func (t *tap) Infof(format string, _ ...any) { t.print(slog.LevelDebug, format) }

// Warnf says that something did not go as whatsmeow wishes: every ended connection does.
func (t *tap) Warnf(format string, _ ...any) { t.print(slog.LevelDebug, format) }

// Errorf is a warning to us: what follows from it is decided elsewhere.
func (t *tap) Errorf(format string, _ ...any) { t.print(slog.LevelWarn, format) }

func (t *tap) print(level slog.Level, format string) {
	t.log.LogAttrs(context.Background(), level, "whatsmeow", slog.String("module", t.module), slog.String("format", format))
}
