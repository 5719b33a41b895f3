package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A server goes on when its terminal is closed, says how it stops, and writes a log for people.
func TestServerOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	var errs output
	cmd := program(context.Background(), &errs, &errs, "serve", "--data-dir", dir, "--sandbox", "--log-format", "text",
		"--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	awaitText(t, &errs, `level=INFO msg=serving url=http://`)
	for _, signal := range []os.Signal{syscall.SIGHUP, syscall.SIGHUP} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	// A command that the server runs shows that it is still there.
	ready := regexp.MustCompile(`server +ready\n`)
	for timeout := untilTimeout(t); ; {
		_, out, told := command(t, "status", "--data-dir", dir)
		if ready.MatchString(out) {
			break
		}
		if timeout.Err() != nil || !strings.Contains(out, "starting") {
			t.Fatalf("the status is %s%s", out, told)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
	rest := errs.String()
	for _, line := range []string{"stopping", "the requests in flight have ended",
		"the sends and deliveries in flight have ended", "stopped"} {
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Errorf("the log does not say %q at its place:\n%s", line, errs.String())
			continue
		}
		rest = after
	}
	exit, out, told := command(t, "status", "--data-dir", dir)
	if exit != 1 || out != "" || !strings.Contains(told, "no server is running on the data directory "+dir) {
		t.Errorf("status without a server = %d %s %s", exit, out, told)
	}
}

// The link that creates the first user is not printed where it could be collected, and a command prints a new one
// until there is a user.
func TestSetUpLinkIsShownOnRequest(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if exit, _, errs := command(t, "user", "setup-link", "--data-dir", dir); exit != 1 || !strings.Contains(errs,
		"no Postern database") {
		t.Errorf("without a server = %d %s", exit, errs)
	}
	var out, errs output
	cmd := program(t.Context(), &out, &errs, "serve", "--data-dir", dir, "--sandbox", "--addr", "127.0.0.1:0",
		"--ops-addr", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	awaitText(t, &errs, `"msg":"serving"`)
	if all := out.String() + errs.String(); strings.Contains(all, "/setup/") || !strings.Contains(all,
		"postern user setup-link") {
		t.Errorf("the server prints\n%s", all)
	}
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/setup/\S+`)
	if out := mustRun(t, "user", "setup-link", "--data-dir", dir); !link.MatchString(out) {
		t.Errorf("the command prints\n%s", out)
	}
	ws := strings.Fields(mustRun(t, "workspace", "create", "--data-dir", dir, "--name", "x"))[1]
	mustRun(t, "user", "create", "--data-dir", dir, "--workspace", ws, "--email", "ada@example.com", "--role", "owner")
	if exit, _, errs := command(t, "user", "setup-link", "--data-dir", dir); exit != 1 || !strings.Contains(errs,
		"already is a user") {
		t.Errorf("with a user = %d %s", exit, errs)
	}
}
