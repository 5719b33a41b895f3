package testkit_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// shop is a site with a page that waits for hold, and counts how often pages are fetched.
type shop struct {
	*httptest.Server

	hold chan struct{}
	hits atomic.Int64
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{hold: make(chan struct{})}
	mux := http.NewServeMux()
	page := func(w http.ResponseWriter, _ *http.Request) {
		s.hits.Add(1)
		_, _ = io.WriteString(w, `<html><head><meta property="og:title" content="Apples &amp; pears">`+
			`<meta property="og:description" content="From our garden."><meta property="og:image" content="/apple.png">`)
	}
	mux.HandleFunc("/apples", page)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		<-s.hold
		page(w, r)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/apples", http.StatusFound) })
	mux.HandleFunc("/apple.png", func(w http.ResponseWriter, _ *http.Request) {
		img := image.NewRGBA(image.Rect(0, 0, 640, 320))
		img.Set(1, 1, color.Black)
		_ = png.Encode(w, img)
	})
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no title") })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// previewed sends a text with a link whose page is to be shown.
func previewed(c *testkit.Client, d postern.Device, to, link string) (m postern.Message) {
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": to, "body": "See " + link + ".", "linkPreview": true,
	}, 202, &m)
	return m
}

// A text shows the page behind its link, which is fetched once, however often the text is sent.
func TestTextsShowThePageBehindTheirLink(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, site := k.Workspace("enterprise"), newShop(t)
		d := c.Link(phone)
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultDropBeforeAck); err != nil {
			t.Fatal(err)
		}
		const silent = "+15005550002" // its receipt does not make the repetition unnecessary
		m := previewed(c, d, silent, site.URL+"/moved")
		if p := m.Content.LinkPreview; p == nil || *p != (postern.LinkPreview{URL: site.URL + "/moved"}) {
			t.Errorf("the accepted message has the preview %+v", p)
		}
		m = c.AwaitMessage(m.ID, postern.Sent)
		want := postern.LinkPreview{
			URL: site.URL + "/moved", Title: "Apples & pears", Description: "From our garden.",
		}
		if p := m.Content.LinkPreview; p == nil || *p != want {
			t.Errorf("the message has the preview %+v, want %+v", p, want)
		}
		shown, err := k.Vendor.ShownMessage(silent, m.NetworkID)
		if err != nil || shown.LinkPreview == nil || shown.LinkPreview.Title != want.Title ||
			shown.LinkPreview.URL != want.URL || shown.LinkPreview.Description != want.Description || shown.Body != m.Content.Text {
			t.Fatalf("the phone shows %+v, %v", shown, err)
		}
		if size, err := jpeg.DecodeConfig(bytes.NewReader(shown.LinkPreview.Picture)); err != nil || size.Width != 2*size.Height {
			t.Errorf("the picture is %+v, %v", size, err)
		}
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.NetworkID == m.NetworkID && e.Copies != 2 {
				t.Errorf("the network got %d copies of the message, want 2", e.Copies)
			}
		}
		if n := site.hits.Load(); n != 1 {
			t.Errorf("the page was fetched %d times", n)
		}
	})
}

// A page that takes long delays only the later messages of its chat; one that cannot be shown
// delays and fails nothing.
func TestMessagesWaitForPreviewsInTheirChat(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, site := k.Workspace("enterprise"), newShop(t)
		d := c.Link(phone)
		plain := func(link string) {
			m := previewed(c, d, customer, link)
			m = c.AwaitMessage(m.ID, postern.Delivered)
			shown, err := k.Vendor.ShownMessage(customer, m.NetworkID)
			if err != nil || shown.LinkPreview != nil || m.Content.LinkPreview != nil || shown.Body != m.Content.Text {
				t.Errorf("%s is shown as %+v, %v, and the message has %+v", link, shown, err, m.Content.LinkPreview)
			}
		}
		plain("https://no.invalid/") // a name server may take as long as the slow page may
		slow := previewed(c, d, reader, site.URL+"/slow")
		behind := send(c, d, reader, "in the same chat")
		for _, link := range []string{site.URL + "/gone", site.URL + "/text", "http://127.0.0.1:1/"} {
			plain(link)
		}
		var m postern.Message
		if c.Call("GET", "/v1/messages/"+string(behind.ID), nil, 200, &m); m.Status != postern.Queued {
			t.Errorf("the message behind one whose page is being fetched is %s", m.Status)
		}
		close(site.hold)
		c.AwaitMessage(behind.ID, postern.Read)
		var order []string
		for _, shown := range k.Vendor.Shown(reader) {
			order = append(order, shown.ID)
		}
		if len(order) != 2 || order[0] != slow.NetworkID || order[1] != behind.NetworkID {
			t.Errorf("the phone shows %v, want %s before %s", order, slow.NetworkID, behind.NetworkID)
		}
	})
}

// Pages at private addresses are not fetched.
func TestPreviewsKeepOutOfPrivateNetworks(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	k.Stop()
	k.Config.AllowPrivateWebhooks = false
	k.Boot()
	c, site := k.Workspace("growth"), newShop(t)
	d := c.Link(phone)
	m := previewed(c, d, reader, site.URL+"/apples")
	if m = c.AwaitMessage(m.ID, postern.Read); m.Content.LinkPreview != nil || site.hits.Load() != 0 {
		t.Errorf("the preview is %+v, after %d requests", m.Content.LinkPreview, site.hits.Load())
	}
}

// The preview of a received text is shown, and the one of a scheduled text follows its link.
func TestPreviewsAreReceivedAndRescheduled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		p := map[string]any{"url": "https://example.com/a", "title": "A", "description": "The letter"}
		a.c.Call("POST", "/v1/sandbox/devices/"+string(a.d.ID)+"/inbound", map[string]any{
			"from": customer, "body": "https://example.com/a", "linkPreview": p,
		}, 200, nil)
		e := a.event(postern.MessageReceived, 1)
		mustHave(t, "message.received", e, map[string]any{"body": "https://example.com/a", "linkPreview": p})
		var own struct{ Data []map[string]any }
		a.c.Call("GET", "/v1/sandbox/devices/"+string(a.d.ID)+"/phone", nil, 200, &own)
		mustHave(t, "the own phone", own.Data[0], map[string]any{"body": "https://example.com/a", "linkPreview": p})

		var m postern.Message
		a.c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": a.d.ID, "to": reader, "body": "https://example.com/b", "linkPreview": true, "sendAt": time.Now().Add(24 * time.Hour).UTC(),
		}, 202, &m)
		for _, tt := range []struct{ body, want string }{{"https://example.com/c", "https://example.com/c"}, {"none", ""}} {
			m = postern.Message{ID: m.ID}
			a.act("PATCH", string(m.ID), "", map[string]any{"body": tt.body})
			a.c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &m)
			if p := m.Content.LinkPreview; (p == nil) != (tt.want == "") || p != nil && p.URL != tt.want {
				t.Errorf("the text %s has the preview %+v", tt.body, p)
			}
		}
		a.c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": a.d.ID, "to": reader, "type": "location", "linkPreview": true,
			"location": map[string]any{"latitude": 1, "longitude": 2},
		}, 422, nil)
	})
}
