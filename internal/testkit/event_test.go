package testkit_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"postern/internal/config"
	"postern/internal/postern"
	"postern/internal/testkit"
)

type eventLog struct {
	Data       []json.RawMessage `json:"data"`
	NextCursor *string           `json:"nextCursor"`
}

func idOf(t *testing.T, event json.RawMessage) string {
	t.Helper()
	var e struct{ EventID string }
	if err := json.Unmarshal(event, &e); err != nil || e.EventID == "" {
		t.Fatalf("%v in %s", err, event)
	}
	return e.EventID
}

// TestLogHasTheBytesOfTheWebhooks compares the three ways an event takes: POST,
// list and stream.
func TestLogHasTheBytesOfTheWebhooks(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive()
	d := c.Link(phone)
	send(c, d, reader, "Grüße <&> \u2028 👋")
	hooks.Await(postern.DeviceLinking, postern.DeviceLinked, postern.DeviceConnected, postern.MessageSent,
		postern.MessageDelivered, postern.MessageRead)
	posted := map[string]string{}
	for _, del := range hooks.All() {
		if del.Event["deviceId"] != "" {
			posted[del.Header.Get("Webhook-Id")] = string(del.Body)
		}
	}
	var log eventLog
	c.Call("GET", "/v1/events", nil, 200, &log)
	if len(log.Data) != len(posted) || len(posted) != 6 {
		t.Fatalf("the log has %d events, %d were posted, want 6", len(log.Data), len(posted))
	}
	for _, e := range log.Data {
		if id := idOf(t, e); posted[id] != string(e) {
			t.Errorf("event %s is\n%s in the log, and was posted as\n%s", id, e, posted[id])
		}
	}
	for i, data := range streamed(t, k, c, idOf(t, log.Data[0]), 5) {
		if data != string(log.Data[i+1]) {
			t.Errorf("the stream gives\n%s, want\n%s", data, log.Data[i+1])
		}
	}
}

// openStream follows the events after one, or the new ones if after is empty.
func openStream(t *testing.T, k *testkit.Kit, c *testkit.Client, after string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.URL()+"/v1/events/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := testkit.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// streamed returns the first n events after one, from the stream.
func streamed(t *testing.T, k *testkit.Kit, c *testkit.Client, after string, n int) (list []string) {
	t.Helper()
	res := openStream(t, k, c, after)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for len(list) < n && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}

func TestServerRemovesWhatIsTooOld(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	m := send(c, d, reader, "x")
	c.AwaitMessage(m.ID, postern.Read)
	var log eventLog
	c.Call("GET", "/v1/events", nil, 200, &log)
	k.Stop()
	k.Config.RetentionEvents, k.Config.RetentionMessages = config.Span(time.Millisecond), config.Span(time.Millisecond)
	k.Boot()
	testkit.Eventually(t, "the old events to be removed", func() (bool, any) {
		a := c.Do("GET", "/v1/events?after="+idOf(t, log.Data[0]), nil)
		return a.Status == 410 && strings.Contains(string(a.Body), `"code":"EVENTS_EXPIRED"`), string(a.Body)
	})
	testkit.Eventually(t, "the old message to be removed", func() (bool, any) {
		a := c.Do("GET", "/v1/messages/"+string(m.ID), nil)
		return a.Status == 404, a.Status
	})
}
