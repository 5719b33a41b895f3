package testkit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/testkit"

	"github.com/coder/websocket"
)

// browser is a real one without a window, driven over its debugging protocol
// (chromedevtools.github.io/devtools-protocol).
type browser struct {
	t       *testing.T
	ws      *websocket.Conn
	session string // of the open page
	serial  int
	events  []string // of the open page, by name, that nobody awaited yet
	log     bytes.Buffer
	end     func() // ends the browser; then log is complete
}

// newBrowser starts Chromium with an empty page of a phone's size.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	b := startBrowser(t)
	b.newPage()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true}, nil)
	return b
}

// startBrowser starts Chromium without a page.
func startBrowser(t *testing.T, more ...string) *browser {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "chromium-headless-shell", append([]string{
		"--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-port=0", "--user-data-dir=" + dir,
	}, append(more, "about:blank")...)...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	b := &browser{t: t}
	cmd.Stderr, cmd.WaitDelay = &b.log, 5*time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start chromium-headless-shell, which \"make deps\" installs: %v", err)
	}
	b.end = sync.OnceFunc(func() {
		defer time.AfterFunc(testkit.Wait, cancel).Stop()
		b.quit()
		_ = cmd.Wait() // how it ended does not matter
		cancel()
	})
	t.Cleanup(b.end)
	b.dial(filepath.Join(dir, "DevToolsActivePort"))
	return b
}

// newPage opens an empty page, to which everything refers from now on.
func (b *browser) newPage() {
	b.t.Helper()
	b.session, b.events = "", nil
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
}

func (b *browser) dial(portFile string) {
	b.t.Helper()
	var lines []string
	testkit.Eventually(b.t, "chromium", func() (bool, any) {
		text, err := os.ReadFile(portFile)
		lines = strings.Split(strings.TrimSpace(string(text)), "\n")
		return len(lines) == 2, err
	})
	ws, res, err := websocket.Dial(b.t.Context(), "ws://127.0.0.1:"+lines[0]+lines[1], nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	ws.SetReadLimit(32 << 20)
	b.ws = ws
}

// quit asks the browser to end, so that it leaves nothing behind.
func (b *browser) quit() {
	if b.ws == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Wait)
	defer cancel()
	_ = b.ws.Write(ctx, websocket.MessageText, []byte(`{"id":0,"method":"Browser.close"}`)) // then it is gone already
	for {
		if _, _, err := b.ws.Read(ctx); err != nil {
			return
		}
	}
}

// call asks the browser for something.
func (b *browser) call(method string, params map[string]any, out any) {
	b.t.Helper()
	if err := b.ask(method, params, out); err != nil {
		b.t.Fatal(err)
	}
}

// ask is call with an error for what the browser refuses.
func (b *browser) ask(method string, params map[string]any, out any) error {
	b.t.Helper()
	b.serial++
	ask, err := json.Marshal(map[string]any{"id": b.serial, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		ask, err = json.Marshal(map[string]any{"id": b.serial, "method": method, "params": params})
	}
	if err == nil {
		err = b.ws.Write(b.t.Context(), websocket.MessageText, ask)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		answer := b.read(method)
		switch {
		case answer.ID != b.serial: // an event
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case out == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, out)
		}
	}
}

// answer is what the browser says: to a request, or, without ID, an event.
type answer struct {
	ID                int
	Method, SessionID string
	Result            json.RawMessage
	Error             *struct{ Message string }
}

// read returns what the browser says next, and notes events of the page.
func (b *browser) read(what string) (a answer) {
	b.t.Helper()
	_, text, err := b.ws.Read(b.t.Context())
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	if a.ID == 0 && a.SessionID == b.session {
		b.events = append(b.events, a.Method)
	}
	return a
}

// happens waits for an event of the page.
func (b *browser) happens(event string) {
	b.t.Helper()
	for !slices.Contains(b.events, event) {
		b.read(event)
	}
	b.events = nil
}

// eval runs an expression on the page and gives its value as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var out struct{ Result struct{ Value any } }
	b.call("Runtime.evaluate", map[string]any{"expression": expression}, &out)
	return fmt.Sprint(out.Result.Value)
}

// await waits until the page shows a text and everything that it links to is there,
// its style sheet too. A page that is about to be left answers with an error.
func (b *browser) await(text string) {
	b.t.Helper()
	const shown = "document.readyState === 'complete' ? document.body.innerText : ''"
	testkit.Eventually(b.t, fmt.Sprintf("%q on the page", text), func() (bool, any) {
		var out struct{ Result struct{ Value string } }
		if err := b.ask("Runtime.evaluate", map[string]any{"expression": shown}, &out); err != nil {
			return false, err
		}
		return strings.Contains(out.Result.Value, text), out.Result.Value
	})
}

// picture takes a screenshot into POSTERN_SCREENSHOTS, for people to look at.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("POSTERN_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia",
			map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		var shot struct{ Data string }
		b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
		png, err := base64.StdEncoding.DecodeString(shot.Data)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), png, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// fits fails when something sticks out of the page at the side.
func (b *browser) fits(what string) {
	b.t.Helper()
	if wide := b.eval("document.documentElement.scrollWidth"); wide != "390" {
		b.t.Errorf("%s is %s points wide on a screen of 390", what, wide)
	}
}
