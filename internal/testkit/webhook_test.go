package testkit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestT7NoFieldTakesAForbiddenAddress gives each field that takes a URL every
// forbidden address, and the ways to write one that others read as such.
func TestT7NoFieldTakesAForbiddenAddress(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	k.Stop()
	k.Config.AllowPrivateWebhooks = false
	k.Boot()
	c := k.Workspace("growth")
	var e postern.Endpoint
	c.Call("POST", "/v1/webhooks", map[string]any{"url": "https://hooks.example.com/a"}, 201, &e)
	table, err := os.ReadFile("../egress/testdata/forbidden.txt")
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{
		"2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "0", "localhost", "LOCALHOST.",
		"app.localhost", "[fe80::1%25eth0]", "①②⑦.0.0.1", "127。0。0。1", "user@example.com", "127.0.0.1%2f@example.com",
	}
	for _, ip := range strings.Fields(string(table)) {
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]"
		}
		hosts = append(hosts, ip)
	}
	for _, host := range hosts {
		body := map[string]any{"url": "https://" + host + "/hook"}
		for _, route := range []struct{ method, path string }{
			{"POST", "/v1/webhooks"},
			{"PATCH", "/v1/webhooks/" + string(e.ID)},
		} {
			a := c.Do(route.method, route.path, body)
			var p struct{ Errors []postern.Field }
			a.JSON(k, &p)
			if a.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Pointer != "/url" {
				t.Errorf("%s with %s = %d %s, want 422 at /url", route.method, host, a.Status, a.Body)
			}
			if a.Status == 429 {
				t.Fatal("throttled")
			}
		}
	}
}

// TestEndpointMovesRotatesAndReplays drives an endpoint's whole life by the API,
// with a receiver that gets everything.
func TestEndpointMovesRotatesAndReplays(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	older := c.Receive("message.received")
	hook := "/v1/webhooks/" + string(older.Endpoint.ID)
	d := c.Link(phone)
	send(c, d, parrot, "to the old URL")
	first := older.Await(postern.MessageReceived)[0]

	posts := make(chan testkit.Delivery, 100)
	newer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		got := testkit.Delivery{Header: r.Header}
		if json.NewDecoder(r.Body).Decode(&raw) == nil && json.Unmarshal(raw, &got.Event) == nil {
			got.Body = raw
			posts <- got
		}
		json.NewEncoder(w).Encode(map[string]any{"challenge": got.Event["challenge"]})
	}))
	defer newer.Close()
	c.Call("PATCH", hook, map[string]any{"url": newer.URL}, 200, nil)
	testkit.Eventually(t, "the new URL in use", func() (bool, any) {
		var e struct{ URL, PendingURL string }
		c.Call("GET", hook, nil, 200, &e)
		return e.URL == newer.URL && e.PendingURL == "", e
	})
	if g := <-posts; g.Type() != postern.WebhookVerification {
		t.Errorf("the new URL got %s first", g.Body)
	}

	var rotated gateway.EndpointWithSecret
	c.Call("POST", hook+"/rotate-secret", map[string]any{"overlapSeconds": 0}, 200, &rotated)
	check, err := standardwebhooks.NewWebhook(rotated.Secret)
	if err != nil {
		t.Fatal(err)
	}
	var replay postern.Replay
	c.Call("POST", hook+"/replay", map[string]any{"types": []string{"message.received"}}, 202, &replay)
	g := <-posts
	if err := check.Verify(g.Body, g.Header); err != nil || string(g.Body) != string(first.Body) ||
		g.Header.Get("Webhook-Attempt") != "2" {
		t.Errorf("the replay brought %s (%v), want the bytes of %s under the new secret alone", g.Body, err, first.Body)
	}
	testkit.Eventually(t, "the end of the replay", func() (bool, any) {
		c.Call("GET", "/v1/replays/"+string(replay.ID), nil, 200, &replay)
		return replay.Status == postern.ReplayCompleted && replay.Matched == 1 && replay.Delivered == 1, replay
	})

	c.Call("POST", hook+"/test", nil, 202, nil)
	if g := <-posts; g.Type() != postern.WebhookTest || check.Verify(g.Body, g.Header) != nil {
		t.Errorf("the test event is %s", g.Body)
	}
}
