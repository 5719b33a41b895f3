package egress

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// aged makes kept connections look as if they had lain for so long.
func (c *Client) aged(by time.Duration) (n int) {
	k := &c.transport.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, list := range k.idle {
		for _, w := range list {
			w.at = w.at.Add(-by)
			n++
		}
	}
	return n
}

// hears waits until something has come on the connection that is kept.
func (c *Client) hears(t *testing.T) {
	t.Helper()
	c.transport.kept.mu.Lock()
	defer c.transport.kept.mu.Unlock()
	for _, list := range c.transport.kept.idle {
		s, _ := list[0].socket()
		raw, err := s.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Read(func(fd uintptr) bool { // called again when there is something to read
			n, _, _ := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			return n > 0 || list[0].r.Buffered() > 0
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A host that says something unasked must not have it taken for the answer to
// the next request.
func TestWhatAHostSaysUnaskedIsNoAnswer(t *testing.T) {
	t.Parallel()
	const ok, late = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"
	for name, part := range map[string]func(chan struct{}){"with the answer": func(chan struct{}) {}, "later": func(read chan struct{}) { <-read }} {
		read := make(chan struct{}, 3)
		url := rawServer(t, func(c net.Conn) {
			say(ok)(c)
			part(read)
			say(late)(c)
			hold(c)
		})
		c := newTestClient(t, Options{})
		for range 3 {
			if a, err := c.Post(t.Context(), url, nil, []byte("{}")); err != nil {
				t.Fatalf("%s: status %d, %v", name, a.Status, err)
			}
			read <- struct{}{}
			c.hears(t)
			c.aged(lookAfter)
		}
	}
}

func TestConnectionsThatLieTooLongAreClosed(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	url := rawServer(t, func(c net.Conn) {
		say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(c)
		hold(c)
		close(gone)
	})
	c := newTestClient(t, Options{})
	if _, err := c.Post(t.Context(), url, nil, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if c.transport.kept.old(); c.aged(idleTimeout) != 1 {
		t.Fatal("a fresh connection was not kept")
	}
	c.transport.kept.old()
	if n := c.aged(0); n != 0 || c.transport.kept.count != 0 {
		t.Errorf("%d are kept, counted as %d", n, c.transport.kept.count)
	}
	<-gone
}

func TestNoMoreConnectionsAreKeptThanAllowed(t *testing.T) {
	t.Parallel()
	k := kept{perHost: 2, idle: map[string][]*wire{}}
	defer k.close()
	for range 3 {
		near, far := net.Pipe()
		defer far.Close()
		if err := k.put(newWire(near, "http x:80")); err != nil {
			t.Fatal(err)
		}
	}
	if k.count != 2 || len(k.idle["http x:80"]) != 2 {
		t.Errorf("%d are kept, counted as %d", len(k.idle["http x:80"]), k.count)
	}
}
