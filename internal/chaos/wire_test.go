package chaos_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// wire passes on what is sent to its address. While it is cut, nothing gets through, as when a
// switch fails: connections stay open, and new ones get no answer.
type wire struct {
	addr string

	gate sync.RWMutex // held for writing while the wire is cut

	mu               sync.Mutex // guards what follows
	severed          bool
	ends             map[int]func() // end the connections
	next             int
	network, address string // of the other end
}

// newWire starts a wire to an address of a network, such as "unix" or "tcp".
func newWire(t *testing.T, network, address string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String(), network: network, address: address, ends: map[int]func(){}}
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(func() { end(); l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.join(ctx, near)
		}
	}()
	return w
}

// join connects a caller with the other end until one of them, or the test, ends.
func (w *wire) join(ctx context.Context, near net.Conn) {
	defer near.Close()
	leave, ok := w.enter(near)
	if !ok {
		return
	}
	defer leave()
	w.pass()
	network, address := w.end()
	far, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	var both sync.WaitGroup
	both.Go(func() { w.copy(far, near) })
	both.Go(func() { w.copy(near, far) })
	both.Wait()
}

// enter notes a connection, unless the wire is severed.
func (w *wire) enter(near net.Conn) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.severed {
		return nil, false
	}
	id := w.next
	w.next++
	w.ends[id] = func() { near.Close() }
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ends, id)
	}, true
}

// sever ends all connections, and every new one at once, until mend is called.
func (w *wire) sever() (mend func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.severed = true
	for _, end := range w.ends {
		end()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.severed = false
	}
}

// lead leads new connections to another end.
func (w *wire) lead(network, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.network, w.address = network, address
}

func (w *wire) end() (network, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.network, w.address
}

// copy passes on what one end sends, and then closes both.
func (w *wire) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.pass()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the wire is cut.
func (w *wire) pass() {
	w.gate.RLock()
	w.gate.RUnlock() //nolint:staticcheck // it waits for the writer and protects nothing
}

// cut cuts the wire until mend is called.
func (w *wire) cut() (mend func()) {
	w.gate.Lock()
	return w.gate.Unlock
}

// A wire passes on bytes in both directions, and keeps them back while it is cut.
func TestWireKeepsBackWhatIsSentWhileItIsCut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	w := newWire(t, "tcp", l.Addr().String())
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo := func(text string) <-chan string {
		if _, err := io.WriteString(c, text); err != nil {
			t.Error(err)
		}
		got := make(chan string, 1)
		go func() {
			b := make([]byte, len(text))
			io.ReadFull(c, b)
			got <- string(b)
		}()
		return got
	}
	if got := <-echo("before"); got != "before" {
		t.Errorf("got %q", got)
	}
	mend := w.cut()
	got := echo("while it is cut")
	select {
	case text := <-got:
		t.Errorf("%q got through", text)
	default:
	}
	mend()
	if got := <-got; got != "while it is cut" {
		t.Errorf("got %q", got)
	}
}
