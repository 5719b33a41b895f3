package testkit_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/internal/trace/tracetest"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape returns what Prometheus would read.
func scrape(t *testing.T, k *testkit.Kit) string {
	t.Helper()
	res, err := http.Get(k.OpsURL() + "/metrics") //nolint:noctx // the test ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", res.Status, err)
	}
	return string(text)
}

// busyServer is a server that has sent, received and delivered something, and refused a request.
func busyServer(t *testing.T) *testkit.Kit {
	t.Helper()
	k := testkit.Start(t)
	return busy(t, k)
}

// busy makes a server that has just started busy.
func busy(t *testing.T, k *testkit.Kit) *testkit.Kit {
	t.Helper()
	c := k.Workspace("growth")
	hooks := c.Receive()
	d := c.Link(phone)
	c.AwaitMessage(send(c, d, reader, "out").ID, postern.Read)
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "in"); err != nil {
		t.Fatal(err)
	}
	hooks.Await(postern.MessageReceived)
	c.Call("GET", "/v1/messages/msg_none", nil, 404, nil)
	return k
}

// Each metric says what happened, follows the rules of Prometheus, and has no id in a label.
func TestMetricsSayWhatHappened(t *testing.T) {
	t.Parallel()
	k := busyServer(t)
	for _, want := range []string{
		`postern_build_info{go="go`,
		`postern_ready 1`,
		`postern_devices{status="connected"} 1`,
		`postern_messages_total{direction="inbound",kind="text",status="received"} 1`,
		`postern_messages_total{direction="outbound",kind="text",status="queued"} 1`,
		`postern_messages_total{direction="outbound",kind="text",status="sent"} 1`,
		`postern_messages_total{direction="outbound",kind="text",status="read"} 1`,
		`postern_message_sent_seconds_count 1`,
		`postern_message_received_seconds_count 1`,
		`postern_events_total{type="message.received"} 1`,
		`postern_device_state_changes_total{reason="",status="connected"}`,
		`postern_link_attempts_total{outcome="linked"} 1`,
		`postern_http_request_seconds_count{method="POST",route="/v1/messages",status="202"} 1`,
		`postern_http_refusals_total{reason="not-found"} 1`,
		`postern_webhook_attempts_total{outcome="success"}`,
		`postern_disk_free_bytes `, `postern_queued_messages 0`, `postern_store_commit_seconds_count`,
		`postern_sessions 1`, `postern_store_waiting_reads 0`, `postern_store_read_waits_total `,
		`postern_device_cache_reads_total{result="hit"} `, `postern_store_log_size_bytes `,
	} {
		testkit.Eventually(t, want, func() (bool, any) {
			text := scrape(t, k)
			return strings.Contains(text, want), ownLines(text)
		})
	}
	text := scrape(t, k)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "postern_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if id := regexp.MustCompile(`(ws|dev|msg|key|wh|usr)_[0-9A-Z]{26}|\+[0-9]{7,}`).FindString(text); id != "" {
		t.Errorf("a label has the id %s", id)
	}
}

// startPerWorkspace starts a server that counts per workspace, and counts spans.
func startPerWorkspace(t *testing.T) *testkit.Kit {
	t.Helper()
	k := testkit.Start(t)
	k.Stop()
	k.Config.MetricsWorkspaces = true
	k.Config.OTLPEndpoint = tracetest.Start(t).URL
	k.Boot()
	return k
}

// With the switch, what each workspace does is counted with its id, and what another one does is not.
func TestMetricsPerWorkspace(t *testing.T) {
	t.Parallel()
	k := startPerWorkspace(t)
	busy(t, k)
	other := k.Workspace("growth")
	other.Link(customer)
	text := scrape(t, k)
	for _, want := range []string{
		`postern_workspace_messages_total\{direction="outbound",status="queued",workspace="ws_[0-9A-Z]{26}"\} 1\n`,
		`postern_workspace_messages_total\{direction="inbound",status="received",workspace="ws_[0-9A-Z]{26}"\} 1\n`,
		`postern_workspace_events_total\{workspace="ws_[0-9A-Z]{26}"\} \d+\n`,
	} {
		testkit.Eventually(t, want, func() (bool, any) {
			text = scrape(t, k)
			return regexp.MustCompile(want).MatchString(text), ownLines(text)
		})
	}
	if n := len(regexp.MustCompile(`(?m)^postern_workspace_events_total`).FindAllString(text, -1)); n != 2 {
		t.Errorf("events of %d workspaces, want 2", n)
	}
}

// metricName matches the names of our metrics.
var metricName = regexp.MustCompile(`\bpostern_[a-z_]+`)

// The alert rules, the dashboard and the documentation name only metrics that exist, and the documentation
// names all of them.
func TestMetricsThatAreNamedExist(t *testing.T) {
	t.Parallel()
	partial := testkit.StartOn(t, dbtest.URL(t))
	partial.Stop()
	partial.Config.MediaURL = "" // so that there is a warning
	partial.Boot()
	testkit.Eventually(t, "a warning", func() (bool, any) {
		text := scrape(t, partial)
		return strings.Contains(text, `postern_problem{check="media-storage",reason="no-media-storage"} 1`), ownLines(text)
	})
	text := scrape(t, busy(t, startPerWorkspace(t))) + scrape(t, partial)
	var exist []string
	for _, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "# TYPE postern_"); ok {
			name, _, _ = strings.Cut(name, " ")
			exist = append(exist, "postern_"+name)
		}
	}
	for _, file := range []string{"deploy/prometheus/rules.yml", "deploy/grafana/postern.json", "docs/monitoring.md"} {
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(source), -1) {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			if !slices.Contains(exist, name) && !slices.Contains(exist, base) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if file != "docs/monitoring.md" {
			continue
		}
		for _, name := range exist {
			if !bytes.Contains(source, []byte("`"+name+"`")) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}

// ownLines are the lines of our metrics.
func ownLines(text string) string {
	return strings.Join(regexp.MustCompile(`(?m)^postern_[^ ]* .*$`).FindAllString(text, -1), "\n")
}

// The tools of Prometheus accept the metrics and the alert rules, and each alert fires in its fault and is silent
// when all is well.
func TestToolsOfPrometheus(t *testing.T) {
	t.Parallel()
	rules := filepath.Join("..", "..", "deploy", "prometheus")
	for _, args := range [][]string{
		{"check", "metrics"},
		{"check", "rules", filepath.Join(rules, "rules.yml")},
		{"test", "rules", filepath.Join(rules, "rules_test.yml")},
	} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Stdin = strings.NewReader(strings.Join(regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?postern_.*\n`).
			FindAllString(scrape(t, busy(t, startPerWorkspace(t))), -1), ""))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
