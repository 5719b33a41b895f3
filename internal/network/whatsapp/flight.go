package whatsapp

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"postern/internal/network"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
)

// flight notes for the host what whatsmeow is processing. A frame or a stanza that makes one
// of whatsmeow's own goroutines panic ends the process, and nothing here can prevent that;
// but the note is made before the bytes are handed to whatsmeow, and outlives the process.
//
// A frame is in progress from its first byte until whatsmeow logs the stanza that it
// decoded, or that it could not; see tap. A stanza is in progress until whatsmeow is about
// to acknowledge it, or for handlingTime if it is not acknowledged or has work left then.
type flight struct {
	note func(what string)

	mu      sync.Mutex // guards the fields below
	frames  frames
	decoded int // frames
	open    map[string]stanza
	others  int // stanzas without an acknowledgement so far, for their names in open
	closed  bool

	// groups has the notices about groups that have been read and not been acknowledged, by their ids. A channel is
	// closed when its notice is acknowledged, or when the connection ends; groups is nil then.
	groups map[string]chan struct{}
}

// stanza is a stanza in progress.
type stanza struct {
	node *waBinary.Node
	at   time.Time // when it was read
}

func newFlight(note func(string)) *flight {
	return &flight{note: note, open: map[string]stanza{}, groups: map[string]chan struct{}{}}
}

// read sees bytes of the WebSocket that whatsmeow gets next.
func (f *flight) read(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames.read(p)
	f.tell()
}

// decodedOne is called when whatsmeow is done with the bytes of a frame. node is the stanza
// that it handles next, or nil if the frame contained none.
func (f *flight) decodedOne(node *waBinary.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decoded++
	if node != nil && len(f.open) < maxOpenStanzas && isHandled(node) {
		f.begin(node)
	}
	if node != nil && isAboutGroup(node) {
		f.noticed(node)
	}
	f.tell()
}

func isAboutGroup(node *waBinary.Node) bool {
	return node.Tag == "notification" && node.Attrs["type"] == "w:gp2"
}

// noticed remembers a notice about a group until it is acknowledged. The caller holds mu.
func (f *flight) noticed(node *waBinary.Node) {
	id, _ := node.Attrs["id"].(string)
	if f.groups != nil && len(f.groups) < maxOpenStanzas && f.groups[id] == nil {
		f.groups[id] = make(chan struct{})
	}
}

// settle waits until the notices about groups that have been read are acknowledged. An answer to a query overtakes them:
// whatsmeow handles one after another, but hands over an answer at once. If that takes longer than limit, the error is
// [network.ErrBehind]; if the connection ends, it is whatsmeow's.
func (f *flight) settle(limit time.Duration) error {
	f.mu.Lock()
	waits := slices.Collect(maps.Values(f.groups))
	f.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, done := range waits {
		select {
		case <-done:
		case <-timer.C:
			return network.ErrBehind
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups == nil {
		return whatsmeow.ErrNotConnected
	}
	return nil
}

// unsettle ends all calls of settle, because the connection ends.
func (f *flight) unsettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, done := range f.groups {
		close(done)
	}
	f.groups = nil
}

// isHandled reports whether a handler gets the stanza: an answer to a query is passed to the
// caller, which survives a panic.
func isHandled(node *waBinary.Node) bool {
	kind, _ := node.Attrs["type"].(string)
	return node.Tag != "ack" && (node.Tag != "iq" || kind != "result" && kind != "error")
}

func (f *flight) begin(node *waBinary.Node) {
	id, _ := node.Attrs["id"].(string)
	if id != "" && (node.Tag == "message" || node.Tag == "receipt") {
		f.open[node.Tag+" "+id] = stanza{node, time.Now()}
		return
	}
	f.others++
	name := strconv.Itoa(f.others)
	f.open[name] = stanza{node, time.Now()}
	time.AfterFunc(handlingTime, func() { f.end(name) })
}

func (f *flight) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, name)
	f.tell()
}

// answered sees a stanza that whatsmeow is about to write. It returns the message that this
// acknowledges, if any.
func (f *flight) answered(node *waBinary.Node) *waBinary.Node {
	id, _ := node.Attrs["id"].(string)
	class, _ := node.Attrs["class"].(string)
	switch {
	case node.Tag == "receipt":
		class = "message"
	case node.Tag != "ack":
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if done := f.groups[id]; class == "notification" && done != nil {
		delete(f.groups, id)
		close(done)
	}
	name := class + " " + id
	message := f.open[name].node
	if node.Tag == "ack" || isFinalReceipt(node) {
		delete(f.open, name)
		f.tell()
	}
	if class != "message" {
		return nil
	}
	return message
}

// isFinalReceipt reports whether nothing follows the receipt: one that asks for another copy
// is followed by an acknowledgement.
func isFinalReceipt(node *waBinary.Node) bool {
	kind, _ := node.Attrs["type"].(string)
	return kind != "retry"
}

// message returns the message in progress with an id, or nil.
func (f *flight) message(id string) *waBinary.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open["message "+id].node
}

// arrived returns when the message in progress with an id was read, or zero.
func (f *flight) arrived(id string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open["message "+id].at
}

// land ends the notes, because the connection has ended.
func (f *flight) land() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("")
	f.closed = true
}

// tell notes what is in progress. The caller holds mu.
func (f *flight) tell() {
	if f.closed {
		return
	}
	if f.frames.begun > f.decoded {
		f.note(network.ProcessingFrame)
		return
	}
	for _, one := range f.open {
		f.note(one.node.Tag)
		return
	}
	f.note("")
}

// frames counts the vendor's frames in the bytes of a WebSocket. Each begins with three
// bytes that contain its length, and frames follow one another in binary messages.
type frames struct {
	begun int

	header  []byte // of a WebSocket frame, as far as it has been read
	payload uint64 // bytes left of it
	binary  bool   // the message that is being read is binary
	control bool   // a control frame interrupts it
	size    []byte // of one of the vendor's frames, as far as it has been read
	left    uint64 // bytes left of it
}

const (
	frameSize     = 3 // bytes of the length of one of the vendor's frames
	opcodeText    = 1
	opcodeBinary  = 2
	opcodeControl = 8
)

func (f *frames) read(p []byte) {
	for len(p) > 0 {
		if f.payload == 0 {
			f.header, p = append(f.header, p[0]), p[1:]
			f.readHeader()
			continue
		}
		n := min(uint64(len(p)), f.payload)
		if f.binary && !f.control {
			f.count(p[:n])
		}
		f.payload -= n
		p = p[n:]
	}
}

// readHeader reads the header of a WebSocket frame once all of it is there (RFC 6455,
// section 5.2). A server does not mask its frames.
func (f *frames) readHeader() {
	if len(f.header) < 2 {
		return
	}
	length, extended := uint64(f.header[1]&0x7F), 0
	switch length {
	case 126:
		extended = 2
	case 127:
		extended = 8
	}
	if len(f.header) < 2+extended {
		return
	}
	if extended > 0 {
		length = 0
		for _, b := range f.header[2:] {
			length = length<<8 | uint64(b)
		}
	}
	opcode := f.header[0] & 0x0F
	f.control = opcode >= opcodeControl
	if opcode == opcodeText || opcode == opcodeBinary {
		f.binary = opcode == opcodeBinary
	}
	f.payload, f.header = length, f.header[:0]
}

// count counts the frames that begin in a part of a binary message.
func (f *frames) count(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(uint64(len(p)), f.left)
			f.left -= n
			p = p[n:]
			continue
		}
		if len(f.size) == 0 {
			f.begun++
		}
		f.size, p = append(f.size, p[0]), p[1:]
		if len(f.size) == frameSize {
			f.left = uint64(f.size[0])<<16 | uint64(f.size[1])<<8 | uint64(f.size[2])
			f.size = f.size[:0]
		}
	}
}
