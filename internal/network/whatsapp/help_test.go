package whatsapp

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"postern/internal/network"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
)

// send lets the friend write to the account.
func send(tb testing.TB, w world, body string) string {
	tb.Helper()
	id, err := w.vendor.Send(tb.Context(), ownNumber, friendNumber, body)
	if err != nil {
		tb.Fatalf("contact writes: %v", err)
	}
	return id
}

func byID(id string) func(network.Inbound) bool {
	return func(m network.Inbound) bool { return m.NetworkID == id }
}

// entryOf finds a message in the vendor's ledger.
func entryOf(tb testing.TB, w world, id string) vendorsim.Entry {
	tb.Helper()
	for _, e := range w.vendor.Ledger(0, 0) {
		if e.NetworkID == id {
			return e
		}
	}
	tb.Fatal("the vendor does not know the message")
	return vendorsim.Entry{}
}

// promptly fails the test when something takes long.
func promptly(t *testing.T, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// upgrade answers a WebSocket upgrade by hand.
func upgrade(c net.Conn) net.Conn {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return c
	}
	sum := sha1.Sum([]byte(req.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(
		c,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]),
	)
	return c
}

// drain reads until the other side hangs up.
func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// serverError is how whatsmeow reports the vendor's refusal of a message.
func serverError(code int) error { return fmt.Errorf("%w %d", whatsmeow.ErrServerReturnedError, code) }

func asRejected(err error, r **network.Rejected) bool { return errors.As(err, r) }
