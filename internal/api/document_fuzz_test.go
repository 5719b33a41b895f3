package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/web"
)

// prober asks a running server for things, as the document says and otherwise.
type prober struct {
	*server
	wire    *httptest.Server
	ops     []operation
	callers []*caller
	turn    int
	chance  *rand.Rand
	seen    map[string]map[int]int                       // answers by operation and status
	also    func(*attempt, *http.Response, []byte) error // what else must hold of an answer
}

// caller is a tenant with things to ask about.
type caller struct {
	*tenant
	things   map[string][]string
	keys     []string // the good one first
	replaced int      // things
}

// newProber makes a prober with a number of callers on a server of its own.
func newProber(tb testing.TB, callers int) *prober {
	tb.Helper()
	p := proberOf(tb, newServer(tb), truth)
	for range callers {
		p.callers = append(p.callers, p.caller())
	}
	return p
}

// proberOf makes a prober without callers.
func proberOf(tb testing.TB, s *server, lie func(http.Handler) http.Handler) *prober {
	tb.Helper()
	s.each(func(s *server) { s.api.SetPulse(5 * time.Millisecond) })
	p := &prober{server: s, wire: served(tb, lie(s.handler)), seen: map[string]map[int]int{}}
	for _, id := range slices.Sorted(maps.Keys(routes())) {
		for _, methods := range described().Paths {
			for _, op := range methods {
				if op.OperationID == id {
					p.ops = append(p.ops, op)
				}
			}
		}
	}
	return p
}

// served listens with the limits of the real server.
func served(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	wire := httptest.NewUnstartedServer(h)
	wire.Config.MaxHeaderBytes = web.MaxHeaderBytes
	wire.Start()
	tb.Cleanup(wire.Close)
	return wire
}

func truth(h http.Handler) http.Handler { return h }

// caller makes a tenant that has one of everything, and knows of what is
// another's.
func (p *prober) caller() *caller {
	p.t.Helper()
	c := &caller{tenant: p.tenant("enterprise"), things: map[string][]string{}}
	other := p.tenant("enterprise")
	var foreign, foreignMessage string
	if len(p.callers) > 0 {
		foreign, foreignMessage = p.callers[0].things["dev_"][0], p.callers[0].things["msg_"][0]
	} else {
		foreign, foreignMessage = string(other.device("other", postern.Unlinked)), "msg_x"
	}
	c.things["dev_"] = []string{
		"", "", linking(c.tenant), string(c.device("u", postern.Unlinked)), string(c.device("v", postern.Unlinked)),
		owing(c.tenant), comparing(c.tenant), foreign, "dev_01JD8Z3NDEKTSV4RRFFQ69G5FA",
	}
	c.things["msg_"] = []string{"", "", "", "", "", foreignMessage, "msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"}
	c.keys = []string{
		c.key, "", c.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.UsageRead}}),
		p.tenant("free").key, "pst_x", postern.NewKeySecret(),
	}
	c.connect()
	c.subscribe()
	c.things["med_"] = []string{upload(c.tenant), receivedFile(c.tenant), "med_01JD8Z3NDEKTSV4RRFFQ69G5FA"}
	c.things["ct_"] = []string{contact(c.tenant), contact(c.tenant), "ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"}
	c.things["rpl_"] = []string{replay(c.tenant), "rpl_01JD8Z3NDEKTSV4RRFFQ69G5FA"}
	c.things["evt_"] = anID.FindAllString(c.do("GET", "/v1/events?limit=1", "").Body.String(), 1)
	for _, list := range []string{"devices", "events", "messages"} {
		c.things["cursor"] = append(c.things["cursor"], c.do("GET", "/v1/"+list+"?limit=1", "").member("nextCursor"))
	}
	return c
}

// connect makes a connected device with messages, and a key for it.
func (c *caller) connect() {
	device, message := message(c.tenant)
	labeled(c.tenant, device)
	copy(c.things["dev_"], []string{device, device})
	copy(c.things["msg_"], []string{
		message, message, poll(c.tenant, device), received(c.tenant, device), heard(c.tenant, device),
	})
	c.keys[1] = c.newKey(gateway.NewKey{Devices: []postern.DeviceID{postern.DeviceID(device)}})
}

// subscribe makes an endpoint with a delivery.
func (c *caller) subscribe() {
	endpoint := delivery(c.tenant)
	c.things["whk_"] = []string{endpoint, endpoint, "whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"}
	c.things["dlv_"] = []string{
		c.do("GET", "/v1/webhooks/"+endpoint+"/deliveries", "").list().Data[0].ID,
		"dlv_01JD8Z3NDEKTSV4RRFFQ69G5FA",
	}
}

// replace makes anew what the target of a request has used up.
func (c *caller) replace(target string) {
	c.replaced++
	if strings.Contains(target, c.things["whk_"][0]) {
		c.subscribe()
		return
	}
	for kind, makers := range map[string][]func(*tenant) string{
		"dev_": {nil, nil, linking, unlinked, unlinked, owing, comparing}, "med_": {upload, receivedFile},
		"ct_": {contact, contact},
	} {
		for i, build := range makers {
			switch {
			case !strings.Contains(target, c.things[kind][i]):
			case build == nil:
				c.connect()
				return
			default:
				c.things[kind][i] = build(c.tenant)
			}
		}
	}
}

// worn is how many things a caller may replace: those that are left behind count for its plan.
const worn = 30

// ends are operations after which a caller has not everything any more.
func ends() []string {
	return []string{
		"deleteDevice", "deleteMedia", "eraseContact", "unlinkDevice", "deleteWebhook", "cancelLink", "openLink", "scanInSandbox",
		"answerPasskey", "confirmLink",
	}
}

// try sends the request that the choices make, and judges the answer.
func (p *prober) try(data []byte) error {
	p.turn = (p.turn + 1) % len(p.callers)
	c := p.callers[p.turn]
	g := &generator{
		document: described(), dice: &dice{data: data}, things: c.things,
		n: rand.Int(),
	} // only so that keys differ
	a := g.request(p.ops)
	unlinked := func(id string) bool { return strings.Contains(a.target, id) }
	if a.op.OperationID == "scanInSandbox" && slices.ContainsFunc(c.things["dev_"][3:5], unlinked) {
		return nil // it waits for a code that never comes
	}
	key := c.keys[0]
	if g.seldom() {
		a.plain = false
		key = of(g.dice, c.keys...)
	}
	a.header.Set("Authorization", "Bearer "+key)
	status, err := p.send(a)
	if status/100 == 2 && slices.Contains(ends(), a.op.OperationID) {
		if c.replace(a.target); c.replaced == worn {
			p.callers[p.turn] = p.caller()
		}
	}
	return err
}

// send makes the request and compares the answer with the document. What
// cannot be sent as HTTP has no answer.
func (p *prober) send(a *attempt) (status int, err error) {
	req, err := http.NewRequestWithContext(p.t.Context(), a.method, p.wire.URL+a.target, bytes.NewReader(a.body))
	if err != nil {
		return 0, nil // no URL, or no method
	}
	req.Header = a.header
	resp, err := p.wire.Client().Transport.RoundTrip(req)
	if err != nil {
		if strings.Contains(err.Error(), "invalid header") || strings.Contains(err.Error(), "invalid method") {
			return 0, nil
		}
		return 0, fmt.Errorf("%s %s: no answer: %w", a.method, a.target, err)
	}
	defer resp.Body.Close()
	body, err := readUntilIdle(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("%s %s: the answer is cut: %w", a.method, a.target, err)
	}
	p.note(a, resp.StatusCode)
	err = a.judge(req, resp, body)
	if err == nil && p.also != nil {
		err = p.also(a, resp, body)
	}
	if err != nil {
		return resp.StatusCode, fmt.Errorf("%s %.300s %.300q: %w%s", a.method, a.target, a.body, err, p.cause(resp))
	}
	return resp.StatusCode, nil
}

// cause is what the log says of a request whose answer is an internal error.
func (p *prober) cause(resp *http.Response) string {
	if resp.StatusCode != http.StatusInternalServerError {
		return ""
	}
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "internal error") && strings.Contains(line, resp.Header.Get("Request-Id")) {
			return "\n" + line
		}
	}
	return ""
}

// enough is how much of an answer is read: more than one may have, except a stream.
const enough = 2 * paging.MaxBytes

// readUntilIdle reads an answer to its end, and a stream to its first heartbeat.
func readUntilIdle(r io.Reader) ([]byte, error) {
	var body bytes.Buffer
	part := make([]byte, 4096)
	for {
		n, err := r.Read(part)
		body.Write(part[:n])
		if text, idle := bytes.CutSuffix(body.Bytes(), []byte(heartbeat)); idle || body.Len() > enough {
			return text, nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return body.Bytes(), err
		}
	}
}

func (p *prober) note(a *attempt, status int) {
	p.count(a.op.OperationID, status, 1)
}

func (p *prober) count(operation string, status, n int) {
	if p.seen[operation] == nil {
		p.seen[operation] = map[int]int{}
	}
	p.seen[operation][status] += n
}

// judge is what must hold of every answer.
func (a *attempt) judge(req *http.Request, resp *http.Response, body []byte) error {
	switch {
	case resp.StatusCode >= 500:
		return fmt.Errorf("%d %s", resp.StatusCode, body)
	case a.plain && !unfit(resp, body) && slices.Contains([]int{400, 401, 405, 406, 413, 415, 422, 431}, resp.StatusCode):
		return fmt.Errorf("a request as described is answered %d %s", resp.StatusCode, body)
	case a.broken && resp.StatusCode < 400:
		return fmt.Errorf("a request that is not as described is answered %d %s", resp.StatusCode, body)
	}
	return described().check(req, resp.StatusCode, resp.Header, body)
}

// unfit tells whether a message was refused for its file: what a file is, and how it is
// shown, is not in the document.
func unfit(resp *http.Response, body []byte) bool {
	var p refusal
	return resp.StatusCode == http.StatusUnprocessableEntity && json.Unmarshal(body, &p) == nil &&
		len(p.Errors) == 1 && slices.Contains([]string{"/media", "/media/id", "/media/filename", "/round", "/type"}, p.Errors[0].Pointer)
}

// FuzzDocument makes requests from the OpenAPI document, as it says and
// broken, and sends them to a running server: no 5xx, no panic, and every
// answer is as the document says.
func FuzzDocument(f *testing.F) {
	p := newProber(f, 4) // or their rate would be used up
	for i := range p.ops {
		f.Add([]byte{byte(i)})
		for odd := range 3 {
			f.Add(append([]byte{byte(i)}, slices.Insert(bytes.Repeat([]byte{1}, 16), odd, 7, byte(odd))...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p.t = t // what the fuzzer is made with may not be used any more
		if err := p.try(data); err != nil {
			t.Error(err)
		}
	})
}

// TestRequestsFromTheDocument makes the same requests as the fuzzer, by chance,
// and checks that they are worth making: each operation is answered well and
// refused, for every kind of mistake. Four probers share the work, and end when all of that
// has happened.
func TestRequestsFromTheDocument(t *testing.T) {
	t.Parallel()
	const fewest, most = 4, 80
	all := prober{seen: map[string]map[int]int{}}
	var probers []*prober
	for i := range 4 {
		probers = append(probers, newProber(t, 1))
		probers[i].chance = rand.New(rand.NewPCG(1, uint64(i)))
	}
	all.ops = probers[0].ops
	for round := 0; round < fewest || round < most && len(all.missing()) > 0; round++ {
		t.Run("round", func(t *testing.T) {
			for _, p := range probers {
				t.Run("prober", func(t *testing.T) {
					t.Parallel()
					p.probe(t)
				})
			}
		})
		for _, p := range probers {
			all.take(p)
		}
	}
	t.Logf("answers: %v", all.statuses())
	for _, what := range all.missing() {
		t.Error(what)
	}
}

// take counts what another has seen.
func (p *prober) take(other *prober) {
	for id, seen := range other.seen {
		for status, n := range seen {
			p.count(id, status, n)
		}
	}
	clear(other.seen)
}

// probe makes a request for each operation.
func (p *prober) probe(t *testing.T) {
	p.t = t
	for n := range p.ops {
		data := make([]byte, 64)
		for i := range data {
			data[i] = byte(p.chance.Uint32())
		}
		data[0] = byte(n)
		if err := p.try(data); err != nil {
			t.Error(err)
		}
	}
}

// missing returns the operations that were never answered well, and the kinds of refusals that
// were never given.
func (p *prober) missing() (list []string) {
	all := p.statuses()
	for _, status := range []int{400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 431} {
		if all[status] == 0 {
			list = append(list, fmt.Sprintf("no answer was %d: %v", status, all))
		}
	}
	return append(list, p.unused()...)
}

// statuses counts the answers by status.
func (p *prober) statuses() map[int]int {
	all := map[int]int{}
	for _, seen := range p.seen {
		for status, n := range seen {
			all[status] += n
		}
	}
	return all
}

// unused returns the operations that were never answered well.
func (p *prober) unused() (list []string) {
	for _, op := range p.ops {
		good := 0
		for status, n := range p.seen[op.OperationID] {
			if status < 300 {
				good += n
			}
		}
		if good == 0 && routes()[op.OperationID].ok < 300 {
			list = append(list, fmt.Sprintf("%s was never answered well: %v", op.OperationID, p.seen[op.OperationID]))
		}
	}
	return list
}

// TestTheProberFindsLies lets a server answer otherwise than the document says.
func TestTheProberFindsLies(t *testing.T) {
	t.Parallel()
	honest := newProber(t, 1)
	if err := honest.try([]byte{0}); err != nil {
		t.Errorf("the truth is no lie: %v", err)
	}
	for name, lie := range map[string]func(w *httptest.ResponseRecorder){
		"status":     func(w *httptest.ResponseRecorder) { w.Code++ },
		"failure":    func(w *httptest.ResponseRecorder) { w.Code = 502 },
		"header":     func(w *httptest.ResponseRecorder) { w.Header().Del("RateLimit") },
		"type":       func(w *httptest.ResponseRecorder) { w.Header().Set("Content-Type", "text/plain") },
		"body":       func(w *httptest.ResponseRecorder) { w.Body = bytes.NewBufferString(`{"data":[{}],"nextCursor":5}`) },
		"no refusal": func(w *httptest.ResponseRecorder) { w.Code = 200 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &prober{
				server: honest.server, ops: honest.ops, callers: honest.callers, seen: map[string]map[int]int{},
			}
			p.wire = served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				p.handler.ServeHTTP(rec, r)
				lie(rec)
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				w.Write(rec.Body.Bytes())
			}))
			list := byte(slices.IndexFunc(p.ops, func(op operation) bool { return op.OperationID == "listDevices" }))
			err := p.try([]byte{list})
			if name == "no refusal" {
				_, err = p.send(&attempt{
					op: p.ops[list], method: "GET", target: "/v1/devices?x=1",
					header: http.Header{"Authorization": {"Bearer " + p.callers[0].key}},
					broken: true,
				})
			}
			if err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}
