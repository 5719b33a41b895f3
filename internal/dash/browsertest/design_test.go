package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "postern/internal/dash/page"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// served shows samples without the server behind them.
func served(t *testing.T, list ...sample) *browser {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/assets/", Assets())
	for _, s := range list {
		mux.HandleFunc("/samples/"+s.name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", Policy)
			_, _ = w.Write([]byte(render(t, s.page)))
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return open(t, srv.URL)
}

// prefer sets what a person's system asks pages for.
func (b *browser) prefer(name, value string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: value}},
	})
	b.must(err)
}

// number evaluates an expression.
func (b *browser) number(expression string) int {
	b.t.Helper()
	n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return n
}

// beyond are the parts of a page that lie beyond the edge of the window, if it can be scrolled there.
const beyond = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
	[...document.querySelectorAll('body *')].filter((e) => {
		const r = e.getBoundingClientRect()
		return r.width && (r.right > document.documentElement.clientWidth + 1 || r.left < -1)
	}).map((e) => e.outerHTML.slice(0, 120))`

// The page of components is for everybody in each look: light and dark, on a phone, at 200 % (which leaves half of the
// pixels of a laptop), and in the other direction.
func TestDesignIsForEverybody(t *testing.T) {
	t.Parallel()
	b := served(t, sample{"design", Design(Frame{Title: "Design", Workspace: Workspace{"ws_1", "Acme"}})})
	for _, look := range []struct{ scheme, direction string }{{"light", "ltr"}, {"light", "rtl"}, {"dark", "ltr"}} {
		b.prefer("prefers-color-scheme", look.scheme)
		for _, size := range [][2]int64{{1440, 900}, {720, 450}, {390, 844}} {
			b.do(chromedp.EmulateViewport(size[0], size[1]))
			b.goTo("/samples/design")
			b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.documentElement.dir = %q`, look.direction)))
			if look.scheme == "light" && look.direction == "ltr" {
				b.usable()
			} else {
				b.readable()
			}
			list, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](beyond))
			if b.must(err); len(list) > 0 {
				t.Errorf("%s, %s, %d wide: beyond the edge is %q", look.scheme, look.direction, size[0], list)
			}
		}
		b.byKeyboard()
	}
}

func TestComponentsArePictured(t *testing.T) {
	t.Parallel()
	b := served(t, sample{"design", Design(Frame{Title: "Design", Workspace: Workspace{"ws_1", "Acme"}})})
	b.goTo("/samples/design")
	b.picture("design")
	b.do(click(`[commandfor="design-dialog"]`))
	b.usable()
	b.picture("design-dialog")
}

func TestMotionIsForThoseWhoWantIt(t *testing.T) {
	t.Parallel()
	b := served(t, sample{"design", Design(Frame{Title: "Design"})})
	for wish, moves := range map[string]bool{"no-preference": true, "reduce": false} {
		b.prefer("prefers-reduced-motion", wish)
		b.goTo("/samples/design")
		if n := b.number(`document.getAnimations().length`); n > 0 != moves {
			t.Errorf("with %s, %d parts move", wish, n)
		}
	}
}

// The font is our own, without a request to anybody else, and the letters of Latin Extended come with a page that has
// some of them.
func TestFontIsOurOwn(t *testing.T) {
	t.Parallel()
	plain := Devices(Frame{Title: "Devices"}, DevicesView{Devices: []Device{{ID: "dev_1", Name: "Support"}}})
	more := Devices(Frame{Title: "Devices"}, DevicesView{Devices: []Device{{ID: "dev_1", Name: "Łódź"}}})
	b := served(t, sample{"plain", plain}, sample{"more", more})
	for i, name := range []string{"plain", "more"} { // Chromium may load again what the page before this one needed
		want := i + 1
		b.goTo("/samples/" + name)
		got := b.number(`document.fonts.ready.then((all) => [...all].filter((f) => f.family.includes('Inter') && !f.family.includes('Fallback') && f.status === 'loaded').length)`)
		if got != want {
			t.Errorf("%s: %d files of the font are loaded, want %d", name, got, want)
		}
	}
}

// A laptop shows 20 messages at once, in rows of at most 36 pixels, with the filters above them.
func TestLaptopShowsTwentyMessages(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	v := MessagesView{Devices: []Choice{{"", "All"}, {"dev_1", "Support"}}, Send: true, More: "/messages?after=x", Export: "/messages.csv", ExportRows: "100,000"}
	for i := range 50 {
		v.Messages = append(v.Messages, Message{
			ID: fmt.Sprint("msg_", i), Device: "Support", DeviceID: "dev_1", Chat: fmt.Sprintf("+1555123%04d", i), Out: i%2 == 0, Type: "text",
			Gist:   "A text that is longer than what others write, so that it would take more than one line of its cell",
			Status: []string{"read", "failed", "queued", "received"}[i%4], At: at.Add(-time.Duration(i) * time.Hour),
		})
	}
	f := Frame{Title: "Messages", Current: "/messages", Workspace: Workspace{"ws_1", "Acme"}, Email: "ada@example.com"}
	b := served(t, sample{"messages", Messages(f, v)})
	b.do(chromedp.EmulateViewport(1440, 900))
	b.goTo("/samples/messages")
	const rows = `document.fonts.ready.then(() => [...document.querySelectorAll('.grid-list tbody tr')].map((r) => r.getBoundingClientRect()))`
	if n := b.number(rows + `.then((rows) => rows.filter((r) => r.bottom <= innerHeight).length)`); n < 20 {
		t.Errorf("%d messages can be seen, want 20", n)
	}
	if n := b.number(rows + `.then((rows) => Math.ceil(Math.max(...rows.map((r) => r.height))))`); n > 36 {
		t.Errorf("a row is %d pixels high, want at most 36", n)
	}
	b.picture("messages-many")
}
