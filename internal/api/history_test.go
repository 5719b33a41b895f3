package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"

	"github.com/anishathalye/porcupine"
)

var histories = flag.Int("histories", 10, "how many histories of concurrent sends are checked")

// The operations on a month's quota, and what came of them.
type (
	sending struct{} // bool: accepted
	refund  struct{} // of a message that was accepted before
	reading struct{} // int: used
	quota   struct{ limit, used int }
)

// quotaModel says what a quota promises: a unit is spent when one is left, a
// send is refused only when none is, and what is shown is so.
func quotaModel(start quota) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, in, out any) (bool, any) {
			q := state.(quota)
			switch in.(type) {
			case refund:
				return true, quota{q.limit, q.used - 1}
			case reading:
				return out == q.used, q
			}
			if accepted := out.(bool); !accepted {
				return q.used >= q.limit, q
			}
			return q.used < q.limit, quota{q.limit, q.used + 1}
		},
	}
}

// TestModelOfAQuotaSeesMistakes: a judge that never objects proves nothing.
func TestModelOfAQuotaSeesMistakes(t *testing.T) {
	t.Parallel()
	type did struct{ in, out any }
	for name, tt := range map[string]struct {
		list []did
		ok   bool
	}{
		"one at the last unit":     {[]did{{sending{}, true}, {sending{}, false}, {reading{}, 9}, {reading{}, 10}}, true},
		"two at the last unit":     {[]did{{sending{}, true}, {sending{}, true}}, false},
		"none at the last unit":    {[]did{{sending{}, false}, {sending{}, false}}, false},
		"two with one given back":  {[]did{{sending{}, true}, {sending{}, true}, {refund{}, nil}}, true},
		"a unit that is not there": {[]did{{sending{}, false}, {reading{}, 9}}, false},
		"more than the limit":      {[]did{{sending{}, true}, {reading{}, 11}}, false},
		"refused what was free":    {[]did{{refund{}, nil}, {sending{}, false}}, false},
	} {
		var ops []porcupine.Operation
		for i, d := range tt.list {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: d.in, Output: d.out, Call: 1, Return: 2})
		}
		if got := porcupine.CheckOperations(quotaModel(quota{10, 9}), ops); got != tt.ok {
			t.Errorf("%s: legal %v, want %v", name, got, tt.ok)
		}
	}
}

// historian writes a history of operations down.
type historian struct {
	start time.Time

	mu  sync.Mutex // guards ops
	ops []porcupine.Operation
}

// do records one operation.
func (h *historian) do(in any, op func() any) {
	call := time.Since(h.start)
	out := op()
	end := time.Since(h.start)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: len(h.ops), Input: in, Output: out, Call: call.Nanoseconds(),
		Return: end.Nanoseconds(),
	})
}

// spender sends over HTTP and gives back in the store.
type spender struct {
	*tenant
	device string
	url    string
	client *http.Client

	mu   sync.Mutex // guards sent
	sent []postern.MessageID
}

func (s *spender) ask(method, path, body string) (int, map[string]any) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	req.Header = http.Header{"Authorization": {"Bearer " + s.key}, "Content-Type": {"application/json"}}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	var answer map[string]any
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		s.t.Errorf("%s: %v", text, err)
	}
	return res.StatusCode, answer
}

func (s *spender) send() any {
	status, answer := s.ask("POST", "/v1/messages", `{"deviceId":"`+s.device+`","to":"+15551234567","body":"x"}`)
	if status == http.StatusAccepted {
		id, _ := answer["id"].(string)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, postern.MessageID(id))
		return true
	}
	if kind, _ := answer["type"].(string); status != http.StatusForbidden ||
		!strings.HasSuffix(kind, "/quota-exhausted") {
		s.t.Errorf("a send is answered %d %v", status, answer)
	}
	return false
}

func (s *spender) used() any {
	_, answer := s.ask("GET", "/v1/usage", "")
	messages, _ := answer["messages"].(map[string]any)
	used, _ := messages["used"].(float64)
	return int(used)
}

// giveBack ends a message whose first frame never left, three times at once, and at each server if there are
// several: it gives its unit back once.
func (s *spender) giveBack(id postern.MessageID) any {
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.next().db.Outbox.Finish(s.t.Context(), store.FinishOutbound{
				MessageID: id, Status: postern.Failed,
				Refund: true, At: postern.TimeOf(time.Now()),
			}); err != nil {
				s.t.Error(err)
			}
		})
	}
	wg.Wait()
	return nil
}

func newSpender(t *testing.T, start starter) *spender {
	t.Helper()
	srv := start(t, fakeSandbox{})
	mine := srv.tenant("enterprise")
	listening := httptest.NewServer(srv.handler)
	t.Cleanup(listening.Close)
	tr := &http.Transport{MaxIdleConnsPerHost: 80}
	t.Cleanup(tr.CloseIdleConnections)
	return &spender{tenant: mine, device: connected(mine), url: listening.URL, client: &http.Client{Transport: tr}}
}

// TestQuotaIsExactAtItsLastUnits lets 64 callers at once send with one unit
// left, or a few, many times, and looks whether each history could have
// happened one by one.
func TestQuotaIsExactAtItsLastUnits(t *testing.T) {
	onEach(t, servings(), func(t *testing.T, start starter) {
		var s *spender
		for n := range *histories {
			if n%300 == 0 {
				s = newSpender(t, start) // its rate is not used up
			}
			s.round(mix{sends: 64, left: 1 + n%2*(n%5)})
			if t.Failed() {
				t.Fatalf("in history %d", n)
			}
		}
	})
}

// TestUsageIsTrueWhileItChanges lets few callers send, read and give back at
// once. They are few because the search through such histories grows with
// their number like no other.
func TestUsageIsTrueWhileItChanges(t *testing.T) {
	onEach(t, servings(), func(t *testing.T, start starter) {
		var s *spender
		r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
		for n := range 5 * *histories {
			if n%1500 == 0 {
				s = newSpender(t, start)
			}
			s.round(mix{sends: 8, left: r.IntN(4), refunds: min(r.IntN(4), len(s.sent)), readings: r.IntN(4)})
			if t.Failed() {
				t.Fatalf("in history %d", n)
			}
		}
	})
}

// mix is what happens at once in a history.
type mix struct{ sends, refunds, readings, left int }

// round makes one history and checks it.
func (s *spender) round(m mix) {
	s.t.Helper()
	q := quota{len(s.sent) + m.left, len(s.sent)}
	if _, err := s.next().g.Workspaces.ChangeLimits(s.t.Context(), access.Operator(), s.ws,
		postern.Limits{Messages: &q.limit}); err != nil {
		s.t.Fatal(err)
	}
	h := s.play(m)
	if res := porcupine.CheckOperationsTimeout(quotaModel(q), h.ops, 5*time.Minute); res != porcupine.Ok {
		s.t.Errorf("a history from %+v is %s:\n%s", q, res, shown(h.ops))
	}
	accepted := 0
	for _, o := range h.ops {
		if o.Output == true {
			accepted++
		}
	}
	if m.refunds == 0 && accepted != m.left {
		s.t.Errorf("%d sends were accepted with %d units left", accepted, m.left)
	}
	if used := s.used(); used != len(s.sent) {
		s.t.Errorf("%d units are used, %d messages were accepted and not given back", used, len(s.sent))
	}
}

func (s *spender) play(m mix) *historian {
	h := &historian{start: time.Now()}
	back := s.sent[:m.refunds]
	s.sent = s.sent[m.refunds:]
	var wg sync.WaitGroup
	for range m.sends {
		wg.Go(func() { h.do(sending{}, s.send) })
	}
	for _, id := range back {
		wg.Go(func() { h.do(refund{}, func() any { return s.giveBack(id) }) })
	}
	for range m.readings {
		wg.Go(func() { h.do(reading{}, s.used) })
	}
	wg.Wait()
	return h
}

func shown(history []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range history {
		fmt.Fprintf(&b, "%8d %8d %T %v\n", o.Call/1000, o.Return/1000, o.Input, o.Output)
	}
	return b.String()
}
