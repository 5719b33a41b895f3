//go:build failpoints

package whatsapp

import (
	"fmt"
	"sync"

	"postern/internal/failpoint"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// leaving maps a wire to the fail point of its next write.
var leaving sync.Map //nolint:gochecknoglobals // so that the wire needs no field for it

// sawSent inspects a stanza that is about to be written. If it is a message to a
// chat, or the receipt that acknowledges one, the wire reaches a fail point after
// its next write.
func (c *conn) sawSent(node *waBinary.Node) {
	c.out.saw(node)
	_, toChat := node.GetOptionalChildByTag("participants")
	kind := ""
	if t, ok := node.Attrs["type"]; ok {
		kind = fmt.Sprint(t)
	}
	switch {
	case node.Tag == "message" && toChat:
		leaving.Store(c.wire, failpoint.SendFrameWritten)
	case node.Tag == "receipt" && (kind == "" || kind == string(types.ReceiptTypeInactive)):
		leaving.Store(c.wire, failpoint.InboxAcknowledged)
	}
}

// left reaches the fail point of the write that has just ended without an error.
func (w *wire) left() error {
	point, ok := leaving.LoadAndDelete(w)
	if !ok {
		return nil
	}
	return failpoint.At(point.(failpoint.Point)) //nolint:errcheck // only points are stored
}
