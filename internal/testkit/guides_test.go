package testkit_test

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

const (
	guides = "../../docs/guides"

	// guideTop is the first command of every guide. A reader replaces the values of its first line,
	// and so does the test.
	guideTop = `URL=http://127.0.0.1:8080 KEY=pst_… DEVICE=dev_…
H="Authorization: Bearer $KEY" J='Content-Type: application/json'
`
	guideWait = time.Minute // for an event, or until a request that changes nothing shows the response
)

// TestGuides runs every command of every guide in a sandbox, exactly as written and in order, and
// compares what the guide shows with what happens.
func TestGuides(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	k.Workspace("growth") // the kit notes the first one, which must not happen in parallel
	index := readGuide(t, "README.md")
	for _, path := range guideFiles(t) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := readGuide(t, name)
			if name != "README.md" && !strings.Contains(index, "]("+name+")") {
				t.Error("the index does not name this guide")
			}
			for _, wrong := range slices.Concat(wrongLinks(text), newReader(t, k, guideWait).follow(text)) {
				t.Errorf("docs/guides/%s: %s", name, wrong)
			}
		})
	}
}

// TestReadmeSendsAPicture runs the commands of the README that need no more than a server and a key.
func TestReadmeSendsAPicture(t *testing.T) {
	t.Parallel()
	text := readGuide(t, "../../README.md")
	_, text, _ = strings.Cut(text, "**Without a phone**, create a device")
	text, _, found := strings.Cut(text, "\n## Webhooks")
	if !found {
		t.Fatal("the README has other sections")
	}
	for _, wrong := range newReader(t, testkit.Start(t), guideWait).follow(fence("sh", guideTop) + text) {
		t.Errorf("README.md, in lines counted from \"Without a phone\": %s", wrong)
	}
}

// TestWrongGuidesAreNoticed: a guide that shows anything else than what happens is reported.
func TestWrongGuidesAreNoticed(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	k.Workspace("growth")
	const send = `curl -s $URL/v1/messages -H "$H" -H "$J" -d '{"deviceId":"'$DEVICE'","to":"+15551234567","body":"Hi"}'`
	const get = `curl -s "$URL/v1/messages?q=nothing" -H "$H"`
	for name, tt := range map[string]struct {
		script, text, shown string
		right               bool
	}{
		"right":                   {send, "Postern responds with 202:", `{"id":"msg_01JD8Z…", "to":"+15551234567", …}`, true},
		"another status":          {send, "Postern responds with 201:", "", false},
		"a refused request":       {strings.Replace(send, `"Hi"`, `""`, 1), "", "", false},
		"a member that is absent": {send, "", `{"id":"msg_01JD8Z…", "colour":"red", …}`, false},
		"a member left out":       {send, "", `{"id":"msg_01JD8Z…"}`, false},
		"another value":           {send, "", `{"body":"Ho", …}`, false},
		"another list":            {get, "", `{"data":[{…}], "nextCursor":null}`, false},
		"no JSON":                 {get, "", `{"data":[}`, false},
		"an event that is absent": {send, "", `{"eventId":"evt_01JD8Z…", "type":"message.failed", …}`, false},
		"a command that fails":    {"false", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fence("sh", guideTop) + fence("sh", tt.script+"\n") + tt.text + "\n"
			if tt.shown != "" {
				text += fence("json", tt.shown+"\n")
			}
			wrong := newReader(t, k, time.Second/2).follow(text)
			if got := len(wrong) == 0; got != tt.right {
				t.Errorf("the guide\n%s\nis wrong in %q", text, wrong)
			}
		})
	}
	if wrong := newReader(t, k, 0).follow(fence("sh", "true\n")); len(wrong) == 0 {
		t.Error("a guide with another beginning is not noticed")
	}
	if wrong := wrongLinks("[a](text.md) [b](https://www.example.com) [c](nowhere.md#x)"); len(wrong) != 1 {
		t.Errorf("wrong links = %q, want one", wrong)
	}
}

func fence(language, text string) string { return "```" + language + "\n" + text + "```\n" }

func guideFiles(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(guides, "*.md"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	return list
}

func readGuide(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(guides, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var linkPattern = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// wrongLinks are links to files that do not exist.
func wrongLinks(text string) (wrong []string) {
	for _, link := range linkPattern.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(guides, link[1])); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

// step is a command of a guide with what the guide shows below it.
type step struct {
	line   int
	script string
	status string // that the text names; "" for any 2xx
	shown  []string
}

var statusPattern = regexp.MustCompile(`responds? with (\d{3})\b`)

// steps splits a guide into its commands.
func steps(text string) (list []step) {
	language, block := "", ""
	said := true // whether a text follows the last command already
	for i, line := range strings.Split(text, "\n") {
		switch fenced := strings.HasPrefix(line, "```"); {
		case fenced && language == "":
			language = strings.TrimPrefix(line, "```") + "."
		case fenced && language == "sh.":
			list = append(list, step{line: i + 1, script: block})
			language, block, said = "", "", false
		case fenced:
			if language == "json." && len(list) > 0 {
				list[len(list)-1].shown = append(list[len(list)-1].shown, block)
			}
			language, block, said = "", "", true
		case language != "":
			block += line + "\n"
		case line != "" && !said:
			if m := statusPattern.FindStringSubmatch(line); m != nil {
				list[len(list)-1].status = m[1]
			}
			said = true
		}
	}
	return list
}

// guideReader is somebody who follows a guide in a shell, in an own workspace and directory.
type guideReader struct {
	t     *testing.T
	kit   *testkit.Kit
	c     *testkit.Client
	wait  time.Duration
	dir   string
	ids   map[string]string
	shell io.Writer
	done  *bufio.Reader
	said  *testkit.Log
}

// guideCurl is curl, which also notes the status and the body of each response.
const guideCurl = `#!/bin/bash
set -o pipefail
%s "$@" -w '%%{stderr}%%{http_code}\n' 2>>status | tee -a bodies
`

// program writes a program. No process may start meanwhile: it would inherit the open file, and the
// program could not be run before that process ends (https://go.dev/issue/22315).
func program(t *testing.T, path string, text []byte) {
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
	d := r.c.Link(phone)
	r.ids = map[string]string{"pst_…": r.c.Key, "dev_…": string(d.ID), "http://127.0.0.1:8080": k.URL()}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	program(t, filepath.Join(bin, "curl"), fmt.Appendf(nil, guideCurl, curl))
	results, marks, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = r.dir, r.said, r.said, []*os.File{marks}
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	shell, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
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
	if len(list) == 0 {
		return nil
	}
	if list[0].script != guideTop {
		return []string{"the first command differs from that of other guides"}
	}
	for name, value := range r.ids {
		list[0].script = strings.ReplaceAll(list[0].script, name, value)
	}
	for _, s := range list {
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
	text := strings.ReplaceAll(string(bodies), r.kit.URL(), "http://127.0.0.1:8080")
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

func isEvent(v any) bool { return from(v, "eventId") != nil }

// events waits for the events that a guide shows below a command.
func (r *guideReader) events(s step) (wrong []string) {
	for _, shown := range s.shown {
		want, err := parseShown(shown)
		if err != nil || !isEvent(want) {
			continue // reported by run
		}
		problem := "no such event"
		for deadline := time.Now().Add(r.wait); problem != "" && time.Now().Before(deadline); {
			<-time.After(20 * time.Millisecond)
			var list struct{ Data []any }
			r.c.Call("GET", fmt.Sprintf("/v1/events?limit=200&type=%v", from(want, "type")), nil, 200, &list)
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
