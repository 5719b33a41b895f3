package logline

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

func TestLinesOfWhatsmeowAreSafe(t *testing.T) {
	t.Parallel()
	jid := types.NewJID("15550001111", types.DefaultUserServer)
	for want, line := range map[string]struct {
		format string
		args   []any
	}{
		"no arguments":                          {"no arguments", nil},
		"message 3EB0ABCDEF from ***: 2 copies": {"message %s from %s: %d copies", []any{"3EB0ABCDEF", jid, 2}},
		"name ***, number ***":                  {"name %s, number %q", []any{"Ada", "15550001111"}},
		"state critical_block after 3s":         {"state %s after %s", []any{appstate.WAPatchCriticalBlock, 3 * time.Second}},
		"stanza ***, bytes ***, key ***":        {"stanza %s, bytes %X, key %v", []any{&waBinary.Node{Tag: "message"}, []byte{1}, struct{ a int }{1}}},
		"failed: no session with ***: ***":      {"failed: %v", []any{errors.New(`no session with 15550001111:2@lid: "the text"`)}},
		"failed: got *** instead of *** (404)":  {"failed: %v", []any{errors.New("got <message to='1'> instead of <ack> (404)")}},
	} {
		if got := Format(line.format, line.args); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Format("%v", []any{errors.New(strings.Repeat("ä", 300))}); len(got) > maxError+len("…") {
		t.Errorf("%d bytes of an error", len(got))
	}
}
