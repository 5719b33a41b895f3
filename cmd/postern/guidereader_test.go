package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"postern/internal/testkit"
)

// guideReader is somebody who follows a guide in a shell, in an own workspace and directory.
type guideReader struct {
	t     *testing.T
	kit   *testkit.Kit
	c     *testkit.Client
	wait  time.Duration
	dir   string
	ids   map[string]string
	port  string // instead of 3000, for the programs of a guide
	shell io.Writer
	done  *bufio.Reader
	said  *testkit.Log
}

// guideCurl is curl, which also notes the status and the body of each response.
const guideCurl = `#!/bin/bash
set -o pipefail
%s "$@" -w '%%{stderr}%%{http_code}\n' 2>>status | tee -a bodies
`

// executable writes a program. No process may start meanwhile: it would inherit the open file, and the
// program could not be run before that process ends (https://go.dev/issue/22315).
func executable(t *testing.T, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
}

// newReader links a device, and starts a shell.
func newReader(t *testing.T, k *testkit.Kit, wait time.Duration) *guideReader {
	t.Helper()
	r := &guideReader{t: t, kit: k, c: k.Workspace("growth"), wait: wait, dir: t.TempDir(), said: &testkit.Log{}}
	d := r.c.Link("+15550001111")
	r.ids = map[string]string{"pst_…": r.c.Key, "dev_…": string(d.ID), "http://127.0.0.1:8080": k.URL()}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	executable(t, filepath.Join(bin, "curl"), fmt.Appendf(nil, guideCurl, curl))
	executable(t, filepath.Join(bin, "postern"), fmt.Appendf(nil, "#!/bin/sh\n%s=1 exec %s \"$@\"\n", asProgram, os.Args[0]))
	r.port = testkit.FreePort(t)
	results, marks, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = r.dir, r.said, r.said, []*os.File{marks}
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "POSTERN_DATA_DIR="+k.Config.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // with what the guide has started
		_ = shell.Close()
		_ = cmd.Wait()
		_ = results.Close()
	})
	_ = marks.Close()
	r.shell, r.done = shell, bufio.NewReader(results)
	_, _ = io.WriteString(shell, "set -E -o pipefail; trap failed=yes ERR\n")
	return r
}

// follow runs the commands of a guide, and returns what is wrong with it.
func (r *guideReader) follow(text string) (wrong []string) {
	list := steps(text)
	if !slices.ContainsFunc(list, func(s step) bool { return s.file == "" }) {
		return nil
	}
	if list[0].script != guideTop {
		return []string{"the first command differs from that of other guides"}
	}
	for name, value := range r.ids {
		list[0].script = strings.ReplaceAll(list[0].script, name, value)
	}
	for _, s := range list {
		s.script = strings.ReplaceAll(s.script, "3000", r.port)
		if s.file != "" {
			r.save(s)
			continue
		}
		deadline := time.Now().Add(r.wait)
		problem := r.run(s)
		for problem != "" && s.repeatable() && time.Now().Before(deadline) {
			<-time.After(50 * time.Millisecond)
			problem = r.run(s)
		}
		if problem != "" {
			wrong = append(wrong, fmt.Sprintf("the command that ends in line %d: %s", s.line, problem))
		}
		wrong = append(wrong, r.events(s)...)
	}
	return wrong
}

// save writes a program of the guide to its file.
func (r *guideReader) save(s step) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, s.file), []byte(s.script), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// repeatable tells whether a reader would repeat a command until the response is as shown: it
// only reads.
func (s step) repeatable() bool {
	for _, writes := range []string{" -d ", " -X ", " -F ", " --data"} {
		if strings.Contains(s.script, writes) {
			return false
		}
	}
	return strings.Contains(s.script, "curl ")
}

// run runs a command, and returns what is wrong with it or with its response.
func (r *guideReader) run(s step) string {
	r.t.Helper()
	script := filepath.Join(r.dir, "command")
	for name, content := range map[string]string{"command": s.script, "status": "", "bodies": ""} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	_, err := fmt.Fprintf(r.shell, "failed=no; source %s; echo $failed >&3\n", strconv.Quote(script))
	if err != nil {
		r.t.Fatal(err)
	}
	failed, err := r.done.ReadString('\n')
	if err != nil {
		r.t.Fatalf("the shell ended: %v\n%s", err, r.said)
	}
	bodies, err := os.ReadFile(filepath.Join(r.dir, "bodies"))
	if err != nil {
		r.t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join(r.dir, "status"))
	if err != nil {
		r.t.Fatal(err)
	}
	if failed != "no\n" {
		return fmt.Sprintf("it fails: %s %s\n%s", status, bodies, r.said)
	}
	if wrong := wrongStatus(strings.Fields(string(status)), s.status); wrong != "" {
		return wrong + ": " + string(bodies)
	}
	text := strings.NewReplacer(r.kit.URL(), "http://127.0.0.1:8080", ":"+r.port, ":3000").Replace(string(bodies))
	for _, shown := range s.shown {
		if wrong := compareShown(shown, text); wrong != "" {
			return wrong + "\nin " + text
		}
	}
	return ""
}

// wrongStatus compares the statuses of responses. The guide names the last one, or none.
func wrongStatus(got []string, named string) string {
	for i, status := range got {
		want := "2"
		if i == len(got)-1 && named != "" {
			want = named
		}
		if !strings.HasPrefix(status, want) {
			return fmt.Sprintf("the status is %s, want %s", status, want)
		}
	}
	if named != "" && len(got) == 0 {
		return "there is no response"
	}
	return ""
}

// compareShown compares JSON of a guide with the last of several JSON texts. Events are not
// responses; see [guideReader.events].
func compareShown(shown, bodies string) string {
	want, err := parseShown(shown)
	if err != nil {
		return fmt.Sprintf("%v: %s", err, shown)
	}
	if isEvent(want) {
		return ""
	}
	var got any
	for d := json.NewDecoder(strings.NewReader(bodies)); ; {
		if err := d.Decode(&got); err == io.EOF {
			break
		} else if err != nil {
			return "the response is not JSON: " + err.Error()
		}
	}
	return differs("", got, want)
}

// parseShown reads JSON in which "…" instead of a member stands for all members that are not shown.
func parseShown(text string) (v any, err error) {
	var b strings.Builder
	inside := false
	for _, c := range text {
		switch {
		case c == '"':
			inside = !inside
			b.WriteRune(c)
		case c == '…' && !inside:
			b.WriteString(`"…":null`)
		default:
			b.WriteRune(c)
		}
	}
	return v, json.Unmarshal([]byte(b.String()), &v)
}

// memberOf is a member of a JSON object; nil if v is none, or has none of this name.
func memberOf(v any, name string) any {
	object, _ := v.(map[string]any)
	return object[name]
}

func isEvent(v any) bool { return memberOf(v, "eventId") != nil }

// events waits for the events that a guide shows below a command.
func (r *guideReader) events(s step) (wrong []string) {
	for _, shown := range s.shown {
		want, err := parseShown(shown)
		if err != nil || !isEvent(want) {
			continue // reported by run
		}
		problem := "no such event"
		for deadline := time.Now().Add(r.wait); problem != "" && time.Now().Before(deadline); {
			<-time.After(100 * time.Millisecond) // within the plan's rate
			var list struct{ Data []any }
			r.c.Call("GET", fmt.Sprintf("/v1/events?limit=200&type=%v", memberOf(want, "type")), nil, 200, &list)
			for _, got := range list.Data {
				if problem = differs("", got, want); problem == "" {
					break
				}
			}
		}
		if problem != "" {
			wrong = append(wrong, fmt.Sprintf("an event below the command that ends in line %d: %s", s.line, problem))
		}
	}
	return wrong
}

var (
	timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	idPattern   = regexp.MustCompile(`^([a-z]+_)01JD8Z…$`)
)

// differs describes the first difference between a JSON value and the one that a guide shows: ""
// for none. Times differ, and so do ids and other strings where the guide has "…".
func differs(path string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		if !is {
			break
		}
		_, more := want["…"]
		for name := range object {
			if _, shown := want[name]; !shown && !more {
				return path + "/" + name + " is not shown"
			}
		}
		for name := range want {
			value, exists := object[name]
			if !exists && name != "…" {
				return path + "/" + name + " does not exist"
			}
			if wrong := differs(path+"/"+name, value, want[name]); wrong != "" {
				return wrong
			}
		}
		return ""
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			break
		}
		for i := range want {
			if wrong := differs(path+"/"+strconv.Itoa(i), list[i], want[i]); wrong != "" {
				return wrong
			}
		}
		return ""
	case string:
		if text, is := got.(string); is && sameText(text, want) {
			return ""
		}
	default:
		if got == want || strings.HasSuffix(path, "/sequence") {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, want %v", path, got, want)
}

func sameText(got, want string) bool {
	if timePattern.MatchString(want) {
		return timePattern.MatchString(got)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	if id := idPattern.FindStringSubmatch(want); id != nil {
		pattern = id[1] + "[0-9A-Z]{26}"
	}
	return regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(got)
}
