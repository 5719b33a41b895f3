package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/dash"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/storetest"
)

const (
	pageDevices   = 50
	pageMessages  = 1_000_000
	pageReceived  = 50_000 // of them; the others are copies
	pageEndpoints = 1000
)

// pages measures the server's time for each page of the dashboard, in a workspace with
// many devices and messages, on both engines.
func pages(t *testing.T) (list []figure) {
	for _, engine := range engines(t) {
		h, cookie, names := dashboard(t, engine.url(t))
		for _, path := range pagePaths() {
			where := names.Replace(path)
			f := figure{
				name: "dashboard " + path + " on " + engine.name, unit: "µs",
				extra: fmt.Sprintf("%d devices, %d messages, %d endpoints (goal 50 ms)",
					pageDevices, pageMessages, pageEndpoints),
			}
			for range rounds {
				f.ours = append(f.ours, pageTime(t, h, cookie, where))
			}
			list = append(list, f)
		}
	}
	return list
}

// pagePaths lists the pages. The names in braces are replaced.
func pagePaths() []string {
	return []string{
		"/", "/?span=month", "/?span=hour", "/health", "/health?home=1", "/usage", "/events", "/events?type=device.*", "/events?device={device}",
		"/messages", "/messages?q={chat}", "/messages?device={device}", "/messages?device={device}&q={chat}",
		"/messages?status=failed", "/messages?status=read",
		"/messages?direction=outbound", "/messages?q=ordinary",
		"/messages/{message}", "/messages/new", "/messages/chats", "/messages/chats?device={device}",
		"/messages/chats?q=ordinary", "/messages/chats/{device}/{chat}", "/contacts?device={device}",
		"/devices", "/devices/new", "/devices/{device}", "/devices/{device}/health",
		"/devices/{device}/settings", "/devices/{device}/delete",
		"/keys", "/keys/new",
		"/webhooks", "/webhooks/new", "/webhooks/{endpoint}", "/webhooks/{endpoint}/edit",
		"/webhooks/{endpoint}/replay",
		"/webhooks/{endpoint}/replays",
		"/webhooks/{endpoint}/deliveries", "/webhooks/{endpoint}/deliveries?status=pending",
		"/webhooks/{endpoint}/deliveries?status=succeeded", "/webhooks/{endpoint}/deliveries?type=message.sent",
		"/webhooks/{endpoint}/deliveries/{delivery}",
		"/people", "/people/audit", "/people/alerts", "/account", "/account/second", "/workspaces",
		"/operator", "/operator/workspaces", "/operator/workspaces/new", "/operator/workspaces?q=none",
		"/operator/workspaces/{workspace}",
		"/operator/people",
	}
}

// chatOf returns the chat of a message. There are a thousand chats.
func chatOf(n int) string { return fmt.Sprintf("+1555%07d", n%1000) }

func pageTime(t *testing.T, h http.Handler, cookie *http.Cookie, path string) float64 {
	t.Helper()
	n := 10
	if !inWorkspace(path) { // such pages are shown at most 120 times in a minute, all of them together
		n = 2
	}
	began := time.Now()
	for range n {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s is answered %d", path, w.Code)
		}
	}
	return float64(time.Since(began).Microseconds()) / float64(n)
}

// inWorkspace reports whether a page is about a workspace, and not about a person or the server.
func inWorkspace(path string) bool {
	for _, p := range []string{"/account", "/workspaces", "/operator"} {
		if strings.HasPrefix(path, p) {
			return false
		}
	}
	return true
}

// dashboard is a dashboard whose first user is signed in, with the values for the names
// in braces.
func dashboard(t *testing.T, database string) (h http.Handler, cookie *http.Cookie, names *strings.Replacer) {
	t.Helper()
	b := newBacklogIn(t, database, "https://example.com", inFlight)
	devices, message := []postern.Device{b.device}, postern.MessageID("")
	for range pageDevices - 1 {
		d := b.device
		d.ID = postern.NewDeviceID()
		if err := b.db.Devices.Create(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	inParallel(64, func(n int) error {
		for i := n; i < pageReceived; i += 64 {
			b := *b
			b.device, b.chat = devices[i%pageDevices], chatOf(i/pageDevices)
			id, err := b.receive(context.WithoutCancel(t.Context()))
			if err != nil {
				return err
			}
			if i == 0 {
				message = id
			}
		}
		return nil
	}, t)
	b.copies(t, database, devices)
	for more := true; more; {
		var err error
		if more, err = b.db.Messages.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.quietEndpoints(t)
	g := gateway.New(gateway.Options{DB: b.db, Box: b.box, Log: slog.New(slog.DiscardHandler)})
	p := people.New(people.Options{DB: b.db, Box: b.box})
	h = dash.Handler(dash.Options{
		Gateway: g, People: p, Log: slog.New(slog.DiscardHandler),
		BaseURL: "http://localhost", Address: func(*http.Request) string { return "127.0.0.1" },
	})
	deliveries, err := b.db.Deliveries.List(t.Context(), b.device.WorkspaceID, b.endpoint.ID, store.DeliveryFilter{}, 0,
		1)
	if err != nil || len(deliveries.List) == 0 {
		t.Fatalf("there are %d deliveries, %v", len(deliveries.List), err)
	}
	return h, signedIn(t, p, h), strings.NewReplacer(
		"{device}", string(b.device.ID), "{workspace}", string(b.device.WorkspaceID), "{message}", string(message),
		"{chat}", url.PathEscape(chatOf(0)),
		"{endpoint}", string(b.endpoint.ID), "{delivery}", string(deliveries.List[0].ID),
	)
}

// copies adds messages of the devices in the same chats, with an event and a delivery each.
func (b *backlog) copies(t *testing.T, database string, devices []postern.Device) {
	t.Helper()
	const n = pageMessages - pageReceived
	table := storetest.OpenTable(t, b.dir, database)
	device := "CASE "
	for i, d := range devices {
		device += fmt.Sprintf("WHEN i %% %d = %d THEN '%s' ", len(devices), i, d.ID)
	}
	chat := `'+1555' || substr(CAST(10000000 + i % 1000 AS TEXT), 2)`
	table.Multiply("message", "n", map[string]string{
		"id": `'msg_C' || CAST(i AS TEXT)`, "network_id": `'C' || CAST(i AS TEXT)`, "chat_id": chat, "from_number": chat,
		"device_id": device + "END",
	}, n)
	table.Multiply("event", "position", map[string]string{
		"id": `'evt_C' || CAST(i AS TEXT)`, "sequence": "one.sequence + i",
	}, n)
	table.Multiply("delivery", "n", map[string]string{
		"id": `'dlv_C' || CAST(i AS TEXT)`, "position": "one.position + i",
	}, n)
}

// quietEndpoints adds endpoints that subscribe to device events only. The benchmark records no such events.
func (b *backlog) quietEndpoints(t *testing.T) {
	t.Helper()
	for range pageEndpoints - 1 {
		e := b.endpoint
		e.ID, e.Events = postern.NewEndpointID(), []string{"device.*"}
		if err := b.db.Endpoints.Create(t.Context(), e, pageEndpoints, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.db.Endpoints.Activate(t.Context(), e.ID, e.CreatedAt); err != nil {
			t.Fatal(err)
		}
	}
}

// signedIn makes the first user, who owns the workspace.
func signedIn(t *testing.T, p *people.People, h http.Handler) *http.Cookie {
	t.Helper()
	token, err := p.Users.OpenSetUp(t.Context(), access.Operator())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"workspace": {"acme"}, "email": {"ada@example.com"}, "password": {"four plain words here"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/setup/"+token, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if w.Code == http.StatusSeeOther && c.Name == "postern" {
			return c
		}
	}
	t.Fatalf("the set-up is answered %d", w.Code)
	return nil
}
