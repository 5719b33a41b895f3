package bench

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay forwards connections to an address, and notes when each was opened.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	dials []time.Time
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{listener: l, to: to}
	go r.run()
	return r
}

func (r *relay) run() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.dials = append(r.dials, time.Now())
		r.mu.Unlock()
		go r.forward(conn)
	}
}

func (r *relay) forward(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		pass(to, from)
		to.Close()
	}()
	pass(from, to)
}

// pass copies what one side sends. Without the type of the connections, io.Copy opens no pipe for each.
func pass(to io.Writer, from io.Reader) {
	io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 4096))
}

// busiest returns the most connections that were opened within a second since a moment.
func (r *relay) busiest(since time.Time) (most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := 0
	for i, at := range r.dials {
		for r.dials[first].Before(since) || at.Sub(r.dials[first]) >= time.Second {
			if first++; first > i {
				break
			}
		}
		most = max(most, i-first+1)
	}
	return most
}
