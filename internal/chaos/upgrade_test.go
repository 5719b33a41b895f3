package chaos_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/internal/chaos"
)

// previous is the commit before the newest migration was added. A later release becomes the previous one by
// its tag; it must share databases, and know fewer migrations than the tree at hand.
var previous = flag.String("previous", "f2aa4605f75d173d6a566f505c8c21ec52dffc67",
	"commit or tag of the release that the rolling upgrade begins with")

// TestRollingUpgradeFailsNoRequest begins with servers of the previous release and replaces them by this one,
// one after the other, under load through a balancer. The first one migrates the database while the others
// still use it. No request fails, and each message that was accepted is sent once.
//
// The previous release had no --shutdown-delay, so each of its servers leaves the balancer before it stops.
func TestRollingUpgradeFailsNoRequest(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	old, err := buildPrevious(*previous)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: binaries{postern: old, vendorsim: bin.vendorsim}, Devices: 6, Calm: true, Database: "postgres", Nodes: 3,
	})
	before := w.version()
	b := newBalancer(w)
	l := startStream(w, b.URL)
	served := []int64{l.more(w)}
	for i, n := range w.nodes {
		w.upgrade(n, bin, b, l)
		if i == 0 && w.version() == before {
			t.Errorf("%s knows the same migrations, so it is no previous release", *previous)
		}
		w.await("each server to work for devices", w.isSpread)
		served = append(served, l.more(w))
	}
	l.end()
	t.Logf("schema %d to %d; requests that were answered until 0, 1, 2 and 3 servers were upgraded: %v",
		before, w.version(), served)
	w.nothingFailed(l)
}

// upgrade replaces a server by one of another release, and waits until the balancer uses it.
func (w *world) upgrade(n node, bin binaries, b *balancer, l *stream) {
	w.t.Helper()
	at, _ := n.where()
	n.serve("")
	w.await("the balancer to leave out the server", func() bool { return !b.Uses(at) })
	l.lap()
	n.bin = bin
	w.restart(n, b)
}

// nothingFailed reports the requests that failed, and the messages that were accepted and not sent, or sent
// more than once.
func (w *world) nothingFailed(l *stream) {
	w.t.Helper()
	for _, text := range l.failed {
		w.t.Error(text)
	}
	if len(l.accepted) == 0 {
		w.t.Error("no message was accepted")
	}
	w.await("all messages to be sent", func() bool { return w.unsent() == "" })
	s, err := chaos.ReadState(w.t.Context(), w.gateway.dir, w.url, w.workspace)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range s.Messages {
		if body, ok := l.accepted[m.ID]; ok && body == m.Body && m.Status == "sent" {
			delete(l.accepted, m.ID)
		}
	}
	for id, body := range l.accepted {
		w.t.Errorf("message %s, %q, was accepted and is not in the database as sent", id, body)
	}
	ids := map[string]string{} // by text
	for _, v := range w.ledger() {
		if before := ids[v.Body]; before != "" && before != v.NetworkID && v.Direction == "outbound" {
			w.t.Errorf("%q reached the vendor as %s and as %s", v.Body, before, v.NetworkID)
		}
		ids[v.Body] = v.NetworkID
	}
	for _, m := range s.Messages {
		if ids[m.Body] != m.NetworkID {
			w.t.Errorf("%q is %s in the database, and %q at the vendor", m.Body, m.NetworkID, ids[m.Body])
		}
	}
}

// version is the number of the newest migration of the database.
func (w *world) version() int64 {
	w.t.Helper()
	v, err := chaos.Version(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// buildPrevious builds the program of an earlier commit, from the history of the clone.
func buildPrevious(commit string) (string, error) {
	root, err := buildDir()
	if err != nil {
		return "", err
	}
	tree := filepath.Join(root, "previous")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return "", err
	}
	archive, err := output("../..", "git", "archive", commit)
	if err != nil {
		return "", fmt.Errorf("this test needs the commit %s in a full clone, to build the previous release from it; "+
			"if the clone is shallow, run git fetch --unshallow: %w", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", tree)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w\n%s", err, out)
	}
	path := filepath.Join(root, "postern-previous")
	_, err = output(tree, "go", "build", "-ldflags", "-s -w", "-o", path, "./cmd/postern")
	return path, err
}

// output runs a program in a directory and returns what it prints.
func output(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var complaint strings.Builder
	cmd.Dir, cmd.Stderr = dir, &complaint
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(slices.Insert(args, 0, name), " "), err, complaint.String())
	}
	return out, err
}
