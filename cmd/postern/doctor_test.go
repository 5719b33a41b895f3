package main

import (
	"regexp"
	"strings"
	"testing"
)

// The doctor finds nothing wrong with a server that runs, and says what is wrong with settings.
func TestDoctor(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	ws := strings.Fields(mustRun(t, "workspace", "create", "--data-dir", dir, "--name", "x", "--plan", "growth"))[1]
	key := regexp.MustCompile(`pst_\w+`).FindString(mustRun(t, "key", "create", "--data-dir", dir, "--workspace", ws, "--name", "k"))
	out := mustRun(t, "doctor", "--data-dir", dir, "--sandbox", "--addr", strings.TrimPrefix(url, "http://"), "--key",
		key)
	for _, line := range []string{`ok +settings`, `ok +disk`, `ok +database`, `ok +media-storage`, `skipped +network`,
		`ok +public-address +Postern responds there, and streams arrive at once\.`, `warning +secret-key`} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(out) {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	exit, out, errs := command(t, "doctor", "--data-dir", dir, "--sandbox", "--media-url",
		"s3://canary:canary@127.0.0.1:1/b?tls=off",
		"--smtp-url", "smtp://canary:canary@127.0.0.1:1?from=a@b", "--base-url", "http://127.0.0.1:1")
	if exit != 1 || !strings.Contains(errs, "3 of 12 checks failed") || strings.Contains(out+errs, "canary") {
		t.Errorf("doctor = %d\n%s%s", exit, out, errs)
	}
}
