package bare_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"

	"go.mau.fi/whatsmeow"

	"postern/bench/bare"
	"postern/vendorsim"
)

// The clients of a process link, send and receive as they are told, and say when they have.
func TestServeObeysOrders(t *testing.T) {
	v, err := vendorsim.Open(vendorsim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	whatsmeow.WACertPubKey = v.RootKey()
	in, orders := io.Pipe()
	out, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- bare.Serve(t.Context(), bare.In(v), t.TempDir(), in, w) }()
	answers := bufio.NewScanner(out)
	obey := func(order, want string) {
		t.Helper()
		fmt.Fprintln(orders, order)
		if answers.Scan(); answers.Text() != want {
			t.Fatalf("%s is answered %q, want %q", order, answers.Text(), want)
		}
	}
	obey("link +15559000000", "done")
	obey("link +15559000001", "done")
	obey("send 2 3", "done")
	sent := 0
	for _, e := range v.Ledger(0, 0) {
		if e.Direction == vendorsim.Outbound {
			sent++
		}
	}
	if sent != 6 {
		t.Errorf("the vendor got %d texts, want 6", sent)
	}
	fmt.Fprintln(orders, "await 2")
	for _, number := range []string{"+15559000000", "+15559000001"} {
		if _, err := v.Send(t.Context(), number, "+15551234567", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if answers.Scan(); answers.Text() != "done" {
		t.Errorf("await is answered %q", answers.Text())
	}
	obey("dance", `"unknown order: dance"`)
	orders.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
