package chaos_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"postern/internal/chaos"
	"postern/internal/health"
)

// seen is what a server says of itself at one moment.
type seen struct {
	Health  int      // the status of /healthz; 0: no answer
	Ready   int      // the status of /readyz
	Reasons []string // of /readyz, such as "disk: disk-full", sorted; those of warnings too
	Metrics string   // the same as metrics say it: postern_ready and the reasons of postern_problem
}

func (s seen) String() string {
	return fmt.Sprintf("/healthz %d, /readyz %d %v, metrics %s", s.Health, s.Ready, s.Reasons, s.Metrics)
}

// agree reports whether the metrics say the same as /readyz.
func (s seen) agree() bool { return s.Metrics == saying(s.Ready == http.StatusOK, s.Reasons) }

func saying(ready bool, reasons []string) string {
	is := 0
	if ready {
		is = 1
	}
	return fmt.Sprintf("%d %v", is, reasons)
}

// fresh makes each request on a new connection, as a load balancer or a new client does.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// fetch returns the status and the body of the response, or 0 and nil if there is none.
func fetch(url string) (int, []byte) {
	res, err := fresh.Get(url)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, body
}

// look asks the server what it says of itself.
func (n *night) look() (s seen) {
	s.Health, _ = fetch(n.ops() + "/healthz")
	status, body := fetch(n.ops() + "/readyz")
	var r health.Report
	if status != 0 {
		if err := json.Unmarshal(body, &r); err != nil {
			n.t.Errorf("/readyz answers %q", body)
		}
	}
	s.Ready = status
	for _, p := range slices.Concat(r.Problems, r.Warnings) {
		s.Reasons = append(s.Reasons, p.Check+": "+p.Reason)
	}
	slices.Sort(s.Reasons)
	s.Metrics = n.measured()
	return s
}

// measured is what the metrics say of readiness.
func (n *night) measured() string {
	var reasons []string
	all := n.metrics()
	for series := range all {
		var check, reason string
		if _, err := fmt.Sscanf(series, "postern_problem{check=%q,reason=%q}", &check, &reason); err == nil {
			reasons = append(reasons, check+": "+reason)
		}
	}
	slices.Sort(reasons)
	return saying(all["postern_ready"] == 1, reasons)
}

// metrics reads all series.
func (n *night) metrics() map[string]float64 {
	_, body := fetch(n.ops() + "/metrics")
	all := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if series += "}"; value == "" {
			series, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			all[series] = v
		}
	}
	return all
}

// sum adds up the series of a metric that have a label, such as `status="connected"`.
func (n *night) sum(metric, label string) (sum float64) {
	for series, value := range n.metrics() {
		if strings.HasPrefix(series, metric+"{") && strings.Contains(series, label) {
			sum += value
		}
	}
	return sum
}

// says runs "postern status" and returns its exit status and the reasons that it names.
func (n *night) says() (code int, text string) {
	cmd := exec.Command(n.opts.Bin.postern, "status", "--data-dir", n.gateway.dir)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// probe asks for a message on a new connection, and returns the answer as "503 UNAVAILABLE".
func (n *night) probe() string {
	n.probes++
	dev := n.devices[n.probes%len(n.devices)]
	a := chaos.Ask{Device: dev.id, To: reader, Body: fmt.Sprintf("probe-%d", n.probes)}
	a.Key = a.Body
	told := chaos.Told{Key: a.Key}
	n.note(chaos.Call{Ask: &a})
	answer := n.request(http.MethodPost, "/v1/messages", map[string]any{
		"deviceId": a.Device, "to": a.To, "body": a.Body, "whenDisconnected": "queue",
	}, a.Key)
	told.Status, told.MessageID = answer.status, answer.id
	n.note(chaos.Call{Told: &told})
	if told.MessageID != "" {
		n.driver.accept(n.lastURL, told.MessageID)
	}
	return answer.text
}

func (n *night) note(c chaos.Call) {
	if err := n.driver.notes.Write(c); err != nil {
		n.t.Fatal(err)
	}
}

// reply is an answer of the API.
type reply struct {
	status   int
	id, text string // text is the status with the code, such as "503 UNAVAILABLE"
}

// request makes a request to the API on a new connection.
func (n *night) request(method, path string, in map[string]any, key string) reply {
	if now, _ := n.where(); now != "" {
		n.lastURL = now
	}
	text, err := json.Marshal(in)
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequest(method, n.lastURL+path, bytes.NewReader(text))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header = n.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := fresh.Do(req)
	if err != nil {
		return reply{text: "no answer"}
	}
	defer res.Body.Close()
	var told struct{ ID, Code string }
	if err := json.NewDecoder(res.Body).Decode(&told); err != nil {
		return reply{text: "no answer"}
	}
	r := reply{res.StatusCode, told.ID, fmt.Sprint(res.StatusCode)}
	if told.Code != "" {
		r.text += " " + told.Code
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		r.text += " without Retry-After"
	}
	return r
}

// line is a line of the log.
type line struct {
	Level, Msg, Check, Reason, Error string
}

func (l line) String() string {
	return strings.TrimSpace(strings.Join([]string{l.Level, l.Msg, l.Check, l.Reason}, " "))
}

// lines are those of level WARN or ERROR from an offset on.
func (n *night) lines(from int64) (list []line) {
	f, err := os.Open(n.gateway.log.Name())
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		n.t.Fatal(err)
	}
	for in := bufio.NewReader(f); ; {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return list
		}
		var l line
		if json.Unmarshal(text, &l) == nil && (l.Level == "WARN" || l.Level == "ERROR") {
			list = append(list, l)
		}
	}
}

// logged is how long the log is.
func (n *night) logged() int64 {
	info, err := os.Stat(n.gateway.log.Name())
	if err != nil {
		n.t.Fatal(err)
	}
	return info.Size()
}

// The lines with which the log tells that a check fails, or succeeds again.
const (
	notReady = "the server is not ready"
	inPart   = "the server works only in part"
	isBack   = "the check succeeds again"
)

// changes returns the lines about checks, and counts the others.
func changes(list []line) (checks []line, others map[string]int) {
	others = map[string]int{}
	for _, l := range list {
		if l.Msg == notReady || l.Msg == inPart || l.Msg == isBack {
			checks = append(checks, l)
		} else {
			others[l.Level+" "+l.Msg]++
		}
	}
	return checks, others
}

// counted prints counts in the order of their names.
func counted(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(list, ", ")
}
