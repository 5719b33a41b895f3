package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"postern/internal/paging"
	"postern/internal/store/storetest"
)

// fewRequests are enough for "make test".
const fewRequests = 200

var requests = flag.Int("requests", fewRequests, "how many requests two workspaces make for each other's things, per engine")

// TestTwoWorkspacesSeeNothingOfEachOther makes requests from the OpenAPI document as two
// workspaces that know each other's ids, cursors and idempotency keys. Everything that a
// workspace has bears its mark. No answer is a 5xx, is larger than its bound, or contains
// a mark or an id of the other; and what the other has does not change.
func TestTwoWorkspacesSeeNothingOfEachOther(t *testing.T) {
	list := servings()
	if *requests <= fewRequests {
		delete(list, "postgres") // three servers use the same queries
	}
	onEach(t, list, func(t *testing.T, start starter) {
		n := newNeighbours(t, start, truth)
		n.fill()
		n.useEverything()
		n.readWholePages()
		for round := range rounds() {
			n.ask(*requests/rounds()/2, n.sides[:]...)
			n.apart(n.takeTurns(*requests / rounds() / 4))
			t.Logf("round %d of %d: %d ids", round+1, rounds(), len(n.owner))
		}
		n.worth()
	})
}

// rounds is how often the rows of each workspace are compared while it makes no requests.
func rounds() int { return min(1+*requests/50_000, 20) }

// neighbours are two workspaces of one server, or of several, each of which asks for the other's things.
type neighbours struct {
	*prober

	sides [2]*side
	most  atomic.Int64 // bytes of an answer

	mu    sync.Mutex       // guards owner
	owner map[string]*side // ids, by the workspace that was shown them first
}

func newNeighbours(tb testing.TB, start starter, lie func(http.Handler) http.Handler) *neighbours {
	tb.Helper()
	phones := &markedPhones{}
	s := start(tb, phones)
	s.each(func(s *server) { s.api.HurryRates(1000) }) // or most answers would be 429
	n := &neighbours{prober: proberOf(tb, s, lie), owner: map[string]*side{}}
	for i, name := range []string{"NORTH", "SOUTH"} {
		n.sides[i] = n.newSide("CANARY"+name+"4711", fmt.Sprintf("+49301%d", i)) // the sandbox makes up others
	}
	phones.n = n
	for _, side := range n.sides {
		side.furnish()
	}
	return n
}

// fill gives both workspaces more than a page holds.
func (n *neighbours) fill() {
	n.t.Helper()
	for _, side := range n.sides {
		side.fill()
	}
}

// useEverything lets each workspace use every operation on things of its own.
func (n *neighbours) useEverything() {
	n.t.Helper()
	for _, side := range n.sides {
		p := n.proberFor(side)
		for _, op := range n.ops {
			r := routes()[op.OperationID]
			target, body := r.build(side.tenant)
			a := &attempt{op: op, method: r.method, target: target, body: []byte(body), header: http.Header{}}
			a.header.Set("Authorization", "Bearer "+side.key)
			if body != "" {
				a.header.Set("Content-Type", "application/json")
			}
			if op.OperationID == "scanInSandbox" {
				side.renewCode(target)
			}
			if status, err := p.send(a); err != nil || status != r.ok {
				n.t.Errorf("%s is answered %d, want %d: %v", op.OperationID, status, r.ok, err)
			}
			side.furnish()
		}
		n.take(p)
	}
}

// readWholePages lets each workspace ask for pages that are cut at their bound.
func (n *neighbours) readWholePages() {
	n.t.Helper()
	for _, side := range n.sides {
		p := n.proberFor(side)
		for _, operation := range []string{"listMessages", "listEvents"} {
			a := n.get(operation, side)
			a.target += "?limit=200"
			if status, err := p.send(a); err != nil || status != http.StatusOK {
				n.t.Errorf("%s is answered %d: %v", a.target, status, err)
			}
		}
		n.take(p)
	}
}

// get is a list's ordinary request.
func (n *neighbours) get(operationID string, s *side) *attempt {
	i := slices.IndexFunc(n.ops, func(op operation) bool { return op.OperationID == operationID })
	return &attempt{
		op: n.ops[i], method: http.MethodGet, target: n.ops[i].path,
		header: http.Header{"Authorization": {"Bearer " + s.key}},
	}
}

// proberFor makes a prober whose answers go to one workspace.
func (n *neighbours) proberFor(s *side) *prober {
	return &prober{server: n.server, wire: n.wire, ops: n.ops, seen: map[string]map[int]int{}, also: s.shown}
}

// workers is how many requests are under way at once.
func workers() int { return 8 * runtime.GOMAXPROCS(0) }

// ask makes at least so many requests as the workspaces, at the same time.
func (n *neighbours) ask(count int, sides ...*side) {
	n.t.Helper()
	var wg sync.WaitGroup
	probers := make([]*prober, workers())
	for i := range probers {
		side := sides[i%len(sides)]
		probers[i] = n.proberFor(side)
		chance := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		wg.Go(func() {
			for range count/len(probers) + 1 {
				if err := side.try(probers[i], chance); err != nil {
					n.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, p := range probers {
		n.take(p)
	}
}

// takeTurns lets each workspace make requests while the other makes none, and returns what
// the database held of each after the other's turn.
func (n *neighbours) takeTurns(count int) (rows [2][]string) {
	n.t.Helper()
	for i, side := range n.sides {
		before := n.rowsOf(n.sides[1-i])
		n.ask(count, side)
		rows[1-i] = n.rowsOf(n.sides[1-i])
		unchanged(n.t, before, rows[1-i])
	}
	return rows
}

var aCursor = regexp.MustCompile(`"nextCursor":"([^"]+)"`)

// idsIn finds ids in a text, except those of requests. It is faster than a regular
// expression, and most of the texts are long.
func idsIn(text []byte) (ids []string) {
	kinds := []string{"dev", "msg", "whk", "evt", "dlv", "rpl", "lnk", "key", "ws"}
	for rest, end := text, 0; ; rest = text[end:] {
		i := bytes.IndexByte(rest, '_')
		if i < 0 {
			return ids
		}
		end += i + 1
		for _, kind := range kinds {
			if bytes.HasSuffix(rest[:i], []byte(kind)) && ulidLength(text[end:]) == 26 {
				ids = append(ids, kind+"_"+string(text[end:end+26]))
			}
		}
	}
}

// ulidLength is how many characters at the start of a text may be those of a ULID.
func ulidLength(text []byte) (n int) {
	for n < min(len(text), 26) && strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", text[n]) >= 0 {
		n++
	}
	return n
}

// shown is what must hold of an answer to the workspace, beside what the document says.
func (s *side) shown(a *attempt, resp *http.Response, body []byte) error {
	var all bytes.Buffer
	if err := resp.Header.Write(&all); err != nil {
		return err
	}
	all.Write(body)
	other := s.other()
	switch {
	case bytes.Contains(all.Bytes(), []byte(other.mark)), bytes.Contains(all.Bytes(), []byte(other.number)):
		return fmt.Errorf("%d %.500q shows what bears the mark of the other workspace", resp.StatusCode, &all)
	case resp.StatusCode >= 400 && bytes.Contains(all.Bytes(), []byte(s.mark)):
		return fmt.Errorf("%d %.500q repeats what was sent", resp.StatusCode, &all)
	}
	if err := s.bounded(a, body); err != nil {
		return err
	}
	ids := idsIn(all.Bytes())
	if resp.StatusCode < 300 {
		s.find(a, ids, aCursor.FindSubmatch(body))
	}
	return s.own(ids)
}

// bounded checks the size of an answer, and of a stream that of its longest event.
func (s *side) bounded(a *attempt, body []byte) error {
	size := len(body)
	if strings.HasSuffix(a.op.path, "/stream") {
		size = 0
		for event := range bytes.SplitSeq(body, []byte("\n\n")) {
			size = max(size, len(event))
		}
	}
	for most := s.n.most.Load(); int64(size) > most && !s.n.most.CompareAndSwap(most, int64(size)); {
		most = s.n.most.Load()
	}
	if size > paging.MaxBytes {
		return fmt.Errorf("the answer has %d bytes", size)
	}
	return nil
}

// own checks that the ids were not shown to the other workspace.
func (s *side) own(ids []string) error {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	for _, id := range ids {
		if owner := s.n.owner[id]; owner != nil && owner != s {
			return fmt.Errorf("the other workspace's %s is shown", id)
		}
		s.n.owner[id] = s
	}
	return nil
}

// rowsOf is what the database holds of a workspace.
func (n *neighbours) rowsOf(s *side) []string {
	n.t.Helper()
	if n.url != "" {
		return storetest.RowsOf(n.t, n.url, string(s.ws))
	}
	return storetest.RowsOf(n.t, n.dir, string(s.ws))
}

// apart checks that no row names things of both workspaces, and that no workspace was
// shown an id that is in a row of the other only.
func (n *neighbours) apart(held [2][]string) {
	n.t.Helper()
	for i, side := range n.sides {
		other := n.sides[1-i]
		rows := strings.Join(held[i], "\n")
		for _, id := range idsIn([]byte(rows)) {
			if n.owner[id] == other {
				n.t.Errorf("%s was shown to the other workspace", id)
			}
		}
		if strings.Contains(rows, other.mark) || strings.Count(rows, side.mark) < 50 {
			n.t.Errorf("of the rows of %s, %d bear its mark; or another's is there", side.mark, strings.Count(rows, side.mark))
		}
	}
}

// worth fails when the requests prove little.
func (n *neighbours) worth() {
	n.t.Helper()
	for _, what := range n.unused() {
		n.t.Error(what)
	}
	all, kinds := 0, map[int]int{}
	for _, seen := range n.seen {
		for status, count := range seen {
			all += count
			kinds[status/100] += count
		}
	}
	if kinds[2] < all/5 || n.seen429() > all/10 {
		n.t.Errorf("of %d answers, %d are 2xx and %d are 429", all, kinds[2], n.seen429())
	}
	if most := n.most.Load(); most < paging.MaxBytes*9/10 {
		n.t.Errorf("the largest answer has %d bytes: no page came near its bound", most)
	}
	n.t.Logf("%d requests, %d ids, largest answer %d bytes", all, len(n.owner), n.most.Load())
}

func (n *neighbours) seen429() (count int) {
	for _, seen := range n.seen {
		count += seen[http.StatusTooManyRequests]
	}
	return count
}

// TestTheNeighboursNoticeLeaks lets a server show and write too much.
func TestTheNeighboursNoticeLeaks(t *testing.T) {
	t.Parallel()
	leak := func(*httptest.ResponseRecorder) {}
	n := newNeighbours(t, newServerWith, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			leak(rec)
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			w.Write(rec.Body.Bytes())
		})
	})
	owner, reader := n.sides[1], n.proberFor(n.sides[0])
	if err := owner.own([]string{string(owner.deviceID())}); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.send(n.get("listWebhooks", n.sides[0])); err != nil {
		t.Errorf("without a leak: %v", err)
	}
	for name, l := range leaks(owner) {
		leak = l
		if _, err := reader.send(n.get("listWebhooks", n.sides[0])); err == nil {
			t.Errorf("nobody noticed %s", name)
		}
	}
	before := n.rowsOf(owner)
	owner.receive(owner.deviceID(), "x")
	if slices.Equal(before, n.rowsOf(owner)) {
		t.Error("nobody noticed a message")
	}
}

// leaks are ways to show what belongs to a workspace, or too much.
func leaks(owner *side) map[string]func(*httptest.ResponseRecorder) {
	header := func(value string) func(*httptest.ResponseRecorder) {
		return func(w *httptest.ResponseRecorder) { w.Header().Set("X-Leak", value) }
	}
	return map[string]func(*httptest.ResponseRecorder){
		"a mark":   header(owner.mark),
		"a number": header(owner.number + "0001"),
		"an id":    header(string(owner.deviceID())),
		"too many bytes": func(w *httptest.ResponseRecorder) {
			w.Body.Write(bytes.Repeat([]byte(" "), paging.MaxBytes))
		},
	}
}
