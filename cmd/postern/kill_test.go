package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"postern/vendorsim"
)

// killed is a gateway process that is killed and started again, with the
// simulated vendor and a webhook receiver in the test's own process.
type killed struct {
	t      *testing.T
	dir    string
	addr   string
	vendor *vendorsim.Vendor
	url    string // of the vendor
	key    string
	cmd    *exec.Cmd
	errs   output
	hooks  *hooks
}

// hooks is a receiver that notes which eventIds each message came under.
type hooks struct {
	check *standardwebhooks.Webhook
	srv   *httptest.Server

	mu       sync.Mutex
	received map[string]map[string]bool // body of an inbound message → eventIds
	bodies   map[string]string          // eventId → bytes
	wrong    []string
}

const killSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

func newHooks(t *testing.T) *hooks {
	t.Helper()
	check, err := standardwebhooks.NewWebhook(killSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := &hooks{check: check, received: map[string]map[string]bool{}, bodies: map[string]string{}}
	h.srv = httptest.NewServer(h)
	t.Cleanup(h.srv.Close)
	return h
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // killed in mid-sentence
	}
	var e struct {
		EventID, Type, Challenge string
		Message                  struct{ Body string }
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check.Verify(body, r.Header); err != nil {
		h.wrong = append(h.wrong, err.Error())
	}
	if err := json.Unmarshal(body, &e); err != nil {
		h.wrong = append(h.wrong, err.Error())
	}
	if before, seen := h.bodies[e.EventID]; seen && before != string(body) {
		h.wrong = append(h.wrong, "an event came with other bytes: "+e.EventID)
	}
	h.bodies[e.EventID] = string(body)
	if e.Type == "message.received" {
		if h.received[e.Message.Body] == nil {
			h.received[e.Message.Body] = map[string]bool{}
		}
		h.received[e.Message.Body][e.EventID] = true
	}
	fmt.Fprintf(w, `{"challenge":%q}`, e.Challenge)
}

func startKilled(t *testing.T) *killed {
	t.Helper()
	vendor, err := vendorsim.Open(vendorsim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := vendor.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &killed{t: t, dir: shortDir(t), vendor: vendor, url: "ws://" + l.Addr().String() + "/ws/chat", addr: freeAddr(t), hooks: newHooks(t)}
	t.Cleanup(func() {
		k.kill()
		if err := vendor.Close(); err != nil {
			t.Error(err)
		}
	})
	at := "--data-dir=" + k.dir
	k.boot()
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--plan", "enterprise", "--json", at))
	k.key = matched(t, `"(pst_[^"]+)"`, mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at))
	return k
}

// freeAddr is a port that the gateway takes again after each kill.
func freeAddr(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (k *killed) boot() {
	k.t.Helper()
	root := k.vendor.RootKey()
	k.cmd = program(context.Background(), &k.errs, &k.errs, "serve", "--data-dir", k.dir, "--addr", k.addr, "--ops-addr", "127.0.0.1:0",
		"--network-url", k.url, "--network-root-key", hex.EncodeToString(root[:]), "--allow-private-webhooks", "on", "--log-level", "warn")
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.await("the gateway to answer", func() bool {
		status, _ := k.call("GET", "/v1/devices", nil, "")
		return status != 0
	})
}

func (k *killed) kill() {
	if k.cmd == nil {
		return
	}
	k.cmd.Process.Kill()
	k.cmd.Wait()
	k.cmd = nil
}

// call makes a request; the status is 0 when the connection broke.
func (k *killed) call(method, path string, body any, idempotencyKey string) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, "http://"+k.addr+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+k.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

func (k *killed) await(what string, ok func() bool) {
	k.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			k.t.Fatalf("waited in vain for %s\n%s", what, tail(k.errs.String()))
		}
		<-time.After(10 * time.Millisecond)
	}
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

func (k *killed) link(n int) (device, number string) {
	k.t.Helper()
	var d, l struct{ ID, QR, Status string }
	_, answer := k.call("POST", "/v1/devices", map[string]string{"name": "d"}, "")
	if err := json.Unmarshal(answer, &d); err != nil {
		k.t.Fatal(err)
	}
	k.call("POST", "/v1/devices/"+d.ID+"/link", nil, "")
	k.await("a code", func() bool {
		_, answer := k.call("GET", "/v1/devices/"+d.ID+"/link", nil, "")
		return json.Unmarshal(answer, &l) == nil && l.QR != ""
	})
	number = fmt.Sprintf("+1555000%04d", n)
	if err := k.vendor.Scan(k.t.Context(), l.QR, number); err != nil {
		k.t.Fatal(err)
	}
	k.await("a connected device", func() bool {
		_, answer := k.call("GET", "/v1/devices/"+d.ID, nil, "")
		return json.Unmarshal(answer, &d) == nil && d.Status == "connected"
	})
	return d.ID, number
}

// TestKillUnderBacklogLosesNothingAndDoublesNothing sends and receives over
// several devices at once, kills the gateway in the middle, again and again,
// and compares what was accepted with what the phones and the receiver got.
func TestKillUnderBacklogLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	const devices, cycles, burst = 4, 10, 40
	k := startKilled(t)
	var ids, numbers []string
	for n := range devices {
		id, number := k.link(n)
		ids, numbers = append(ids, id), append(numbers, number)
	}
	if status, answer := k.call("POST", "/v1/webhooks", map[string]string{"url": k.hooks.srv.URL, "secret": killSecret}, ""); status != 201 {
		t.Fatalf("webhook = %d %s", status, answer)
	}
	var mu sync.Mutex
	sent := map[string]string{} // body → message id
	var written []string        // bodies of inbound messages
	for cycle := range cycles {
		var load sync.WaitGroup
		for d := range devices {
			load.Go(func() {
				for i := range burst {
					body := fmt.Sprintf("out-%d-%d-%d", cycle, d, i)
					if id := k.insist(ids[d], body); id != "" {
						mu.Lock()
						sent[body] = id
						mu.Unlock()
					}
				}
			})
			load.Go(func() {
				for i := range burst {
					body := fmt.Sprintf("in-%d-%d-%d", cycle, d, i)
					if _, err := k.vendor.Send(context.Background(), numbers[d], "+15551234567", body); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					written = append(written, body)
					mu.Unlock()
				}
			})
		}
		k.await("a backlog", func() bool {
			mu.Lock()
			defer mu.Unlock()
			due := cycle*devices*burst + devices*burst/4
			return len(sent) > due && len(written) > due
		})
		k.kill()
		k.boot()
		load.Wait()
	}
	k.settle(sent, written)
}

// insist posts a message until it is answered, under one idempotency key.
func (k *killed) insist(device, body string) (id string) {
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); {
		status, answer := k.call("POST", "/v1/messages", map[string]string{"deviceId": device, "to": "+15005550003", "body": body, "whenDisconnected": "queue"}, body)
		var m struct{ ID string }
		switch {
		case status == 202 && json.Unmarshal(answer, &m) == nil:
			return m.ID
		case status == 0 || status == 409 || status == 429 || status == 503:
			<-time.After(5 * time.Millisecond)
		default:
			k.t.Errorf("a send = %d %s", status, answer)
			return ""
		}
	}
	k.t.Error("a send was never answered")
	return ""
}

// settle waits until everything has arrived and judges.
func (k *killed) settle(sent map[string]string, written []string) {
	t := k.t
	t.Helper()
	for body, id := range sent {
		var m struct{ Status, NetworkID string }
		k.await("message "+body, func() bool {
			_, answer := k.call("GET", "/v1/messages/"+id, nil, "")
			return json.Unmarshal(answer, &m) == nil && (m.Status == "read" || m.Status == "failed")
		})
		if m.Status != "read" {
			t.Errorf("%s is %s", body, m.Status)
		}
	}
	shown := map[string]int{}
	for _, e := range k.vendor.Ledger(0, 0) {
		if e.Direction == vendorsim.Outbound {
			shown[e.Body]++
		}
	}
	for body := range sent {
		if shown[body] != 1 {
			t.Errorf("%q reached the recipient under %d network ids, want 1", body, shown[body])
		}
		delete(shown, body)
	}
	if len(shown) != 0 {
		t.Errorf("messages that nobody had accepted: %v", shown)
	}
	k.await("every inbound message at the receiver", func() bool {
		k.hooks.mu.Lock()
		defer k.hooks.mu.Unlock()
		return len(k.hooks.received) >= len(written)
	})
	k.hooks.mu.Lock()
	defer k.hooks.mu.Unlock()
	for _, body := range written {
		if n := len(k.hooks.received[body]); n != 1 {
			t.Errorf("%q came under %d eventIds, want 1", body, n)
		}
	}
	if len(k.hooks.wrong) > 0 {
		t.Error(strings.Join(k.hooks.wrong, "\n"))
	}
}
