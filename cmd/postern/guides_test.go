package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
		text := readGuide(t, name)
		if name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("the index does not name %s", name)
		}
		for _, wrong := range slices.Concat(wrongLinks(text), unpasteable(text)) {
			t.Errorf("docs/guides/%s: %s", name, wrong)
		}
		if name == firstGuide {
			continue // it needs two terminals; see [TestFirstMessage]
		}
		for language, text := range variants(text) {
			t.Run(strings.TrimSuffix(name+language, "/"), func(t *testing.T) {
				t.Parallel()
				for _, wrong := range newReader(t, k, guideWait).follow(text) {
					t.Errorf("docs/guides/%s: %s", name, wrong)
				}
			})
		}
	}
}

// variants are the texts of a guide for readers of one language each, if it has sections "### In Go" and so on. The
// lines of other languages are empty.
func variants(text string) map[string]string {
	lines := strings.Split(text, "\n")
	only, languages := make([]string, len(lines)), map[string]bool{"": true}
	for i, line := range lines {
		name, begins := strings.CutPrefix(line, "### In ")
		switch {
		case begins:
			only[i], languages[name] = name, true
		case i > 0 && !strings.HasPrefix(line, "## ") && !strings.HasPrefix(line, "### "):
			only[i] = only[i-1]
		}
	}
	list := map[string]string{}
	for language := range languages {
		mine := slices.Clone(lines)
		for i := range mine {
			if only[i] != "" && only[i] != language {
				mine[i] = ""
			}
		}
		list["/"+language] = strings.Join(mine, "\n")
	}
	if len(list) > 1 {
		delete(list, "/")
	}
	return list
}

// unpasteable names the commands that mean something else when they are pasted into dash, or into zsh, which
// takes no comments from a terminal.
func unpasteable(text string) (wrong []string) {
	for _, s := range steps(text) {
		if s.file == "" && (commentPattern.MatchString(s.script) || strings.Contains(s.script, "<<<")) {
			wrong = append(wrong, "not every shell understands "+s.script)
		}
	}
	return wrong
}

var commentPattern = regexp.MustCompile(`(?m)(^|\s)#`)

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
	if wrong := unpasteable(fence("sh", "true  # really\n") + fence("sh", "cat <<< x\n") + fence("sh", "echo a#b\n")); len(wrong) != 2 {
		t.Errorf("not pasteable = %q, want two", wrong)
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
	file   string // to save the script as, instead of running it; "" for commands
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
		case fenced && strings.Contains(language, " "): // a program with the name of its file
			_, name, _ := strings.Cut(strings.TrimSuffix(language, "."), " ")
			list = append(list, step{line: i + 1, file: name, script: block})
			language, block, said = "", "", true
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
