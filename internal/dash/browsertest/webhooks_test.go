package browsertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// hook is a receiver that answers events with a status, and the challenge only
// when it is told to.
type hook struct {
	*httptest.Server
	greets  atomic.Bool
	status  atomic.Int32
	events  atomic.Int32 // that it took
	refused atomic.Int32 // that it did not take
}

func receive(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.status.Store(http.StatusOK)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct{ Type, Challenge string }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &e) != nil {
			return
		}
		switch status := int(h.status.Load()); {
		case e.Type == "webhook.verification" && h.greets.Load():
			_, _ = w.Write([]byte(e.Challenge))
		case e.Type == "webhook.verification":
			_, _ = w.Write([]byte("<script>hello</script>"))
		case status != http.StatusOK:
			h.refused.Add(1)
			http.Error(w, "<b>not now</b>", status)
		default:
			h.events.Add(1)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// awaits waits until the page says something, as it renews itself.
func (b *browser) awaits(text string) {
	b.t.Helper()
	for deadline := time.Now().Add(testkit.Wait); !strings.Contains(b.text(),
		text); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.picture("awaited")
			b.t.Fatalf("waited in vain for %q; the page says: %.800s", text, b.text())
		}
	}
}

// looks keeps a picture of the page and judges it.
func (b *browser) looks(name string) {
	b.t.Helper()
	b.picture(name)
	b.usable()
}

func TestWebhookIsExplainedMendedTestedRetriedAndReplayed(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	h := receive(t)
	b := open(t, k.URL())
	b.do(chromedp.Navigate(k.SetUpURL()))
	b.fill("#workspace", "Acme", "#email", email, "#password", password)
	b.press("main form button:not([type])")
	b.goTo("/webhooks")
	b.looks("webhooks-none")
	b.goTo("/webhooks/new")
	b.picture("webhook-new")
	b.fill("#url", h.URL+"/hook", "#description", "orders service")
	b.press("main form button:not([type])")
	b.sees("whsec_")
	b.looks("webhook-secret")

	b.press("main p a.btn-primary")
	own := b.path()
	b.awaits("not with the challenge")
	b.sees(" of 5 challenge attempts")
	b.looks("webhook-explained")
	h.greets.Store(true)
	b.press(`form[action$="/verify"] button`)
	b.awaits("Send a test event")

	h.status.Store(http.StatusServiceUnavailable)
	b.press(`form[action$="/test"] button`)
	b.awaits("Attempt 1: HTTP 503")
	b.sees("<b>not now</b>")
	workspace := postern.WorkspaceID(regexp.MustCompile(`ws_[0-9A-Z]{26}`).FindString(b.text()))
	b.looks("delivery-failed")
	h.status.Store(http.StatusOK)
	b.press(`form[action$="/retry"] button`)
	b.awaits(": HTTP 200") // which attempt it is depends on the retries meanwhile
	b.awaits("Succeeded")
	b.looks("delivery")
	b.goTo(own + "/deliveries")
	b.sees("webhook.test")
	b.looks("deliveries")

	k.Key(workspace, gateway.NewKey{Name: "test"}).Link("+15550001111")
	testkit.Eventually(t, "the delivery of an event", func() (bool, any) {
		b.goTo(own + "/deliveries?status=succeeded&type=device.connected")
		return strings.Contains(b.text(), "HTTP 200"), b.text()
	})
	testkit.Eventually(t, "no delivery that is pending", func() (bool, any) {
		b.goTo(own + "/deliveries?status=pending")
		return strings.Contains(b.text(), "No deliveries"), b.text()
	})
	b.goTo(own + "/replay")
	b.picture("replay-new")
	b.do(
		click("main form summary"),
		click(`input[value="device.connected"]`),
	)
	taken := h.events.Load()
	b.press("main form button:not([type])")
	b.awaits("Completed")
	b.sees("1 of 1 event delivered")
	if got := h.events.Load(); got != taken+1 {
		t.Errorf("the replay posted %d events, want 1", got-taken)
	}
	b.looks("replay")
	b.press(`a[href$="/replays"]`)
	b.sees("1 of 1 event delivered")
	b.looks("replays")

	b.goTo(own)
	b.sees(fmt.Sprintf("%d failed", h.refused.Load()))
	b.looks("webhook")
	b.goTo(own + "/edit")
	b.picture("webhook-edit")
	b.do(click("main form > details summary"))
	b.fill("#headers", "Host: elsewhere")
	b.do(click(`input[name="v1a"]`), click(`input[name="device"]`))
	b.looks("webhook-details")
	b.press("main form button:not([type])")
	b.focuses("headers")
	b.sees("cannot be replaced")
	b.looks("webhook-details-refused")
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("headers").value = ""`))
	b.fill("#headers", "X-Tenant: acme")
	b.press("main form button:not([type])")
	b.sees("The webhook was changed.")
	b.sees("X-Tenant")
	b.sees("whpk_")
	b.looks("webhook-changed")
	b.goTo(own + "/secret")
	b.picture("webhook-reveal")
	b.fill("#password", password)
	b.press("main form button:not([type])")
	b.sees("whsec_")
	b.goTo("/webhooks")
	b.sees("orders service")
	b.looks("webhooks")

	b.goTo(own)
	b.do(click(`button[commandfor="rotate-secret"]`))
	b.looks("webhook-rotate")
	b.press("#rotate-secret button.btn-primary")
	b.sees("the old secret until")
	b.goTo(own)
	h.greets.Store(false)
	b.press(`form[action$="/verify"] button`)
	b.awaits("not with the challenge")
	b.press(`form[action$="/pause"] button`)
	b.sees("The webhook is paused.")
	b.looks("webhook-paused")
	b.do(click(`button[commandfor="delete-webhook"]`))
	b.looks("webhook-delete")
	b.press("#delete-webhook button.btn-error")
	b.sees("No webhooks yet")
}

// The page of a webhook says what it has not received, retries that at once, and shows how far the retry has come.
func TestRetriesAreFollowed(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	h := receive(t)
	h.greets.Store(true)
	b := open(t, k.URL())
	b.setUp(k)
	c, _ := b.linked(k)
	var hook struct{ ID string }
	c.Call(http.MethodPost, "/v1/webhooks", map[string]any{"url": h.URL}, http.StatusCreated, &hook)
	own := "/webhooks/" + hook.ID
	b.goTo(own)
	b.awaits("Send a test event")
	h.status.Store(http.StatusServiceUnavailable)
	c.Link("+15550003333")
	b.awaits("Failing since")
	b.awaits("not received yet, the oldest from")
	b.looks("webhook-backlog")
	h.status.Store(http.StatusOK)
	b.press("#backlog form button")
	b.awaits("no longer wait.")
	b.looks("webhook-retried")
	b.goTo(own + "/replay?failed=on&since=2026-01-01T00:00")
	b.awaits("0 events failed since then.")
	b.looks("webhook-recover")
}
