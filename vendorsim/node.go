package vendorsim

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/binary/token"
	"go.mau.fi/whatsmeow/types"
)

const (
	// maxDepth and maxNodes limit the tree that a client may send. The largest tree of whatsmeow, an
	// upload of 812 prekeys, is six levels deep and has about three thousand nodes.
	maxDepth = 32
	maxNodes = 20_000
)

var errBadNode = errors.New("malformed node")

// decodeNode decodes a node of a client. whatsmeow's decoder trusts its input, so decodeNode checks
// the bytes first. It returns a node or an error for any input, and uses bounded memory.
func decodeNode(data []byte) (*waBinary.Node, error) {
	raw, err := unpack(data)
	if err != nil {
		return nil, err
	}
	s := scanner{data: raw}
	if err := s.node(0); err != nil {
		return nil, err
	}
	if s.at != len(raw) {
		return nil, fmt.Errorf("%w: %d bytes left over", errBadNode, len(raw)-s.at)
	}
	return waBinary.Unmarshal(raw)
}

// unpack removes the first byte, which tells whether the rest is compressed, and decompresses the
// rest if it is.
func unpack(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: empty", errBadNode)
	}
	if data[0]&2 == 0 {
		return data[1:], nil
	}
	z, err := zlib.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadNode, err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, maxFrame))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadNode, err)
	}
	return raw, nil
}

// scanner checks an encoded node without decoding it.
type scanner struct {
	data  []byte
	at    int
	nodes int
}

func (s *scanner) take(n int) ([]byte, error) {
	if n < 0 || n > len(s.data)-s.at {
		return nil, fmt.Errorf("%w: cut short", errBadNode)
	}
	b := s.data[s.at : s.at+n]
	s.at += n
	return b, nil
}

func (s *scanner) byte() (int, error) {
	b, err := s.take(1)
	if err != nil {
		return 0, err
	}
	return int(b[0]), nil
}

// node skips a node: a list of a tag, pairs of attributes and an optional content.
func (s *scanner) node(depth int) error {
	if s.nodes++; s.nodes > maxNodes || depth > maxDepth {
		return fmt.Errorf("%w: too big", errBadNode)
	}
	tag, err := s.byte()
	if err != nil {
		return err
	}
	size, err := s.listSize(tag)
	if err != nil {
		return err
	}
	if size == 0 {
		return fmt.Errorf("%w: no tag", errBadNode)
	}
	if err := s.text(); err != nil {
		return err
	}
	for range (size - 1) / 2 {
		if err := s.attribute(); err != nil {
			return err
		}
	}
	if size%2 == 1 {
		return nil
	}
	return s.content(depth)
}

func (s *scanner) listSize(tag int) (int, error) {
	switch tag {
	case token.ListEmpty:
		return 0, nil
	case token.List8:
		return s.byte()
	case token.List16:
		b, err := s.take(2)
		if err != nil {
			return 0, err
		}
		return int(binary.BigEndian.Uint16(b)), nil
	default:
		return 0, fmt.Errorf("%w: %d is no list", errBadNode, tag)
	}
}

func (s *scanner) attribute() error {
	if err := s.text(); err != nil {
		return err
	}
	tag, err := s.byte()
	if err != nil || tag == token.ListEmpty {
		return err
	}
	if isJID(tag) {
		return s.jid(tag)
	}
	return s.string(tag)
}

func (s *scanner) content(depth int) error {
	tag, err := s.byte()
	if err != nil || tag == token.ListEmpty {
		return err
	}
	if isJID(tag) {
		return s.jid(tag)
	}
	if tag != token.List8 && tag != token.List16 {
		return s.string(tag)
	}
	size, err := s.listSize(tag)
	if err != nil {
		return err
	}
	for range size {
		if err := s.node(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) text() error {
	tag, err := s.byte()
	if err != nil {
		return err
	}
	return s.string(tag)
}

// string skips text in any of its encodings.
func (s *scanner) string(tag int) error {
	var size int
	var err error
	switch tag {
	case token.Dictionary0, token.Dictionary1, token.Dictionary2, token.Dictionary3:
		size = 1
	case token.Binary8:
		size, err = s.byte()
	case token.Binary20:
		size, err = s.length(3, 0x0F_FFFF)
	case token.Binary32:
		size, err = s.length(4, 0x7FFF_FFFF)
	case token.Nibble8, token.Hex8:
		size, err = s.packedSize()
	default:
		if tag < 1 || tag >= len(token.SingleByteTokens) {
			err = fmt.Errorf("%w: %d is no text", errBadNode, tag)
		}
	}
	if err != nil {
		return err
	}
	_, err = s.take(size)
	return err
}

func (s *scanner) length(size, mask int) (int, error) {
	b, err := s.take(size)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, x := range b {
		n = n<<8 | int(x)
	}
	return n & mask, nil
}

// packedSize refuses an odd length of zero bytes, because there is no last half to cut off.
func (s *scanner) packedSize() (int, error) {
	n, err := s.byte()
	if err != nil {
		return 0, err
	}
	if n == 0x80 {
		return 0, fmt.Errorf("%w: odd length of nothing", errBadNode)
	}
	return n & 0x7F, nil
}

func isJID(tag int) bool {
	return tag == token.JIDPair || tag == token.ADJID || tag == token.FBJID || tag == token.InteropJID
}

// jid skips an address in any of its encodings.
func (s *scanner) jid(tag int) error {
	switch tag {
	case token.ADJID: // agent, device, user
		if _, err := s.take(2); err != nil {
			return err
		}
		return s.text()
	case token.JIDPair: // user or nothing, server
		user, err := s.byte()
		if err != nil {
			return err
		}
		if user != token.ListEmpty {
			if err := s.string(user); err != nil {
				return err
			}
		}
		return s.text()
	case token.FBJID: // user, device, server
		return s.longJID(2)
	default: // user, device, integrator, server
		return s.longJID(4)
	}
}

func (s *scanner) longJID(between int) error {
	if err := s.text(); err != nil {
		return err
	}
	if _, err := s.take(between); err != nil {
		return err
	}
	return s.text()
}

// attr returns an attribute that must be text, or "" if it is not.
func attr(n *waBinary.Node, key string) string {
	s, ok := n.Attrs[key].(string)
	if !ok {
		return ""
	}
	return s
}

// attrJID returns an attribute that must be an address.
func attrJID(n *waBinary.Node, key string) (types.JID, bool) {
	jid, ok := n.Attrs[key].(types.JID)
	return jid, ok
}

// content returns a node's content as bytes, for each encoding that clients use.
func content(n waBinary.Node) []byte {
	switch c := n.Content.(type) {
	case []byte:
		return c
	case string:
		return []byte(c)
	default:
		return nil
	}
}

// firstTag returns the tag of the first child, which is the subject of an iq.
func firstTag(n *waBinary.Node) string {
	if children := n.GetChildren(); len(children) > 0 {
		return children[0].Tag
	}
	return ""
}
