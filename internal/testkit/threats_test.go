package testkit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// TestT21TextsArriveByteForByte sends texts to a phone that answers with the
// same, and compares what its screen shows and what the webhook brings.
func TestT21TextsArriveByteForByte(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received")
	d := c.Link(phone)
	var want []string
	for i, text := range []string{
		"👨‍👩‍👧‍👦🇩🇪", "e\u0301 is not é", "\u202eright to left\u202c مرحبا שלום", "lines\r\n\u0085\u2028\u2029\ttabs",
		`<&>"'\/`, "\ufeff\u200b\u200d", "a" + strings.Repeat("\u0301", 10_000),
		strings.Repeat("👋", 16_000),
		"\x01\x1f\x7f", "ﷺ İıſK", "\U0010fffd", strings.Repeat("x", 65_000), " blanks  ",
	} {
		text = fmt.Sprintf("%02d %s", i, text)
		want = append(want, text)
		send(c, d, parrot, text)
	}
	var got []string
	for _, del := range hooks.Await(slices.Repeat([]postern.EventType{postern.MessageReceived}, len(want))...) {
		message, _ := del.Event["message"].(map[string]any)
		body, _ := message["body"].(string)
		got = append(got, body)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("of %d texts came back %q", len(want), got)
	}
	shown := map[string]bool{}
	for _, m := range k.Vendor.Shown(parrot) {
		shown[m.Body] = true
	}
	for _, text := range want {
		if !shown[text] {
			t.Errorf("the phone does not show %.40q", text)
		}
	}
}

// TestT21LongTextIsCutAndSaysSo receives a text of the largest size in a script of three
// bytes a character, and one that is a character longer.
func TestT21LongTextIsCutAndSaysSo(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		c.Link(phone)
		full := strings.Repeat("字", postern.MaxText)
		for i, text := range []string{full, full + "字"} {
			if _, err := k.Vendor.Send(t.Context(), phone, customer, text); err != nil {
				t.Fatal(err)
			}
			all := hooks.Await(slices.Repeat([]postern.EventType{postern.MessageReceived}, i+1)...)
			got, _ := all[i].Event["message"].(map[string]any)
			if cut, _ := got["truncated"].(bool); got["body"] != full || cut != (i == 1) {
				t.Errorf("a text of %d bytes came with truncated %v", len(text), got["truncated"])
			}
			id, _ := got["id"].(string)
			var kept postern.Message
			c.Call("GET", "/v1/messages/"+id, nil, 200, &kept)
			if kept.Content.Text != full || kept.Content.Truncated != (i == 1) {
				t.Errorf("of %d bytes %d are kept, truncated %v", len(text), len(kept.Content.Text), kept.Content.Truncated)
			}
		}
	})
}

// TestT25SlowClientsDelayNoOne opens many connections that send their headers a byte at
// a time. Others are served while these are open, and the slow ones are cut off.
func TestT25SlowClientsDelayNoOne(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("enterprise")
	var slow []net.Conn
	for range 300 {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(k.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "GET /v1/usage HTTP/1.1\r\nHost: x\r\nX-A: ")
		slow = append(slow, conn)
	}
	last := slow[len(slow)-1]
	for range 10 {
		c.Call(http.MethodGet, "/v1/usage", nil, 200, nil)
	}
	if err := last.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := last.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("others were served only after the slow clients were cut off: %d, %v", n, err)
	}
	for _, conn := range slow { // they go on until they are cut off
		if err := conn.SetDeadline(time.Now().Add(testkit.Wait)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "a")
		text, err := io.ReadAll(bufio.NewReader(conn))
		if strings.HasPrefix(string(text), "HTTP/1.1 2") || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a slow client gets %q, %v", text, err)
		}
	}
}
