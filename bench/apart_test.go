package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"postern/bench/bare"
	"postern/internal/testkit"
)

// apart are a gateway, bare clients and the simulated vendor, each in a process of its own. This
// process writes the texts and receives the webhooks.
type apart struct {
	*fleetOf
	bare    *bareProcess
	arrived chan arrival // at the webhook receiver
}

type arrival struct {
	event
	at time.Time
}

// newApart links so many devices and as many bare clients.
func newApart(t *testing.T, e engine, devices int) *apart {
	t.Helper()
	a := &apart{fleetOf: newFleet(t), arrived: make(chan arrival, 10_000)}
	a.useDatabase(e.url(t))
	a.boot()
	a.grow(devices)
	a.receive(a.keys[0], func(_ http.ResponseWriter, r *http.Request) {
		a.arrived <- arrival{eventOf(r), time.Now()}
	}, "message.sent", "message.received")
	a.bare = startBare(t, a.vendor)
	for n := range devices {
		a.bare.obey("link "+bareNumber, n)
	}
	return a
}

// await waits for so many webhooks of a kind.
func (a *apart) await(kind string, n int) (list []arrival) {
	a.t.Helper()
	limit := time.After(testkit.Wait)
	for len(list) < n {
		select {
		case got := <-a.arrived:
			if got.Type != kind {
				a.t.Fatalf("%s arrived instead of %s", got.Type, kind)
			}
			list = append(list, got)
		case <-limit:
			a.t.Fatalf("%d of %d webhooks %s arrived", len(list), n, kind)
		}
	}
	return list
}

// bareProcess are bare clients in a process, which obeys orders; see [bare.Serve].
type bareProcess struct {
	t       *testing.T
	pid     int
	orders  io.Writer
	answers *bufio.Scanner
}

var asBare = flag.String("bare", "", "be bare clients, of the vendor and in the directory that this JSON describes")

// bareOrders are what the process of bare clients is given.
type bareOrders struct {
	Vendor bare.Remote
	Dir    string
}

func startBare(t *testing.T, vendor bare.Remote) *bareProcess {
	t.Helper()
	orders, err := json.Marshal(bareOrders{vendor, t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBareClients$", "-bare", string(orders))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) // the end of the context has killed it
	return &bareProcess{t, cmd.Process.Pid, in, bufio.NewScanner(out)}
}

// TestBareClients is the process of bare clients.
func TestBareClients(t *testing.T) {
	if *asBare == "" {
		t.Log("figures beside bare clients in a process of their own start this")
		return
	}
	var o bareOrders
	if err := json.Unmarshal([]byte(*asBare), &o); err != nil {
		t.Fatal(err)
	}
	network, err := o.Vendor.Network()
	if err != nil {
		t.Fatal(err)
	}
	if err := bare.Serve(t.Context(), network, o.Dir, os.Stdin, os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// obey gives an order and waits until it is carried out.
func (b *bareProcess) obey(format string, args ...any) {
	b.t.Helper()
	b.order(format, args...)
	if err := b.done(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bareProcess) order(format string, args ...any) {
	b.t.Helper()
	if _, err := fmt.Fprintf(b.orders, format+"\n", args...); err != nil {
		b.t.Fatal(err)
	}
}

// done waits until the oldest open order is carried out.
func (b *bareProcess) done() error {
	b.answers.Scan()
	if answer := b.answers.Text(); answer != "done" {
		return fmt.Errorf("the bare clients say %q: %w", answer, b.answers.Err())
	}
	return nil
}
