package vendorsim

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// rawClient speaks the protocol by hand, with next to no memory of its own.
type rawClient struct {
	net.Conn
	in, out *sealer
	unread  []byte
}

// dialRaw opens a WebSocket by hand.
func dialRaw(tb testing.TB, v *Vendor) *rawClient {
	tb.Helper()
	c, err := v.DialContext(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, "GET /ws/chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
	if err != nil {
		tb.Fatal(err)
	}
	_ = resp.Body.Close() // empty
	if resp.StatusCode != http.StatusSwitchingProtocols {
		tb.Fatal(resp.Status)
	}
	return &rawClient{Conn: c}
}

// write sends one binary WebSocket message, masked with zeros.
func (c *rawClient) write(data []byte) error {
	head := []byte{0x82, 0xFE}
	head = binary.BigEndian.AppendUint16(head, uint16(len(data)))
	_, err := c.Write(append(append(head, 0, 0, 0, 0), data...))
	return err
}

// read returns one WebSocket message.
func (c *rawClient) read() ([]byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	n := int(head[1])
	if n == 126 {
		if _, err := io.ReadFull(c, head); err != nil {
			return nil, err
		}
		n = int(binary.BigEndian.Uint16(head))
	}
	data := make([]byte, n)
	_, err := io.ReadFull(c, data)
	return data, err
}

func frame(data []byte) []byte { return append(appendLength(nil, len(data)), data...) }

// handshake runs the client's side of the handshake.
func (c *rawClient) handshake(tb testing.TB, static *keys.KeyPair, payload *waWa6.ClientPayload) {
	tb.Helper()
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	state, err := newNoise(socket.WAConnHeader)
	must(err)
	ephemeral := keys.NewKeyPair()
	state.authenticate(ephemeral.Pub[:])
	hello, err := proto.Marshal(&waWa6.HandshakeMessage{ClientHello: &waWa6.HandshakeMessage_ClientHello{Ephemeral: ephemeral.Pub[:]}})
	must(err)
	must(c.write(append(socket.WAConnHeader[:4:4], frame(hello)...)))
	raw, err := c.read()
	must(err)
	var answer waWa6.HandshakeMessage
	must(proto.Unmarshal(raw[lengthSize:], &answer))
	theirs := answer.GetServerHello().GetEphemeral()
	state.authenticate(theirs)
	must(state.mix(ephemeral.Priv[:], theirs))
	serverStatic, err := state.decrypt(answer.GetServerHello().GetStatic())
	must(err)
	must(state.mix(ephemeral.Priv[:], serverStatic))
	_, err = state.decrypt(answer.GetServerHello().GetPayload())
	must(err)
	sealedStatic := state.encrypt(static.Pub[:])
	must(state.mix(static.Priv[:], theirs))
	plain, err := proto.Marshal(payload)
	must(err)
	finish, err := proto.Marshal(&waWa6.HandshakeMessage{ClientFinish: &waWa6.HandshakeMessage_ClientFinish{
		Static: sealedStatic, Payload: state.encrypt(plain),
	}})
	must(err)
	must(c.write(frame(finish)))
	c.out, c.in, err = state.transport()
	must(err)
}

// login logs in as a companion that is added on the spot.
func (c *rawClient) login(tb testing.TB, v *Vendor, n number) {
	tb.Helper()
	static, signed := keys.NewKeyPair(), n.testKey()
	cp := &companion{account: &account{number: n}, saved: savedCompanion{
		Device: 1, Noise: *static.Pub, Signed: *signed.Pub, SignedID: signed.KeyID, Sig: signed.Signature[:],
	}}
	v.mu.Lock()
	v.devices.addCompanion(cp)
	v.mu.Unlock()
	c.handshake(tb, static, &waWa6.ClientPayload{Username: new(n.pn().UserInt()), Device: new(uint32(1))})
	if first := c.node(tb); first.Tag != "success" {
		tb.Fatalf("login answered with %s", first.Tag)
	}
}

// node reads the next node.
func (c *rawClient) node(tb testing.TB) *waBinary.Node {
	tb.Helper()
	if len(c.unread) == 0 {
		var err error
		if c.unread, err = c.read(); err != nil {
			tb.Fatal(err)
		}
	}
	end := lengthSize + int(bigEndian24(c.unread))
	plain, err := c.in.open(c.unread[lengthSize:end], nil)
	c.unread = c.unread[end:]
	if err != nil {
		tb.Fatal(err)
	}
	n, err := waBinary.Unmarshal(plain[1:])
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// closes waits until the vendor has cut a client off.
func (c *rawClient) closes(t *testing.T) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("connection was not closed: %v", err)
	}
}

func TestHostileClientsAreCutOff(t *testing.T) {
	t.Parallel()
	v, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	noise := make([]byte, 200)
	_, _ = rand.Read(noise)
	header := socket.WAConnHeader
	lowOrder, err := proto.Marshal(&waWa6.HandshakeMessage{ClientHello: &waWa6.HandshakeMessage_ClientHello{Ephemeral: make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"no prologue":    append([]byte("GET "), frame(noise)...),
		"not protobuf":   append(header[:4:4], frame(noise)...),
		"no key":         append(header[:4:4], frame(nil)...),
		"key of zeros":   append(header[:4:4], frame(lowOrder)...),
		"frame too long": append(header[:4:4], 0xFF, 0xFF, 0xFF, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialRaw(t, v)
			if err := c.write(data); err != nil {
				t.Fatal(err)
			}
			c.closes(t)
		})
	}
}

func TestFramesMayComeInPieces(t *testing.T) {
	t.Parallel()
	v, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	c := dialRaw(t, v)
	c.login(t, v, "15550001111")
	ping := func(id string) []byte {
		return frame(c.out.seal(nil, encodeNode(waBinary.Node{
			Tag:   "iq",
			Attrs: waBinary.Attrs{"id": id, "type": "get", "xmlns": "w:p"},
		}),
			nil))
	}
	both := append(ping("one"), ping("two")...)
	for i := range both {
		if err := c.write(both[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"", "one", "two"} { // first comes that nothing was missed
		if got := attr(c.node(t), "id"); got != want {
			t.Errorf("answer is to %q, want %q", got, want)
		}
	}
	if err := c.write(frame([]byte("not sealed with the right key"))); err != nil {
		t.Fatal(err)
	}
	c.closes(t)
}

// BenchmarkIdleConnection reports what one idle companion costs the vendor.
func BenchmarkIdleConnection(b *testing.B) {
	const conns = 500
	for b.Loop() {
		v, err := Open(Options{})
		if err != nil {
			b.Fatal(err)
		}
		before, goroutines := heap(), runtime.NumGoroutine()
		for i := range conns {
			dialRaw(b, v).login(b, v, "1555000"+digits(i))
		}
		b.ReportMetric(float64(heap()-before)/conns/1024, "kB/conn")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/conns, "goroutines/conn")
		_ = v.Close()
	}
}

func digits(i int) number {
	return number([]byte{byte('0' + i/1000%10), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
