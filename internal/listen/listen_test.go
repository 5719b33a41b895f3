package listen

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const problemType = "application/problem+json"

// TestSilentConnectionIsReplaced: heartbeats keep a connection open. Without them
// the listener connects again.
func TestSilentConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, func(n int, req *http.Request) *reply {
			if n > 1 {
				return streaming(hold("id: evt_0\n\n"))
			}
			return streaming(func(w *io.PipeWriter) {
				io.WriteString(w, "id: evt_0\n\n")
				for range 40 {
					time.Sleep(15 * time.Second) // the bubble's clock
					io.WriteString(w, ": waiting\n\n")
				}
			})
		})
		time.Sleep(10*time.Minute + silence - time.Second)
		synctest.Wait()
		if got := r.api.asked(); len(got) != 1 {
			t.Fatalf("a working connection was replaced: %v", got)
		}
		time.Sleep(2*time.Second + silence/2)
		synctest.Wait()
		if got := r.api.asked(); len(got) != 2 || got[1].after != "evt_0" {
			t.Errorf("requests after a silence: %v, want a second one after evt_0", got)
		}
		if !strings.Contains(r.err.String(), "has sent nothing for") {
			t.Errorf("it prints\n%s", r.err.String())
		}
		r.finish(t)
	})
}

// TestServerThatNeverAnswersIsAskedAgain: the same limit holds while waiting for the
// header of a response.
func TestServerThatNeverAnswersIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, func(_ int, req *http.Request) *reply {
			<-req.Context().Done()
			return nil
		})
		time.Sleep(silence + time.Second)
		synctest.Wait()
		if got := r.api.asked(); len(got) != 2 || got[1].at < silence {
			t.Errorf("requests at %v, want a second one after %s", got, silence)
		}
		r.finish(t)
	})
}

// TestProxyThatCollectsTheStreamIsReported: the header of the response arrives, and nothing of the stream.
func TestProxyThatCollectsTheStreamIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, func(int, *http.Request) *reply { return streaming(hold("")) })
		time.Sleep(beginning + time.Second)
		synctest.Wait()
		if !strings.Contains(r.err.String(), "proxy_buffering off") {
			t.Errorf("it prints\n%s", r.err.String())
		}
		r.finish(t)
	})
}

// slowWriter takes a minute for each event.
type slowWriter struct{ output }

func (s *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(time.Minute)
	return s.output.Write(p)
}

// TestHandlingAnEventIsNotSilence: the watch runs only while a read is waiting.
func TestHandlingAnEventIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := newListener(Options{URL: "http://postern.test", Key: testKey, Out: &slowWriter{}, Err: &output{}})
		if err != nil {
			t.Fatal(err)
		}
		a := &api{t: t, answer: func(int, *http.Request) *reply {
			return streaming(hold(eventBlock("evt_1") + eventBlock("evt_2") + eventBlock("evt_3")))
		}}
		l.api.transport = a
		go l.run(t.Context())
		time.Sleep(3*time.Minute + silence/2)
		synctest.Wait()
		if got := a.asked(); len(got) != 1 || l.place.after != "evt_3" {
			t.Errorf("%d connections, %s; want one, after evt_3", len(got), l.place)
		}
	})
}

func TestRetryAfterIsHonored(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		after  string
		want   time.Duration
	}{
		"too many requests": {429, "90", 90 * time.Second},
		"draining":          {503, "5", 5 * time.Second},
		"a date":            {503, "Sat, 01 Jan 2000 00:02:00 GMT", 2 * time.Minute}, // a bubble starts at 2000-01-01
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, Options{}, func(n int, req *http.Request) *reply {
					if n == 1 {
						return &reply{
							status: tt.status, kind: problemType,
							body: `{"type":"/problems/rate-limited","detail":"slow down"}`, retryAfter: tt.after,
						}
					}
					return streaming(hold("id: evt_0\n\n"))
				})
				time.Sleep(tt.want + time.Second)
				synctest.Wait()
				r.finish(t)
				if got := r.api.asked(); len(got) != 2 || got[1].at != tt.want {
					t.Errorf("requests at %v, want the second at %s", got, tt.want)
				}
				if said := r.err.String(); !strings.Contains(said, "slow down; retrying in ") {
					t.Errorf("it prints\n%s", said)
				}
			})
		})
	}
}

// TestBackoffGrowsAndResets: a server that is down is asked less and less often. After
// a connection, the first retry comes soon.
func TestBackoffGrowsAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 20
		r := start(t, Options{}, func(n int, req *http.Request) *reply {
			if n == away {
				return streaming(cut("id: evt_0\n\n"))
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		r.finish(t)
		asks := r.api.asked()
		gap := func(n int) time.Duration { return asks[n].at - asks[n-1].at }
		if first := gap(1); first > time.Second {
			t.Errorf("the first wait is %s, want at most 1s", first)
		}
		for n := 10; n < away; n++ {
			if g := gap(n); g < maxRetry/2 || g > maxRetry*3/2 {
				t.Errorf("wait %d is %s, want about %s", n, g, maxRetry)
			}
		}
		if again := gap(away); again > time.Second {
			t.Errorf("after a connection the first wait is %s, want at most 1s", again)
		}
		if n := strings.Count(r.err.String(), "no connection to "); n != 3 {
			t.Errorf("it reports a lost connection %d times, want 3: once for each cause\n%s", n, r.err.String())
		}
	})
}

// TestPlaceIsKept cuts streams at various points and checks what is requested next.
func TestPlaceIsKept(t *testing.T) {
	list := func(ids ...string) *reply {
		var data []string
		for _, id := range ids {
			data = append(data, `{"eventId":"`+id+`"}`)
		}
		return &reply{
			status: 200, kind: "application/json",
			body: `{"data":[` + strings.Join(data, ",") + `],"nextCursor":null}`,
		}
	}
	further := &reply{status: 200, kind: "application/json", body: `{"data":[],"nextCursor":"c"}`}
	const stream, log = "/v1/events/stream", "/v1/events"
	for name, tt := range map[string]struct {
		after   string
		answers []any // a string is a stream that is cut at its end
		asks    string
		shown   string
	}{
		"cut before the first event": {"", []any{"id: evt_0\n\n", "id: evt_0\n\n" + eventBlock("evt_1")}, stream + " , " + stream + " evt_0", "evt_1"},
		"cut after an event":         {"", []any{"id: evt_0\n\n" + eventBlock("evt_1"), eventBlock("evt_2")}, stream + " , " + stream + " evt_1", "evt_1 evt_2"},
		"cut within an event":        {"", []any{"id: evt_0\n\n" + strings.TrimSuffix(eventBlock("evt_1"), "\n"), eventBlock("evt_1")}, stream + " , " + stream + " evt_0", "evt_1"},
		"cut before it began":        {"", []any{"", "id: evt_5\n\n"}, stream + " , " + stream + " ", ""},
		"empty log":                  {"", []any{": no events yet\n\n", list(), ": no events yet\n\n" + eventBlock("evt_1")}, stream + " , " + log + " , " + stream + " ", "evt_1"},
		"log that was empty":         {"", []any{": no events yet\n\n", list("evt_1"), "id: evt_1\n\n" + eventBlock("evt_2")}, stream + " , " + log + " , " + stream + " evt_1", "evt_1 evt_2"},
		"log that fills meanwhile":   {"", []any{": no events yet\n\n", list(), streaming(hold("id: evt_1\n\n")), list("evt_1"), "id: evt_1\n\n"}, stream + " , " + log + " , " + stream + " , " + log + " , " + stream + " evt_1", "evt_1"},
		"told where":                 {"evt_7", []any{"", "id: evt_7\n\n" + eventBlock("evt_8")}, stream + " evt_7, " + stream + " evt_7", "evt_8"},
		"none of the log matches":    {Start, []any{list(), "id: evt_9\n\n" + eventBlock("evt_10"), list(), "id: evt_10\n\n"}, log + " , " + stream + " , " + log + " , " + stream + " evt_10", "evt_10"},
		"far from the start":         {Start, []any{further, further, list("evt_1"), eventBlock("evt_2")}, log + " , " + log + " , " + log + " , " + stream + " evt_1", "evt_1 evt_2"},
		"from the start":             {Start, []any{list("evt_1"), eventBlock("evt_2")}, log + " , " + stream + " evt_1", "evt_1 evt_2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, Options{After: tt.after}, func(n int, req *http.Request) *reply {
					if n > len(tt.answers) {
						return streaming(hold(""))
					}
					if text, ok := tt.answers[n-1].(string); ok {
						return streaming(cut(text))
					}
					return tt.answers[n-1].(*reply)
				})
				time.Sleep(20 * time.Second)
				synctest.Wait()
				r.finish(t)
				var asks []string
				for n, a := range r.api.asked() {
					if n < len(tt.answers) { // later requests follow the silence of the last stream
						asks = append(asks, a.path+" "+a.after)
					}
				}
				if got := strings.Join(asks, ", "); got != tt.asks {
					t.Errorf("asked for %q, want %q", got, tt.asks)
				}
				if got := r.shown(); got != tt.shown {
					t.Errorf("shown: %q, want %q", got, tt.shown)
				}
			})
		})
	}
}

// TestRefusalSaysWhatToDo includes a server that repeats the key in its response.
func TestRefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	problem := func(status int, reason, detail string) *reply {
		text, err := json.Marshal(detail)
		if err != nil {
			t.Fatal(err)
		}
		return &reply{
			status: status, kind: problemType,
			body: `{"type":"https://x/problems/` + reason + `","detail":` + string(text) + `}`,
		}
	}
	oldest := &reply{
		status: 200, kind: "application/json",
		body: `{"data":[{"eventId":"evt_9","timestamp":"2026-11-21T09:00:00.000Z"}],"nextCursor":null}`,
	}
	for name, tt := range map[string]struct {
		answers []*reply
		want    []string
	}{
		"wrong key":       {[]*reply{problem(401, "unauthorized", "x")}, []string{"does not accept the key", "postern key create"}},
		"scope":           {[]*reply{problem(403, "missing-scope", "this key lacks the scope events:read")}, []string{"lacks the scope events:read", "--scope events:read"}},
		"plan":            {[]*reply{problem(403, "plan-without-api", "the plan has no API")}, []string{"403: the plan has no API"}},
		"no such event":   {[]*reply{problem(404, "not-found", "there is no such event")}, []string{"no such event", "--after"}},
		"wrong filter":    {[]*reply{{status: 422, kind: problemType, body: `{"type":"/problems/validation-failed","detail":"no","errors":[{"pointer":"/query/type","detail":"an entry is *"}]}`}}, []string{"/query/type: an entry is *"}},
		"removed":         {[]*reply{problem(410, "events-expired", "x"), oldest}, []string{"events after evt_1 were missed", "evt_9", "--after start", "leave out --after"}},
		"removed all":     {[]*reply{problem(410, "events-expired", "x"), {status: 200, kind: "application/json", body: `{"data":[]}`}}, []string{"events after evt_1 were missed", "leave out --after"}},
		"gives the key":   {[]*reply{problem(403, "x", "you sent Bearer "+testKey+" and \x1b[2J")}, []string{"you sent Bearer *** and \uFFFD[2J"}},
		"another server":  {[]*reply{{status: 404, kind: "text/html", body: "<p>"}}, []string{"answered 404", "is --url the address of the API?"}},
		"a page":          {[]*reply{{status: 200, kind: "text/html", body: "<p>"}}, []string{"answered 200", "is --url the address of the API?"}},
		"a redirect":      {[]*reply{{status: 301, kind: "text/html", body: ""}}, []string{"answered 301", "is --url the address of the API?"}},
		"other events":    {[]*reply{{status: 200, kind: streamType, body: "data: 1\n\n"}}, []string{"without an id"}},
		"a line too long": {[]*reply{{status: 200, kind: streamType, body: "data: " + strings.Repeat("x", maxEvent+1)}}, []string{"longer than"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{After: "evt_1"}, func(n int, _ *http.Request) *reply { return tt.answers[n-1] })
			err := <-r.ended
			if err == nil {
				t.Fatal("it returned no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
			if all := err.Error() + r.err.String() + r.out.String(); strings.Contains(all, testKey) {
				t.Errorf("the key is shown: %s", all)
			}
		})
	}
}
