package chaos_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/internal/failpoint"

	"github.com/anishathalye/porcupine"
)

var rounds = flag.Int("rounds", 6, "how many idempotency keys to use; every third round kills the gateway")

// post is a request with an idempotency key.
type post struct{ text string } // the text of the message

type outcome struct {
	kind string // made, replayed, running, reused, or lost, which means unknown
	body string // of a 202 response
}

// deed is the state of a key: nothing yet, or the first request that took effect. Its
// answer is "" if nobody received it.
type deed struct {
	done         bool
	text, answer string
}

// idempotent is the model of an idempotency key: of all requests one takes effect, the
// others get its answer, and requests with another body are refused. A lost request may
// or may not have taken effect.
func idempotent() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{deed{}} },
		Step: func(state, in, out any) []any {
			var next []any
			for _, d := range step(state.(deed), in.(post), out.(outcome)) {
				next = append(next, d)
			}
			return next
		},
	}
	return m.ToModel()
}

func step(d deed, p post, o outcome) []deed {
	switch o.kind {
	case "running":
		return []deed{d}
	case "lost":
		if d.done {
			return []deed{d}
		}
		return []deed{d, {true, p.text, ""}}
	case "made":
		if !d.done {
			return []deed{{true, p.text, o.body}}
		}
	case "replayed":
		if d.done && d.text == p.text && (d.answer == "" || d.answer == o.body) {
			return []deed{{true, p.text, o.body}}
		}
	case "reused":
		if d.done && d.text != p.text {
			return []deed{d}
		}
	}
	return nil
}

// TestModelOfIdempotencySeesMistakes proves that the model can refuse a history.
func TestModelOfIdempotencySeesMistakes(t *testing.T) {
	history := func(list ...outcome) (ops []porcupine.Operation) {
		for i, o := range list {
			text, _, _ := strings.Cut(o.body, ":")
			end := int64(100)
			if o.kind == "lost" {
				end = math.MaxInt64
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: post{text}, Output: o, Call: 1, Return: end})
		}
		return ops
	}
	for name, tt := range map[string]struct {
		list []outcome
		ok   bool
	}{
		"one made":               {[]outcome{{"made", "a:1"}, {"replayed", "a:1"}, {"running", "a"}, {"reused", "b"}}, true},
		"two made":               {[]outcome{{"made", "a:1"}, {"made", "a:2"}}, false},
		"another answer":         {[]outcome{{"made", "a:1"}, {"replayed", "a:2"}}, false},
		"another body replayed":  {[]outcome{{"made", "a:1"}, {"replayed", "b:1"}}, false},
		"lost and made":          {[]outcome{{"lost", "a"}, {"made", "a:1"}}, true},
		"lost and replayed":      {[]outcome{{"lost", "a"}, {"replayed", "a:1"}, {"replayed", "a:1"}}, true},
		"lost, and two answers":  {[]outcome{{"lost", "a"}, {"replayed", "a:1"}, {"replayed", "a:2"}}, false},
		"replayed from nothing":  {[]outcome{{"replayed", "a:1"}}, false},
		"reused from nothing":    {[]outcome{{"reused", "a"}}, false},
		"refused its own body":   {[]outcome{{"made", "a:1"}, {"reused", "a"}}, false},
		"lost, then the other's": {[]outcome{{"lost", "a"}, {"reused", "b"}, {"replayed", "a:1"}}, true},
	} {
		if got := porcupine.CheckOperations(idempotent(), decided(history(tt.list...))); got != tt.ok {
			t.Errorf("%s: legal %v, want %v", name, got, tt.ok)
		}
	}
}

// contender sends requests with one key for one tenant.
type contender struct {
	header http.Header
	device string
}

// fight is the concurrent use of one idempotency key of one tenant.
type fight struct {
	w     *world
	by    contender
	key   string
	to    string
	start time.Time

	mu      sync.Mutex // guards what follows
	history []porcupine.Operation
	answers map[string]int // 202 responses, by their bytes
	running int            // refusals while another request was running
}

// insist posts until there is an answer, and records every attempt.
func (f *fight) insist(text string) {
	for {
		url, changed := f.w.gateway.where()
		if url != "" {
			call := time.Since(f.start)
			o, err := f.post(url, text)
			if err == nil ||
				!errors.Is(err, syscall.ECONNREFUSED) { // a request that was never sent is not part of the history
				f.note(text, o, call)
			}
			if o.kind != "lost" {
				return
			}
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (f *fight) note(text string, o outcome, call time.Duration) {
	end := time.Since(f.start).Nanoseconds()
	if o.kind == "lost" {
		end = math.MaxInt64 // it may still happen
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.kind == "running" {
		f.running++ // it changes nothing, wherever it stands in the history
		return
	}
	f.history = append(f.history, porcupine.Operation{
		ClientId: len(f.history), Input: post{text}, Output: o, Call: call.Nanoseconds(), Return: end,
	})
	if o.body != "" {
		f.answers[o.body]++
	}
}

// post makes one request.
func (f *fight) post(url, text string) (outcome, error) {
	body, err := json.Marshal(
		map[string]any{"deviceId": f.by.device, "to": f.to, "body": text, "whenDisconnected": "queue"})
	if err != nil {
		return outcome{}, err
	}
	req, err := http.NewRequest("POST", url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return outcome{}, err
	}
	req.GetBody = nil // else the client repeats a request with an Idempotency-Key by itself, and tells of one
	req.Header = f.by.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", f.key)
	res, err := f.w.driver.http.Do(req)
	if err != nil {
		return outcome{kind: "lost"}, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return outcome{kind: "lost"}, err
	}
	return f.read(res, string(answer)), nil
}

func (f *fight) read(res *http.Response, answer string) outcome {
	is := func(code string) bool { return strings.Contains(answer, `"code":"`+code+`"`) }
	switch {
	case res.StatusCode == 202 && res.Header.Get("Idempotent-Replayed") == "true":
		return outcome{"replayed", answer}
	case res.StatusCode == 202:
		return outcome{"made", answer}
	case res.StatusCode == 409 && is("IDEMPOTENCY_IN_PROGRESS"):
		return outcome{kind: "running"}
	case res.StatusCode == 422 && is("IDEMPOTENCY_KEY_REUSED"):
		return outcome{kind: "reused"}
	case res.StatusCode == 429 || res.StatusCode == 503:
		return outcome{kind: "lost"}
	}
	f.w.t.Errorf("a post with the key %s is answered %d %s", f.key, res.StatusCode, answer)
	return outcome{kind: "running"}
}

// decided removes the lost requests from a history in which one request is known to have
// taken effect. They could be placed at its end, where they change nothing, but the search
// would try every place.
func decided(history []porcupine.Operation) []porcupine.Operation {
	kind := func(o porcupine.Operation) string { return o.Output.(outcome).kind }
	if !slices.ContainsFunc(history, func(o porcupine.Operation) bool { return kind(o) == "made" }) {
		return history
	}
	return slices.DeleteFunc(slices.Clone(history), func(o porcupine.Operation) bool { return kind(o) == "lost" })
}

// check compares the answers with the messages that exist.
func (f *fight) check() error {
	f.w.t.Helper()
	var list struct{ Data []json.RawMessage }
	(&world{t: f.w.t, gateway: f.w.gateway, driver: f.w.driver, header: f.by.header}).api("GET",
		"/v1/messages?chatId=%2B"+f.to[1:], nil, &list)
	if len(list.Data) != 1 || len(f.answers) != 1 {
		return fmt.Errorf("the key %s made %d messages, with %d different answers\n%s", f.key, len(list.Data),
			len(f.answers), shown(f.history))
	}
	if res := porcupine.CheckOperationsTimeout(idempotent(), decided(f.history), time.Minute); res != porcupine.Ok {
		return fmt.Errorf("the history of the key %s is %s; %d times another was running\n%s", f.key, res, f.running,
			shown(f.history))
	}
	return nil
}

// shown formats a history, with a line for each request: start and end in microseconds.
func shown(history []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range history {
		fmt.Fprintf(&b, "%8d %8d %v %v\n", o.Call/1000, min(o.Return/1000, 99_999_999), o.Input, o.Output)
	}
	return b.String()
}

// TestOneKeyHappensOnce sends a hundred concurrent requests for each of many idempotency
// keys, in two tenants with the same keys, and kills the gateway in between.
func TestOneKeyHappensOnce(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, options{Bin: bin, Devices: 1, Room: 1, Seed: seedOrClock(), Calm: true, Database: engine})
			if err := w.fightForKeys(*rounds); err != nil {
				t.Errorf("seed %d: %v", w.opts.Seed, err)
			}
			t.Logf("seed %d: %d keys in each of two tenants, %d kills", w.opts.Seed, *rounds, w.kills)
		})
	}
}

// TestForgottenKeysAreNoticed proves that the check can fail.
func TestForgottenKeysAreNoticed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{Bin: bin, Devices: 1, Room: 1, Seed: 1, Calm: true, Mistake: failpoint.ForgetIdempotency})
	if err := w.fightForKeys(1); err == nil {
		t.Error("a gateway that forgets idempotency keys passes")
	}
}

// fightForKeys runs rounds until something is wrong.
func (w *world) fightForKeys(rounds int) error {
	w.t.Helper()
	mine, other := contender{w.header, w.devices[0].id}, w.otherTenant()
	r := rand.New(rand.NewPCG(w.opts.Seed, 1))
	for n := range rounds {
		var fights []*fight
		for _, by := range []contender{mine, other} {
			fights = append(fights, &fight{
				w: w, by: by, key: fmt.Sprintf("key-%d", n), to: fmt.Sprintf("+1555778%04d", n),
				start: time.Now(), answers: map[string]int{},
			})
		}
		w.round(fights, r, n%3 == 2)
		for _, f := range fights {
			if err := f.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherTenant is another workspace with a linked device.
func (w *world) otherTenant() contender {
	w.t.Helper()
	var made struct{ ID, Key string }
	w.command(&made, "workspace", "create", "--name", "other", "--plan", "enterprise")
	w.command(&made, "key", "create", "--workspace", made.ID, "--name", "other")
	there := world{
		t: w.t, gateway: w.gateway, driver: w.driver, vendor: w.vendor,
		header: http.Header{"Authorization": {"Bearer " + made.Key}},
	}
	return contender{there.header, there.link("+15550009999").id}
}

// round sends a hundred requests for each fight, one in ten with another text, and ends
// with two that must be answered.
func (w *world) round(fights []*fight, r *rand.Rand, kill bool) {
	var wg sync.WaitGroup
	for n := range 100 {
		text := "first"
		if r.IntN(10) == 0 {
			text = "second"
		}
		for i, f := range fights {
			if i == 0 || n%5 == 0 {
				wg.Go(func() { f.insist(text) })
			}
		}
	}
	if kill {
		<-time.After(time.Duration(r.IntN(20_000)) * time.Microsecond)
		w.kill()
		w.boot()
	}
	wg.Wait()
	for _, f := range fights { // one of the two texts is refused now
		f.insist("first")
		f.insist("second")
	}
}
