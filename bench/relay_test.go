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
		io.Copy(to, from)
		to.Close()
	}()
	io.Copy(from, to)
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
