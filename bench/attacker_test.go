package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"postern/bench/bare"
)

// The attacker of a sample is a process of its own with the lowest priority, like the
// simulated vendor: in reality both compute elsewhere, and the processor time that they
// need here must not count as harm that the gateway lets an attacker do. The neighbour, who
// is this process, computes elsewhere too, so its priority is above that of the gateway.

var (
	lowest = []string{"nice", "-n", "19"} // runs a command with the lowest priority
	lower  = []string{"nice", "-n", "5"}  // runs a command with a lower priority than this process
)

var asAttacker = flag.String("attacker", "", "make the attack that this JSON describes, until standard input ends")

// orders are what the process of an attacker is given.
type orders struct {
	Attack, URL, Control, Style string
	Attacker                    tenant
	Cookies                     []*http.Cookie // of a browser that is signed in
}

// suffer makes an attack in a process until the end of ctx.
func (s *street) suffer(ctx context.Context, attack string) {
	base, err := url.Parse(s.url)
	if err != nil {
		s.t.Error(err)
		return
	}
	b, err := json.Marshal(orders{attack, s.url, s.vendor.Control, s.style, s.attacker, s.browser.Jar.Cookies(base)})
	if err != nil {
		s.t.Error(err)
		return
	}
	args := append(slices.Clone(lowest), os.Args[0], "-test.run", "^TestAttacker$", "-test.v", "-attacker", string(b))
	cmd := exec.CommandContext(s.t.Context(), args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Error(err)
		return
	}
	context.AfterFunc(ctx, func() { in.Close() })
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`worked: [1-9]`).Match(out) {
		s.t.Errorf("%s: no request had an effect: %v\n%s", attack, err, bytes.TrimSpace(out))
	}
}

// TestAttacker is the process of an attacker.
func TestAttacker(t *testing.T) {
	if *asAttacker == "" {
		t.Log("the benchmark of neighbours starts this")
		return
	}
	var o orders
	if err := json.Unmarshal([]byte(*asAttacker), &o); err != nil {
		t.Fatal(err)
	}
	f := &fleetOf{t: t, url: o.URL, vendor: bare.Remote{Control: o.Control}}
	s := &street{fleetOf: f, attacker: o.Attacker, style: o.Style, browser: newBrowser()}
	base, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.browser.Jar.SetCookies(base, o.Cookies)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for _, a := range attacks() {
		if a.name == o.Attack {
			a.run(ctx, s)
		}
	}
	fmt.Println("worked:", s.worked.Load())
}
