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

	"postern/internal/dash"
	"postern/internal/gateway"
	"postern/internal/postern"
)

const (
	pageDevices  = 50
	pageMessages = 100_000
)

// pages measures the server's time for each page of the dashboard, in a workspace
// with many devices and messages.
func pages(t *testing.T) (list []figure) {
	h, cookie, device := dashboard(t)
	for _, path := range []string{"/", "/?span=month", "/usage", "/events", "/events?type=device.*", "/devices", "/devices/" + string(device.ID), "/keys", "/account", "/operator", "/operator/workspaces", "/operator/workspaces?q=none", "/operator/workspaces/" + string(device.WorkspaceID), "/operator/people"} {
		f := figure{name: "dashboard " + strings.NewReplacer(string(device.ID), "{id}", string(device.WorkspaceID), "{id}").Replace(path), unit: "µs", extra: fmt.Sprintf("%d devices, %d messages (goal 50 ms)", pageDevices, pageMessages)}
		for range rounds {
			f.ours = append(f.ours, pageTime(t, h, cookie, path))
		}
		list = append(list, f)
	}
	return list
}

func pageTime(t *testing.T, h http.Handler, cookie *http.Cookie, path string) float64 {
	t.Helper()
	const n = 50
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
	return float64(time.Since(began).Microseconds()) / n
}

// dashboard is one whose first user is signed in, and a device of the workspace.
func dashboard(t *testing.T) (http.Handler, *http.Cookie, postern.Device) {
	t.Helper()
	b := newBacklog(t, "https://example.com")
	devices := []postern.Device{b.device}
	for range pageDevices - 1 {
		d := b.device
		d.ID = postern.NewDeviceID()
		if err := b.db.CreateDevice(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	inParallel(64, func(n int) error {
		for i := n; i < pageMessages; i += 64 {
			b := *b
			b.device = devices[i%pageDevices]
			if _, err := b.receive(context.WithoutCancel(t.Context())); err != nil {
				return err
			}
		}
		return nil
	}, t)
	g := gateway.New(gateway.Options{DB: b.db, Box: b.box, Log: slog.New(slog.DiscardHandler)})
	h := dash.Handler(dash.Options{Gateway: g, Log: slog.New(slog.DiscardHandler), BaseURL: "http://localhost", Address: func(*http.Request) string { return "127.0.0.1" }})
	return h, signedIn(t, g, h), b.device
}

// signedIn makes the first user, who owns the workspace.
func signedIn(t *testing.T, g *gateway.Gateway, h http.Handler) *http.Cookie {
	t.Helper()
	token, err := g.OpenSetUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"workspace": {"acme"}, "email": {"ada@example.com"}, "password": {"four plain words here"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/setup/"+token, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	list := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(list) == 0 {
		t.Fatalf("the set-up is answered %d", w.Code)
	}
	return list[0]
}
