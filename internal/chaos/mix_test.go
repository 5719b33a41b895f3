package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"postern/internal/chaos"
)

// mix is what other callers of the server do while it is killed: readers that stall,
// filters that match little, and a neighbour that floods. Nil is a mix without callers.
type mix struct {
	w         *world
	reader    *world // has a chat that fills a page
	neighbour *world
	hanging   *httptest.Server // the neighbour's endpoint
	release   chan struct{}    // closed when it may answer

	stop    func() // ends the load, and lets the endpoint answer
	load    sync.WaitGroup
	pages   stalled
	files   stalled
	filters atomic.Int64 // answers to lists with a filter
	flood   atomic.Int64 // messages that the neighbour's contacts wrote
	hung    atomic.Int64 // posts to the endpoint that hangs
}

// stalled counts connections that read nothing.
type stalled struct {
	path  string
	key   string
	whole int64 // bytes of an answer that is read

	opened  atomic.Int64
	held    atomic.Int64 // connections whose answers were not written to the end
	missing atomic.Int64 // bytes that were not
}

const (
	stalledEach = 10 // connections for pages, and as many for files
	pipelined   = 4  // requests on a connection that is not read
	largeTexts  = 20 // more than a page of 1 MiB has room for
	flooders    = 2
	filterers   = 2
)

// startMix puts the other load on the gateway of w.
func startMix(w *world) *mix {
	w.t.Helper()
	m := &mix{w: w, release: make(chan struct{})}
	m.reader = w.tenant("reader", "enterprise")
	m.reader.devices = []device{m.reader.link("+15550010000")}
	m.fillChat()
	m.neighbour = w.tenant("neighbour", "starter")
	w.command(&struct{}{}, "workspace", "set", m.neighbour.workspace, "--messages", "10000000")
	m.hang()
	m.neighbour.devices = []device{m.neighbour.link("+15550020000")}
	m.pages.path, m.pages.key = "/v1/messages?limit=200&chatId="+url.QueryEscape(writer), m.reader.key
	m.files.path = "/v1/openapi.json"
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = sync.OnceFunc(func() { cancel(); close(m.release) })
	w.t.Cleanup(m.remove)
	for _, s := range []*stalled{&m.pages, &m.files} {
		s.whole = m.measure(s)
		for range stalledEach {
			m.load.Go(func() { m.stall(ctx, s) })
		}
	}
	for i := range filterers {
		m.load.Go(func() { m.filter(ctx, i) })
	}
	m.spend(ctx)
	m.load.Go(func() { m.spendAgain(ctx) })
	for i := range flooders {
		m.load.Go(func() { m.send(ctx, m.neighbour.driver.rand(4, i, 0)) })
	}
	return m
}

// end ends the load and waits until all requests are answered.
func (m *mix) end() {
	if m != nil {
		m.stop()
		m.load.Wait()
	}
}

// remove ends everything, whether or not the gateway answers.
func (m *mix) remove() {
	close(m.neighbour.driver.over)
	m.end()
	m.hanging.Close()
	for _, there := range []*world{m.reader, m.neighbour} {
		if err := there.driver.notes.Close(); err != nil {
			m.w.t.Error(err)
		}
	}
}

// tenant is another workspace of the same gateway, with a ledger of its own.
func (w *world) tenant(name, plan string) *world {
	w.t.Helper()
	there := &world{
		t: w.t, opts: w.opts, dir: filepath.Join(w.dir, name), url: w.url, vendor: w.vendor,
		gateway: w.gateway, numbers: map[string]string{}, written: map[string]bool{},
	}
	there.opts.Once, there.opts.Changes = true, false
	there.driver = newDriver(there, w.driver.http)
	err := os.Mkdir(there.dir, 0o700)
	if err == nil {
		there.driver.notes, err = chaos.OpenJournal(filepath.Join(there.dir, "driver.jsonl"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	there.furnishWith(name, plan)
	return there
}

// hang gives the neighbour an endpoint that answers the handshake and nothing after it.
func (m *mix) hang() {
	m.hanging = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct{ Type, Challenge string }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			return // the gateway was killed while it was sending
		}
		if e.Type == "webhook.verification" {
			fmt.Fprintf(w, `{"challenge":%q}`, e.Challenge)
			return
		}
		m.hung.Add(1)
		select {
		case <-r.Context().Done():
		case <-m.release:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	m.neighbour.subscribe(map[string]any{"url": m.hanging.URL, "maxInFlight": 64})
}

const writer = "+15558889999" // a contact that writes long texts

// fillChat lets more texts arrive than a page has room for.
func (m *mix) fillChat() {
	for i := range largeTexts {
		in := map[string]string{
			"to": m.reader.devices[0].number, "from": writer, "type": "text",
			"body": fmt.Sprintf("%d %s", i, strings.Repeat("x", 65_000)),
		}
		if err := m.w.vendor.ask("POST", "/inbound", in, nil); err != nil {
			m.w.t.Error(err)
		}
	}
	m.w.await("long texts", func() bool { return m.reader.queued() == 0 })
}

func (s *stalled) request() string {
	header := ""
	if s.key != "" {
		header = "Authorization: Bearer " + s.key + "\r\n"
	}
	return "GET " + s.path + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n"
}

// measure reads one answer.
func (m *mix) measure(s *stalled) (size int64) {
	base, _ := m.w.gateway.where()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err == nil {
		defer conn.Close()
		fmt.Fprint(conn, strings.Replace(s.request(), "\r\n", "\r\nConnection: close\r\n", 1))
		size, err = io.Copy(io.Discard, conn)
	}
	if err != nil || size < 1<<19 {
		m.w.t.Errorf("%s has %d bytes (%v): too few to hold", s.path, size, err)
	}
	return size
}

// stall asks for large answers and reads none of them, again in each life of the gateway.
func (m *mix) stall(ctx context.Context, s *stalled) {
	for ctx.Err() == nil {
		base, changed := m.w.gateway.where()
		if base != "" {
			m.holdOne(ctx, s, strings.TrimPrefix(base, "http://"), changed)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// holdOne holds one connection until the gateway is killed. What can be read of it then is
// what the gateway had written.
func (m *mix) holdOne(ctx context.Context, s *stalled, address string, changed <-chan struct{}) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		pause(changed)
		return
	}
	defer conn.Close()
	s.opened.Add(1)
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		m.w.t.Error(err)
	}
	if _, err := io.WriteString(conn, strings.Repeat(s.request(), pipelined)); err != nil {
		return
	}
	first, err := conn.Read(make([]byte, 1))
	if err != nil {
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
		return
	}
	rest, _ := io.Copy(io.Discard, conn) // the connection is broken, and its error says nothing
	if missing := pipelined*s.whole - int64(first) - rest; missing > 0 {
		s.held.Add(1)
		s.missing.Add(missing)
	}
}

// rare are lists that look far for little.
var rare = []string{
	"/v1/messages?status=expired", "/v1/messages?chatId=%2B15559999999", "/v1/messages?until=2020-01-01T00:00:00Z",
	"/v1/messages?direction=outbound&status=queued", "/v1/messages?archived=true",
	"/v1/messages?since=2100-01-01T00:00:00Z", "/v1/events?type=device.banned", "/v1/messages?status=read&archived=true",
}

// filter lists with the filters, one after another.
func (m *mix) filter(ctx context.Context, n int) {
	for ; ctx.Err() == nil; n++ {
		base, changed := m.w.gateway.where()
		if base == "" {
			pause(changed)
			continue
		}
		switch status := m.list(ctx, m.w, base+rare[n%len(rare)]); status {
		case http.StatusOK:
			m.filters.Add(1)
			pause(changed) // or the test measures only how fast lists are
		case 0, http.StatusTooManyRequests, http.StatusServiceUnavailable:
			pause(changed)
		default:
			m.w.t.Errorf("%s is answered %d", rare[n%len(rare)], status)
		}
	}
}

// spend makes requests as the neighbour until its plan allows no more at once, so that its
// sends exceed its rate however slow the machine is.
func (m *mix) spend(ctx context.Context) {
	for ctx.Err() == nil {
		base, changed := m.w.gateway.where()
		if base == "" {
			pause(changed)
			continue
		}
		switch m.list(ctx, m.neighbour, base+"/v1/devices") {
		case http.StatusTooManyRequests:
			return
		case http.StatusOK:
		default:
			pause(changed)
		}
	}
}

// spendAgain does so after each start of the gateway, which has forgotten what was spent.
func (m *mix) spendAgain(ctx context.Context) {
	for {
		_, changed := m.w.gateway.where()
		select {
		case <-changed:
			m.spend(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// list returns the status of an answer to a workspace, or 0 if there was none.
func (m *mix) list(ctx context.Context, as *world, target string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		m.w.t.Error(err)
		return 0
	}
	req.Header = as.header.Clone()
	res, err := m.w.driver.http.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// send sends as the neighbour as fast as its plan allows, and lets a contact write for each
// message that is accepted.
func (m *mix) send(ctx context.Context, r *rand.Rand) {
	there, caller := m.neighbour, r.Uint32()
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprintf("%08x-%d-%s", caller, n, filler(r))
		there.driver.insist(chaos.Ask{
			Key: text, Device: there.devices[0].id, To: fmt.Sprintf("+1555778%04d", r.IntN(4)), Body: "out-" + text,
		}, r)
		in := map[string]string{"to": there.devices[0].number, "from": "+15558880009", "type": "text", "body": "in-" + text}
		if err := m.w.vendor.ask("POST", "/inbound", in, nil); err != nil {
			m.w.t.Error(err)
			return
		}
		m.flood.Add(1)
	}
}

// counts are what shows that each part of the mix was at work.
func (m *mix) counts() map[string]int64 {
	if m == nil {
		return nil
	}
	return map[string]int64{
		"connections that held a page at a kill":        m.pages.held.Load(),
		"connections that held a file at a kill":        m.files.held.Load(),
		"lists with a filter that were answered":        m.filters.Load(),
		"sends of the neighbour that were accepted":     int64(len(m.neighbour.driver.acceptedBy(""))),
		"sends of the neighbour beyond its plan's rate": m.neighbour.driver.throttled.Load(),
		"messages that arrived for the neighbour":       m.flood.Load(),
		"posts to the endpoint that hangs":              m.hung.Load(),
	}
}

func (m *mix) summary() string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("\nthe mix: %d of %d connections held pages at a kill (%d MiB not written), "+
		"%d of %d held files (%d MiB); %d lists with filters\n"+
		"the neighbour: %d accepted, %d throttled, %d arrived, %d posts hung",
		m.pages.held.Load(), m.pages.opened.Load(), m.pages.missing.Load()>>20,
		m.files.held.Load(), m.files.opened.Load(), m.files.missing.Load()>>20, m.filters.Load(),
		len(m.neighbour.driver.acceptedBy("")), m.neighbour.driver.throttled.Load(), m.flood.Load(), m.hung.Load())
}

// judge judges the neighbour by the rules that hold at every moment: its endpoint never
// answers, and its queue is not awaited.
func (m *mix) judge(kills int) []chaos.Violation {
	if m == nil {
		return nil
	}
	e := m.neighbour.evidence()
	e.Interrupted = kills
	return chaos.JudgeNow(e)
}
