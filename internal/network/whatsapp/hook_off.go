//go:build !failpoints

package whatsapp

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
)

// sawSent inspects a stanza that is about to be written.
func (c *conn) sawSent(node *waBinary.Node) { c.out.saw(node) }

// left is for fail points.
func (w *wire) left() error { return nil }

// hooked is for saboteurs.
func hooked(*store.Device) {}
