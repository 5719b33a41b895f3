package chaos_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

// follower reads the stream of events of one server.
type follower struct {
	mu   sync.Mutex
	read chaos.Followed
}

// follow begins a stream, and returns when it has its place in the log.
func (w *world) followLog(n node) *follower {
	w.t.Helper()
	at, _ := n.where()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, at+"/v1/events/stream", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = w.header.Clone()
	res, err := (&http.Client{}).Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("follow the log: %v, %v", res, err)
	}
	f := &follower{}
	w.t.Cleanup(func() { res.Body.Close() })
	go func() {
		for lines := bufio.NewReader(res.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if id, ok := strings.CutPrefix(strings.TrimSpace(line), "id: "); ok {
				f.mu.Lock()
				f.read = append(f.read, id)
				f.mu.Unlock()
			}
		}
	}()
	w.await("a place in the log", func() bool { return len(f.ids()) > 0 })
	return f
}

func (f *follower) ids() chaos.Followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.read)
}

// TestMistakesOfSharingServersAreNamed proves that it is reported when a server writes although it is not its
// turn, so that a reader that follows the log passes over an event that is committed late.
func TestMistakesOfSharingServersAreNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	for mistake, want := range map[failpoint.Mistake]chaos.Rule{"": "", failpoint.WriteOutOfTurn: chaos.Skipped} {
		t.Run(string(mistake), func(t *testing.T) {
			w := newWorld(t, options{
				Bin: bin, Devices: 6, Callers: 2, Room: 20, Seed: 1, Mistake: mistake, Calm: true, Database: "postgres", Nodes: 3,
			})
			w.await("each server to work for devices", w.isSpread)
			f := w.followLog(w.nodes[1])
			w.driver.start()
			w.flowOn(3 * meanFlow)
			w.driver.finish()
			w.quieten()
			e := w.evidence()
			newest := e.State.Events[len(e.State.Events)-1].ID
			w.await("the newest event", func() bool { return slices.Contains(f.ids(), newest) })
			e.Followed = f.ids()
			found := map[chaos.Rule]int{}
			for _, v := range chaos.Judge(e) {
				found[v.Rule]++
			}
			t.Logf("%d events, %d read: %v", len(e.State.Events), len(e.Followed), found)
			if found[want] == 0 && want != "" || want == "" && len(found) > 0 {
				t.Errorf("found %v, want %q", found, want)
			}
		})
	}
}

// TestLostNoticesAreNamed proves that it is reported when the notifications of the other servers do not arrive,
// although each change is found in the end: because servers look for themselves every few seconds.
func TestLostNoticesAreNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	for mistake, late := range map[failpoint.Mistake]bool{"": false, failpoint.LoseNotices: true} {
		t.Run(string(mistake), func(t *testing.T) {
			w := newWorld(t, options{Bin: bin, Devices: 4, Room: 10, Seed: 1, Calm: true, Database: "postgres", Nodes: 2})
			n := w.nodes[1]
			n.kill()
			n.env = append(n.env, options{Mistake: mistake}.env()...)
			w.bootNode(n.gateway)
			w.await("each server to work for devices", w.isSpread)
			woken := w.wakes(n, w.followLog(n))
			t.Logf("%+v", woken)
			found := chaos.Judge(chaos.Evidence{Woken: woken})
			if late != slices.ContainsFunc(found, func(v chaos.Violation) bool { return v.Rule == chaos.WokenLate }) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// wakes has the other server commit events, one after the other, each after a stream of a server has got the
// one before.
func (w *world) wakes(n node, f *follower) chaos.Woken {
	w.t.Helper()
	const changes = 4
	i := slices.IndexFunc(w.owned(), func(d chaos.Owned) bool { return d.Owner == w.nodes[0].id(w.t) })
	device := w.owned()[i].Device
	before, at := polls(w.t, n), w.nodes[0].url
	for i := range changes {
		seen := len(f.ids())
		err := caller{w.driver.http, w.header}.call(http.MethodPost, at+"/v1/messages", map[string]any{
			"deviceId": device, "to": silent, "body": fmt.Sprint("change ", i), "whenDisconnected": "queue",
		}, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		w.await("an event of the other server", func() bool { return len(f.ids()) > seen })
	}
	return chaos.Woken{Asked: changes, Polled: polls(w.t, n) - before}
}

// polls counts how often a server looked at everything because of its clock.
func polls(t *testing.T, n node) int {
	t.Helper()
	log, err := os.ReadFile(n.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte(`"fail point","note":"poll"`))
}
