package testkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/listen"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/testkit"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const listenSecret = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="

// listening is a "postern listen" that runs beside a gateway.
type listening struct {
	t        *testing.T
	out, err testkit.Log
	stop     context.CancelFunc
	ended    chan error
}

// listenTo starts a listener and waits until it is connected. It ends with the
// test, without an error unless the test took that.
func listenTo(t *testing.T, k *testkit.Kit, c *testkit.Client, o listen.Options) *listening {
	t.Helper()
	l := &listening{t: t, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	o.Key, o.Version, o.Out, o.Err = seal.Secret(c.Key), "test", &l.out, &l.err
	if o.URL == "" {
		o.URL = k.URL()
	}
	go func() {
		l.ended <- listen.Run(ctx, o)
		close(l.ended)
	}()
	t.Cleanup(func() {
		if err := l.finish(); err != nil {
			t.Errorf("a listener that is told to stop ends with %v", err)
		}
		if strings.Contains(l.out.String()+l.err.String(), c.Key) {
			t.Error("the listener shows its key")
		}
	})
	l.awaits("connected to " + o.URL)
	return l
}

// front is a proxy before a gateway. Its address stays when the gateway is
// booted, which then has another one.
type front struct {
	*httptest.Server

	behind atomic.Pointer[url.URL]
}

func newFront(t *testing.T, k *testkit.Kit) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(f.behind.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	})
	t.Cleanup(f.Close)
	f.follow(t, k)
	return f
}

// follow finds the gateway after a boot.
func (f *front) follow(t *testing.T, k *testkit.Kit) {
	t.Helper()
	u, err := url.Parse(k.URL())
	if err != nil {
		t.Fatal(err)
	}
	f.behind.Store(u)
}

// finish stops the listener and gives its error, once.
func (l *listening) finish() error {
	l.t.Helper()
	l.stop()
	return l.end()
}

func (l *listening) end() error {
	l.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(testkit.Wait):
		l.t.Fatalf("the listener does not end\n%s", l.err.String())
		return nil
	}
}

// awaits waits until the listener has shown or said something.
func (l *listening) awaits(text string) {
	l.t.Helper()
	testkit.Eventually(l.t, text, func() (bool, any) {
		all := l.out.String() + l.err.String()
		return strings.Contains(all, text), all
	})
}

// laptop is a receiver on a developer's machine, which verifies what comes
// with the official library.
type laptop struct {
	t      *testing.T
	check  *standardwebhooks.Webhook
	answer func(w http.ResponseWriter, r *http.Request) // nil: 200

	mu  sync.Mutex
	got []testkit.Delivery
}

func newLaptop(t *testing.T, answer func(http.ResponseWriter, *http.Request)) (*laptop, *httptest.Server) {
	t.Helper()
	check, err := standardwebhooks.NewWebhook(listenSecret)
	if err != nil {
		t.Fatal(err)
	}
	p := &laptop{t: t, check: check, answer: answer}
	return p, p.serve("127.0.0.1:" + testkit.FreePort(t))
}

func (p *laptop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Errorf("a post is cut off: %v", err)
	}
	if err := p.check.Verify(body, r.Header); err != nil || r.Method != http.MethodPost || r.URL.Path != "/hook" {
		p.t.Errorf("%s %s does not verify: %v", r.Method, r.URL, err)
	}
	d := testkit.Delivery{Header: r.Header, Body: body}
	if err := json.Unmarshal(body, &d.Event); err != nil {
		p.t.Errorf("a post is not JSON: %v", err)
	}
	p.mu.Lock()
	p.got = append(p.got, d)
	p.mu.Unlock()
	if p.answer != nil {
		p.answer(w, r)
	}
}

func (p *laptop) all() []testkit.Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *laptop) ids() (ids []string) {
	for _, d := range p.all() {
		ids = append(ids, d.Header.Get("Webhook-Id"))
	}
	return ids
}

// awaitLog waits until the laptop got a message with that text, and compares
// all that it got with the log: each event once, in order, its very bytes.
func (p *laptop) awaitLog(c *testkit.Client, query, text string) {
	p.t.Helper()
	testkit.Eventually(p.t, "the message "+text, func() (bool, any) {
		all := p.all()
		return len(all) > 0 && strings.Contains(string(all[len(all)-1].Body), `"body":"`+text+`"`), p.ids()
	})
	var log eventLog
	c.Call("GET", "/v1/events?limit=200&"+query, nil, 200, &log)
	all := p.all()
	if len(log.Data) < len(all) {
		p.t.Fatalf("%d events were posted, the log has %d", len(all), len(log.Data))
	}
	for i, d := range all {
		if string(d.Body) != string(log.Data[i]) || d.Header.Get("Webhook-Id") != idOf(p.t, log.Data[i]) {
			p.t.Errorf("post %d is %s\n%s, want\n%s", i, d.Header.Get("Webhook-Id"), d.Body, log.Data[i])
		}
	}
}

func inbound(c *testkit.Client, d postern.Device, body string) {
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{"from": customer, "body": body}, 200,
		nil)
}

// awaitEvents waits until the log has so many events.
func awaitEvents(t *testing.T, c *testkit.Client, query string, n int) (log eventLog) {
	t.Helper()
	testkit.Eventually(t, "events in the log", func() (bool, any) {
		log = eventLog{}
		c.Call("GET", "/v1/events?"+query, nil, 200, &log)
		return len(log.Data) == n, log.Data
	})
	return log
}

// TestListenBringsWhatAWebhookGets compares every byte and every header with
// what a real endpoint of the same workspace got.
func TestListenBringsWhatAWebhookGets(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive()
	p, srv := newLaptop(t, nil)
	l := listenTo(t, k, c, listen.Options{ForwardTo: srv.URL + "/hook", Secret: listenSecret})
	d := c.Link(phone)
	send(c, d, reader, "Grüße <&> \u2028 👋")
	hooks.Await(postern.MessageRead)
	inbound(c, d, "\"quoted\"\n\x7f")
	kinds := []postern.EventType{
		postern.DeviceLinking, postern.DeviceLinked, postern.DeviceConnected, postern.MessageSent,
		postern.MessageDelivered, postern.MessageRead, postern.MessageReceived,
	}
	posted := map[string]testkit.Delivery{}
	for _, del := range hooks.Await(kinds...) {
		posted[del.Header.Get("Webhook-Id")] = del
	}
	p.awaitLog(c, "", `\"quoted\"\n`+"\x7f")
	if got := len(p.all()); got != len(kinds) || got != len(posted) {
		t.Fatalf("%d events were brought, %d posted, want %d", got, len(posted), len(kinds))
	}
	own := func(name string, _ []string) bool { // of each post
		return slices.Contains([]string{"Webhook-Timestamp", "Webhook-Signature", "X-Service-Signature"}, name)
	}
	for i, got := range p.all() {
		want := posted[got.Header.Get("Webhook-Id")]
		if string(got.Body) != string(want.Body) || got.Sequence() != i+1 {
			t.Errorf("event %d is\n%s, a webhook got\n%s", i+1, got.Body, want.Body)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got.Header)), slices.Sorted(maps.Keys(want.Header))) ||
			got.Header.Get("X-Service-Signature") != got.Header.Get("Webhook-Signature") {
			t.Errorf("headers\n%v, of a webhook\n%v", got.Header, want.Header)
		}
		maps.DeleteFunc(got.Header, own)
		maps.DeleteFunc(want.Header, own)
		if !maps.EqualFunc(got.Header, want.Header, slices.Equal) {
			t.Errorf("headers\n%v, of a webhook\n%v", got.Header, want.Header)
		}
	}
	l.awaits("message.received    " + string(d.ID) + "  msg_")
	if shown := l.out.String(); strings.Count(shown, "→ 200 ") != len(kinds) || strings.Contains(shown, "quoted") ||
		strings.Contains(l.err.String(), listenSecret) {
		t.Errorf("it shows\n%s%s", shown, l.err.String())
	}
}

// TestListenLosesNothingWhileTheServerIsAway stops the server before the first
// event was seen, and again when there were some.
func TestListenLosesNothingWhileTheServerIsAway(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		f, c := newFront(t, k), k.Workspace("growth")
		p, srv := newLaptop(t, nil)
		l := listenTo(t, k, c, listen.Options{URL: f.URL, ForwardTo: srv.URL + "/hook", Secret: listenSecret})
		var d postern.Device
		for round := range 2 {
			k.Stop()
			testkit.Eventually(t, "the connection to be lost", func() (bool, any) {
				return strings.Count(l.err.String(),
					"connected to ") <= strings.Count(l.err.String(), "no connection to "), l.err.String()
			})
			k.Boot()
			f.follow(t, k)
			if round == 0 {
				d = c.Link(phone)
			}
			c.Await(d.ID, postern.Connected)
			for _, text := range []string{"a", "b", "c"} { // while it may be away still
				inbound(c, d, fmt.Sprint(text, round))
			}
			p.awaitLog(c, "", fmt.Sprint("c", round))
			inbound(c, d, fmt.Sprint("d", round)) // while it is there
			p.awaitLog(c, "", fmt.Sprint("d", round))
		}
	})
}

// TestListenBeginsNow: what was before is not shown, with a full log as with a
// server that is stopped right after.
func TestListenBeginsNow(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	f, c := newFront(t, k), k.Workspace("growth")
	d := c.Link(phone)
	inbound(c, d, "before")
	log := awaitEvents(t, c, "", 4)
	last := idOf(t, log.Data[len(log.Data)-1])
	p, srv := newLaptop(t, nil)
	l := listenTo(t, k, c, listen.Options{URL: f.URL, ForwardTo: srv.URL + "/hook", Secret: listenSecret})
	k.Stop()
	l.awaits("no connection to ")
	k.Boot()
	f.follow(t, k)
	c.Await(d.ID, postern.Connected)
	inbound(c, d, "after")
	p.awaitLog(c, "after="+last, "after")
}

// TestListenGoesPastAReceiverThatIsDown: what is not taken is shown, not posted
// again, and to be had by what is said at the end.
func TestListenGoesPastAReceiverThatIsDown(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	answers := make(chan int, 10)
	p, srv := newLaptop(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case status := <-answers:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	})
	o := listen.Options{ForwardTo: srv.URL + "/hook", Secret: listenSecret}
	l := listenTo(t, k, c, o)
	for _, status := range []int{201, 500, 307, 410, 200} {
		answers <- status
		inbound(c, d, "x")
	}
	for _, want := range []string{"→ 201 ", "→ 500 ", "→ 307 ", "→ 410 ", "→ 200 "} {
		l.awaits(want)
	}
	srv.Close()
	inbound(c, d, "nobody there")
	l.awaits("→ not accepted: dial tcp ")
	p.serve(srv.Listener.Addr().String())
	answers <- 200
	inbound(c, d, "there again")
	testkit.Eventually(t, "the last event",
		func() (bool, any) { return strings.Count(l.out.String(), "→ 200 ") == 2, l.out.String() })
	if err := l.finish(); err != nil {
		t.Error(err)
	}
	first := p.ids()
	if len(first) != 6 || !distinct(first) || !strings.Contains(l.err.String(), "not accepted: 4;") {
		t.Errorf("posted %v\n%s", first, l.err.String())
	}

	again := "--after " + first[0] + "\n"
	if !strings.HasSuffix(l.err.String(), again) {
		t.Fatalf("it ends with\n%s, want %s", l.err.String(), again)
	}
	for range 6 {
		answers <- 200
	}
	o.After = first[0]
	l = listenTo(t, k, c, o)
	testkit.Eventually(t, "all that followed", func() (bool, any) { return len(p.ids()) == 12, p.ids() })
	if ids := p.ids()[6:]; !slices.Equal(
		slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(first, id) }), first[1:]) {
		t.Errorf("with --after came %v, want %v and the one that nobody got", ids, first[1:])
	}
}

// serve starts the laptop's server at an address, at first or again.
func (p *laptop) serve(addr string) *httptest.Server {
	p.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(p.t.Context(), "tcp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(p)
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	p.t.Cleanup(srv.Close)
	return srv
}

func distinct(ids []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(ids)))) == len(ids)
}

func TestListenEndsAtOnceInTheMiddleOfAPost(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	inPost := make(chan struct{})
	_, srv := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) {
		inPost <- struct{}{}
		<-r.Context().Done()
	})
	l := listenTo(t, k, c, listen.Options{ForwardTo: srv.URL + "/hook", Secret: listenSecret})
	inbound(c, d, "x")
	<-inPost
	if err := l.finish(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	// Had it waited for the end of the POST, it would have reported that as a failure.
	if l.out.String() != "" || strings.Contains(l.err.String(), "not accepted") {
		t.Errorf("an event whose POST was cut off is printed\n%s%s", l.out.String(), l.err.String())
	}
}

// TestListenForPrograms also narrows by kind and device, and begins at the
// start of the log.
func TestListenForPrograms(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d, other := c.Link(phone), c.Link("+15550002222")
	inbound(c, other, "not asked for")
	inbound(c, d, "private")
	l := listenTo(t, k, c, listen.Options{
		JSON: true, After: listen.Start, Types: []string{"message.*", "device.connected"}, Device: string(d.ID),
	})
	inbound(c, d, "later")
	log := awaitEvents(t, c, "type=message.*,device.connected&deviceId="+string(d.ID), 3)
	testkit.Eventually(t, "a line for each event", func() (bool, any) {
		return strings.Count(l.out.String(), "\n") == len(log.Data), l.out.String()
	})
	if strings.Contains(l.out.String(), "private") {
		t.Errorf("it shows\n%s", l.out.String())
	}
	for line := range strings.Lines(l.out.String()) {
		var got, want struct {
			EventID, Type, Timestamp, DeviceID, MessageID string
			Message                                       struct{ ID string }
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := json.Unmarshal(log.Data[0], &want); err != nil {
			t.Fatal(err)
		}
		want.MessageID, want.Message.ID = want.Message.ID, ""
		if got != want {
			t.Errorf("it shows %+v, want %+v", got, want)
		}
		log.Data = log.Data[1:]
	}
}

func TestListenSaysWhyItMayNot(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	run := func(key string, o listen.Options) string {
		t.Helper()
		var said testkit.Log
		o.URL, o.Key, o.Out, o.Err = k.URL(), seal.Secret(key), &said, &said
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
		defer cancel()
		err := listen.Run(ctx, o)
		if err == nil || ctx.Err() != nil || strings.Contains(err.Error()+said.String(), key) {
			t.Fatalf("it ends with %v\n%s", err, said.String())
		}
		return err.Error()
	}
	narrow := k.Key(c.Workspace, gateway.NewKey{Name: "narrow", Scopes: []postern.Scope{postern.DevicesRead}})
	free := k.NamedWorkspace("free", "free")
	for name, tt := range map[string]struct {
		key  string
		o    listen.Options
		want string
	}{
		"wrong key":     {postern.NewKeySecret(), listen.Options{}, "does not accept the key (401)"},
		"mistyped key":  {"pst_x", listen.Options{}, "does not accept the key (401)"},
		"missing scope": {narrow.Key, listen.Options{}, "lacks the scope events:read"},
		"plan":          {free.Key, listen.Options{}, "403"},
		"no such event": {c.Key, listen.Options{After: string(postern.NewEventID())}, "there is no such event; check --after"},
		"no such kind":  {c.Key, listen.Options{Types: []string{"x"}}, "/query/type"},
	} {
		if said := run(tt.key, tt.o); !strings.Contains(said, tt.want) {
			t.Errorf("%s: it says %q, want %q", name, said, tt.want)
		}
	}
}

func TestListenEndsWithItsRight(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	l := listenTo(t, k, c, listen.Options{})
	k.SetPlan(c.Workspace, "free")
	if err := l.end(); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("it ends with %v, want the refusal", err)
	}
}

// TestListenSaysWhatWasRemoved: a gap is never silent.
func TestListenSaysWhatWasRemoved(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	inbound(c, d, "x")
	log := awaitEvents(t, c, "", 4)
	old := idOf(t, log.Data[0])
	k.Stop()
	k.Config.RetentionEvents = config.Span(time.Millisecond)
	k.Boot()
	testkit.Eventually(t, "the old events to be removed", func() (bool, any) {
		a := c.Do("GET", "/v1/events?after="+old, nil)
		return a.Status == 410, string(a.Body)
	})
	var said testkit.Log
	err := listen.Run(t.Context(),
		listen.Options{URL: k.URL(), Key: seal.Secret(c.Key), After: old, Out: &said, Err: &said})
	if err == nil || !strings.Contains(err.Error(), "events after "+old+" were missed") ||
		!strings.Contains(err.Error(), "leave out --after") {
		t.Errorf("it ends with %v\n%s", err, said.String())
	}
}
