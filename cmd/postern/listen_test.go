package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// awaitText waits until a command has printed a text. It gives up only when the test
// is about to run out of time.
func awaitText(t *testing.T, o *output, text string) {
	t.Helper()
	ctx := untilTimeout(t)
	for {
		changed := o.changes()
		if strings.Contains(o.String(), text) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %q\n%s", text, o.String())
		}
	}
}

// interrupt sends what Ctrl-C sends and returns the exit status.
func interrupt(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// TestListenPostsToADevelopersMachine takes the secret from where a developer finds
// it: the output of the command.
func TestListenPostsToADevelopersMachine(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--plan", "growth", "--json", at))
	key := matched(t, `"(pst_[^"]+)"`, mustRun(t, "key", "create", "--workspace", ws, "--name", "ci", "--json", at))
	posts := make(chan *http.Request, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		posts <- r
	}))
	t.Cleanup(srv.Close)

	var out, errs output
	cmd := program(t.Context(), &out, &errs, "listen", "--forward-to", srv.URL+"/hook", "--json", "--type",
		"device.linked,device.connected")
	cmd.Env = append(cmd.Env, "POSTERN_KEY="+key, "POSTERN_URL="+url)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitText(t, &errs, "connected to "+url+", listening for new events")
	check, err := standardwebhooks.NewWebhook(matched(t, `(?m)^  (whsec_\S+)$`, errs.String()))
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(post(t, url+"/v1/devices", key, `{"name":"d"}`), &made); err != nil {
		t.Fatal(err)
	}
	post(t, url+"/v1/devices/"+made.ID+"/link", key, `{}`)
	scanIn(t, url, key, made.ID, "+15550001111")
	for _, want := range []string{"device.linked", "device.connected"} {
		r := <-posts
		body, _ := io.ReadAll(r.Body)
		if err := check.Verify(body, r.Header); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s does not verify, or is not %s: %v", body, want, err)
		}
	}
	awaitText(t, &out, `"type":"device.connected"`)
	if exit := interrupt(t, cmd); exit != 0 {
		t.Errorf("Ctrl-C = %d, want 0\n%s", exit, errs.String())
	}
	if strings.Contains(out.String()+errs.String(), key) || strings.Contains(out.String(), "whsec_") ||
		!strings.Contains(errs.String(), "events: 2; to resume after the last one: --after evt_") {
		t.Errorf("it prints\n%s%s", out.String(), errs.String())
	}
}

func post(t *testing.T, url, key, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s: %d %s %v", url, res.StatusCode, answer, err)
	}
	return answer
}

// TestListenIsStoppedWhileNoServerAnswers: the command waits for a server until it is
// interrupted.
func TestListenIsStoppedWhileNoServerAnswers(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	srv.Close()
	var out, errs output
	cmd := program(t.Context(), &out, &errs, "listen", "--url", srv.URL, "--key", "pst_canary")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitText(t, &errs, "no connection to "+srv.URL)
	if exit := interrupt(t, cmd); exit != 0 {
		t.Errorf("Ctrl-C = %d, want 0", exit)
	}
	if strings.Contains(out.String()+errs.String(), "canary") {
		t.Errorf("it prints its key: %s", errs.String())
	}
}

func TestListenTellsUsageFromRefusal(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--json", at))
	narrow := keyOf(t, "key", "create", "--workspace", ws, "--name", "narrow", "--scope", "devices:read", at).Key
	for name, tt := range map[string]struct {
		args []string
		exit int
		want string
	}{
		"no key":        {[]string{}, 2, "POSTERN_KEY"},
		"bad receiver":  {[]string{"--key", "pst_canary", "--forward-to", "localhost:3000"}, 2, "--forward-to"},
		"bad secret":    {[]string{"--key", "pst_canary", "--secret", "whsec_canary"}, 2, "--secret"},
		"bad key":       {[]string{"--key", "pst_canary X-Other: canary"}, 2, "--key"},
		"bad place":     {[]string{"--key", "pst_canary", "--after", "yesterday"}, 2, "--after"},
		"unknown flag":  {[]string{"--key", "pst_canary", "--fly"}, 2, "there is no flag --fly"},
		"wrong key":     {[]string{"--key", "pst_canary", "--url", url}, 1, "does not accept the key (401)"},
		"missing scope": {[]string{"--key", narrow, "--url", url}, 1, "lacks the scope events:read"},
		"help":          {[]string{"--key", "pst_canary", "--secret", "whsec_canary", "--help"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, out, errs := command(t, append([]string{"listen"}, tt.args...)...)
			if exit != tt.exit || !strings.Contains(errs, tt.want) || strings.Contains(out+errs, "canary") ||
				strings.Contains(out+errs, narrow) {
				t.Errorf("postern listen %v = %d %q, want %d and %q", tt.args, exit, out+errs, tt.exit, tt.want)
			}
		})
	}
}
