//go:build !failpoints

package whatsapp

import waBinary "go.mau.fi/whatsmeow/binary"

// sawSent inspects a stanza that is about to be written.
func (c *conn) sawSent(node *waBinary.Node) { c.out.saw(node) }

// left is for fail points.
func (w *wire) left() error { return nil }
