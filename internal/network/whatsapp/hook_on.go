//go:build failpoints

package whatsapp

import (
	"context"
	"fmt"
	"sync"

	"postern/internal/failpoint"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
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

// hooked makes a device forget the sender keys that it learns from now on, if that is the mistake of the run.
func hooked(d *store.Device) {
	if failpoint.Makes(failpoint.ForgetSenderKey) {
		d.SenderKeys = forgetful{d.SenderKeys, d.GetJID()}
	}
}

// forgetful keeps sender keys in memory only. They outlive a connection, but not the process.
type forgetful struct {
	store.SenderKeyStore
	own types.JID
}

// inMemory has the sender keys of all accounts.
var inMemory sync.Map //nolint:gochecknoglobals // a connection has its own store

type senderKey struct {
	own         types.JID
	group, user string
}

func (f forgetful) PutSenderKey(_ context.Context, group, user string, session []byte) error {
	inMemory.Store(senderKey{f.own, group, user}, session)
	return nil
}

func (f forgetful) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	if key, ok := inMemory.Load(senderKey{f.own, group, user}); ok {
		return key.([]byte), nil //nolint:errcheck // nothing else is stored
	}
	return f.SenderKeyStore.GetSenderKey(ctx, group, user)
}
