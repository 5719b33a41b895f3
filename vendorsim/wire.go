package vendorsim

import (
	"context"
	"errors"
	"fmt"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

const (
	prologueSize = 4 // "WA", protocol version, dictionary version
	lengthSize   = 3
	// maxFrame is the largest frame, in bytes, that a client may send. The largest frame of
	// whatsmeow, 812 prekeys, is under 64 kB.
	maxFrame = 1 << 20
	// maxBatch is the approximate number of bytes of frames in one WebSocket message.
	maxBatch = 64 << 10
)

var errFrameTooLarge = errors.New("frame too large")

// wire sends and receives nodes over one WebSocket, in a stream of length-prefixed frames. Each
// frame is sealed with the keys of the handshake. One goroutine may read while another writes.
type wire struct {
	ws      *websocket.Conn
	unread  []byte
	in, out *sealer
}

func newWire(ws *websocket.Conn) *wire {
	ws.SetReadLimit(maxFrame + lengthSize + prologueSize)
	return &wire{ws: ws}
}

// readFrame returns the next frame. The frame is not overwritten by later calls.
func (w *wire) readFrame(ctx context.Context) ([]byte, error) {
	if err := w.fill(ctx, lengthSize); err != nil {
		return nil, err
	}
	n := int(w.unread[0])<<16 | int(w.unread[1])<<8 | int(w.unread[2])
	if n > maxFrame {
		return nil, fmt.Errorf("%w: %d bytes", errFrameTooLarge, n)
	}
	if err := w.fill(ctx, lengthSize+n); err != nil {
		return nil, err
	}
	frame := w.unread[lengthSize : lengthSize+n : lengthSize+n]
	if w.unread = w.unread[lengthSize+n:]; len(w.unread) == 0 {
		w.unread = nil
	}
	return frame, nil
}

// fill reads until at least n unread bytes are buffered.
func (w *wire) fill(ctx context.Context, n int) error {
	for len(w.unread) < n {
		_, data, err := w.ws.Read(ctx)
		if err != nil {
			return err
		}
		if w.unread == nil {
			w.unread = data
		} else {
			w.unread = append(w.unread, data...)
		}
	}
	return nil
}

func appendLength(dst []byte, n int) []byte {
	return append(dst, byte(n>>16&0xFF), byte(n>>8&0xFF), byte(n&0xFF))
}

// handshake runs the responder's side of Noise XX and returns the client's greeting.
func (w *wire) handshake(ctx context.Context, k *Keys, certs []byte) (greeting, error) {
	if err := w.fill(ctx, prologueSize); err != nil {
		return greeting{}, err
	}
	prologue := w.unread[:prologueSize]
	if prologue[0] != 'W' || prologue[1] != 'A' {
		return greeting{}, fmt.Errorf("%w: unknown prologue", errHandshake)
	}
	w.unread = w.unread[prologueSize:]
	state, err := newNoise(prologue)
	if err != nil {
		return greeting{}, err
	}
	g, err := w.exchange(ctx, state, k, certs)
	if err != nil {
		return greeting{}, err
	}
	w.in, w.out, err = state.transport()
	return g, err
}

func (w *wire) exchange(ctx context.Context, state *noise, k *Keys, certs []byte) (greeting, error) {
	raw, err := w.readFrame(ctx)
	if err != nil {
		return greeting{}, err
	}
	var hello waWa6.HandshakeMessage
	if err := proto.Unmarshal(raw, &hello); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", errHandshake, err)
	}
	ephemeral := keys.NewKeyPair()
	answer, err := state.hello(k, certs, hello.GetClientHello().GetEphemeral(), ephemeral)
	if err != nil {
		return greeting{}, err
	}
	if err := w.ws.Write(ctx, websocket.MessageBinary, append(appendLength(nil, len(answer)), answer...)); err != nil {
		return greeting{}, err
	}
	if raw, err = w.readFrame(ctx); err != nil {
		return greeting{}, err
	}
	return state.finish(raw, ephemeral)
}

// readNode returns the next node the client sent.
func (w *wire) readNode(ctx context.Context) (*waBinary.Node, error) {
	frame, err := w.readFrame(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := w.in.open(frame, nil)
	if err != nil {
		return nil, fmt.Errorf("open frame: %w", err)
	}
	return decodeNode(plain)
}

// writeNodes seals and sends encoded nodes in as few WebSocket messages as the batch size allows.
func (w *wire) writeNodes(ctx context.Context, nodes []outgoing) error {
	var batch []byte
	for i, n := range nodes {
		batch = appendLength(batch, len(n.data)+w.out.aead.Overhead())
		batch = w.out.seal(batch, n.data, nil)
		if len(batch) < maxBatch && i < len(nodes)-1 {
			continue
		}
		if err := w.ws.Write(ctx, websocket.MessageBinary, batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}
