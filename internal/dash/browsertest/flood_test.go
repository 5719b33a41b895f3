package browsertest

import (
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

var (
	flood     = flag.Duration("flood", 2*time.Second, "how long messages arrive while pages are open")
	floodRate = flag.Int("flood-rate", 50, "how many of them arrive per second")
	floodedBy = flag.Int("flood-browsers", 1, "how many browsers have three pages open meanwhile")
)

// followed are the pages that stay open in a flood, with the elements whose newest time they show.
var followed = []struct{ path, times string }{
	{"/", "#board time"},
	{"/events", "#log > li:first-child time"},
	{"/messages/chats", "#chats ul > li:first-child time"},
}

// sampler notes ten times per second how old the newest thing is that a page shows.
const sampler = `(() => {
	const newest = () => Math.max(0, ...[...document.querySelectorAll(%q)].map((t) => Date.parse(t.dateTime)))
	window.newest = newest
	window.lags = []
	window.since = 0
	setInterval(() => { if (window.since) window.lags.push(Date.now() - Math.max(newest(), window.since)) }, 100)
	return 0
})()`

// While messages arrive, the pages of some browsers follow: in the end, each shows the last one. The log says how far
// they were behind, and what they cost. Figures for the roadmap: -flood 60s -flood-rate 1000 -flood-browsers 3 -v.
func TestPagesFollowAFlood(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	first := open(t, k.URL())
	first.setUp(k)
	c, id := first.linked(k)
	device := c.Device(id)
	device.WorkspaceID = c.Workspace
	bare := pour(t, k.Gateway(), device)

	var pages []*browser
	for range *floodedBy {
		signedIn := open(t, k.URL())
		signedIn.signIn()
		for _, w := range followed {
			b := signedIn.another()
			b.goTo(w.path)
			b.number(fmt.Sprintf(sampler, w.times))
			pages = append(pages, b)
		}
	}
	for _, b := range pages {
		b.number("window.since = Date.now()")
	}
	shown := pour(t, k.Gateway(), device)
	behind := make([][]int, len(pages))
	for i, b := range pages {
		behind[i] = b.numbers("window.lags")
	}
	var list struct {
		Data []struct {
			SentAt time.Time `json:"sentAt"`
		} `json:"data"`
	}
	c.Call(http.MethodGet, "/v1/messages?limit=1", nil, http.StatusOK, &list)
	last := int(list.Data[0].SentAt.UnixMilli())
	for i, b := range pages {
		b.until("the newest message on "+followed[i%len(followed)].path, func() bool { return b.number("newest()") >= last })
	}
	for i, lags := range behind {
		if len(lags) == 0 {
			continue // too short for a sample
		}
		slices.Sort(lags)
		t.Logf("%s: the newest thing was %d ms old in the median, %d ms in the 95th percentile, at most %d ms",
			followed[i%len(followed)].path, lags[len(lags)/2], lags[len(lags)*95/100], lags[len(lags)-1])
	}
	t.Logf("processor time per second: %v without pages (%d messages/s), %v with %d (%d messages/s); "+
		"heap %d KiB after a third, %d KiB in the end",
		bare.processor, bare.rate, shown.processor, len(pages), shown.rate, shown.third>>10, shown.end>>10)
}

func (b *browser) numbers(expression string) []int {
	b.t.Helper()
	list, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]int](expression))
	b.must(err)
	return list
}

// poured is what receiving messages has cost.
type poured struct {
	processor  time.Duration // of this process, per second
	rate       int           // messages per second
	third, end uint64        // bytes of the heap
}

// pour lets messages of 200 people arrive, at an even rate.
func pour(t *testing.T, g *gateway.Gateway, d postern.Device) (p poured) {
	t.Helper()
	writers := max(16, *floodRate/8) // they share commits
	began, before := time.Now(), processorTime(t)
	var next atomic.Int64
	all := int64(flood.Seconds() * float64(*floodRate))
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := next.Add(1); n <= all && t.Context().Err() == nil; n = next.Add(1) {
				due := began.Add(time.Duration(n) * time.Second / time.Duration(*floodRate))
				if postern.Sleep(t.Context(), time.Until(due)) != nil {
					return // the test has ended
				}
				if n == all/3 {
					p.third = heap()
				}
				if err := g.Sessions.Receive(t.Context(), arrived(d, n), "lid:1", postern.MessageReceived,
					gateway.ArrivedFile{}); err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began).Seconds()
	p.processor, p.rate = time.Duration(float64(processorTime(t)-before)/took), int(float64(all)/took)
	p.end = heap()
	return p
}

func arrived(d postern.Device, n int64) postern.Message {
	chat := fmt.Sprintf("+1555%07d", n%200)
	return postern.Message{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound, ChatID: chat, From: postern.Maybe(chat),
		Content: postern.Text(fmt.Sprint("Message ", n)), Status: postern.Received, NetworkID: postern.NewNetworkID(),
		Source: postern.FromContact, SentAt: postern.TimeOf(time.Now()),
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
