package chaos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// prometheus is a Prometheus with our rules, which scrapes the servers of the test each second.
type prometheus struct {
	t   *testing.T
	dir string
	url string

	mu      sync.Mutex // guards what follows
	targets map[string]string
}

// startPrometheus starts Debian's Prometheus.
func startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{t: t, dir: t.TempDir(), url: "http://" + l.Addr().String(), targets: map[string]string{}}
	rules, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("rules.yml", hurried(t, string(rules)))
	p.write("targets.json", "[]")
	p.write("prometheus.yml", `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: postern
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`)
	l.Close() // Prometheus takes the port
	cmd := exec.Command("prometheus", "--config.file", filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(p.dir, "data"), "--web.listen-address", l.Addr().String(), "--log.level", "error")
	cmd.Stderr = os.Stderr
	proc, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proc.kill)
	for status := 0; status != 200; status, _ = fetch(p.url + "/-/ready") {
		select {
		case <-proc.ended:
			t.Fatalf("Prometheus did not start: %v", proc.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return p
}

func (p *prometheus) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// hurried returns the rules with shorter times: an alert fires when its condition has held for two seconds, and
// what must have waited for minutes has waited for as many quarters of a second. Conditions stay as they are.
func hurried(t *testing.T, rules string) string {
	t.Helper()
	for pattern, short := range map[string]string{
		`for: \d+m`: "for: 2s", `oldest_seconds > 900`: "oldest_seconds > 15", `lag_seconds > 300`: "lag_seconds > 5",
	} {
		in := regexp.MustCompile(pattern)
		if !in.MatchString(rules) {
			t.Fatalf("the rules have no %s", pattern)
		}
		rules = in.ReplaceAllString(rules, short)
	}
	return rules
}

// watch scrapes the server of a fault at an address.
func (p *prometheus) watch(fault, ops string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ops == "" || p.targets[fault] == ops {
		return
	}
	p.targets[fault] = ops
	p.tell()
}

// forget ends the scrapes of a server.
func (p *prometheus) forget(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.targets, fault)
	p.tell()
}

func (p *prometheus) tell() {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	list := []group{}
	for _, name := range slices.Sorted(maps.Keys(p.targets)) {
		list = append(list, group{[]string{strings.TrimPrefix(p.targets[name], "http://")}, map[string]string{"instance": name}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("targets.json", string(text))
}

// fired lists the alerts of a fault that have fired.
func (p *prometheus) fired(fault string) (names []string) {
	p.t.Helper()
	query := fmt.Sprintf(`max by (alertname) (max_over_time(ALERTS{alertstate="firing",instance=%q}[2h]))`, fault)
	status, body := fetch(p.url + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	var answer struct {
		Data struct {
			Result []struct {
				Metric struct{ Alertname string }
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		p.t.Fatalf("Prometheus: %d %s", status, body)
	}
	for _, r := range answer.Data.Result {
		names = append(names, r.Metric.Alertname)
	}
	slices.Sort(names)
	return names
}

// alertNames are those of the rules.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		names = append(names, m[1])
	}
	return names
}

// value returns the latest value of a metric of the server with a fault, or 0 if there is none.
func (p *prometheus) value(fault, metric string) (v float64) {
	query := fmt.Sprintf(`%s{instance=%q}`, metric, fault)
	_, body := fetch(p.url + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if json.Unmarshal(body, &answer) == nil && len(answer.Data.Result) > 0 {
		fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &v)
	}
	return v
}
