package chaos_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"postern/internal/mail/mailtest"

	"golang.org/x/sys/unix"
)

// lostLease is what a server says that shares a database and cannot reach it.
const lostLease = "ERROR the lease of this server could not be renewed; it stops its work until that succeeds"

// faultsOfTheNight is the table: what happens, and what the server then says.
func faultsOfTheNight() []fault {
	return []fault{
		{
			name: "database stopped", opts: options{Database: "postgres"},
			begin: func(n *night) { n.cluster.Crash() }, end: func(n *night) { n.cluster.Start(n.t) },
			health: 200, reasons: []string{"database: database-failed"}, answer: "503 UNAVAILABLE", log: lostLease,
			alerts: []string{"PosternNotReady"},
		},
		{
			name: "database held up", opts: options{Database: "postgres"},
			begin: func(n *night) { n.undo(n.cluster.Hold(n.t)) }, end: (*night).repair,
			health: 200, reasons: []string{"database: database-(slow|failed)"}, answer: "503 UNAVAILABLE", log: lostLease,
		},
		{
			name: "disk full", opts: options{Database: "sqlite", Prepare: onSmallDisk},
			begin: (*night).fillDisk, end: (*night).repair,
			health: 200, reasons: []string{"database: database-failed", "disk: disk-full", "media-storage: media-storage-full"},
			answer: "503 UNAVAILABLE",
			log:    "ERROR (a checkpoint failed; it will be tried again|a write that nobody waits for failed)",
			alerts: []string{"PosternNotReady", "PosternDiskFills"},
		},
		{
			name: "disk read-only", opts: options{Database: "sqlite", Prepare: onBrokenDisk},
			begin: breakDisk, end: repairDisk, restarts: true,
			health: 200, reasons: []string{"database: database-failed", "media-storage: media-storage-unreachable"},
			answer: "503 UNAVAILABLE",
		},
		{
			name:  "descriptors used up",
			begin: (*night).useUpFiles, end: (*night).repair, partial: true,
			health: 200, reasons: []string{"files: files-exhausted"}, answer: "503 UNAVAILABLE",
		},
		{
			name: "vendor away", opts: options{Room: 80}, alerts: []string{"PosternDevicesDown", "PosternQueueGrows"},
			begin: func(n *night) { n.undo(n.toVendor.sever()) }, end: (*night).repair,
			health: 200, answer: "202",
			noticed: func(n *night) bool { return n.sum("postern_devices", `status="connected"`) == 0 },
		},
		{
			name: "receiver away", opts: options{Room: 80}, alerts: []string{"PosternDeliveriesFail"},
			begin: func(n *night) { n.undo(n.toReceiver.sever()) }, end: (*night).repair,
			health: 200, answer: "202",
			noticed: func(n *night) bool { return n.sum("postern_webhook_attempts_total", `outcome="reset"`) > 0 },
		},
		{
			name: "SIGTERM under load", opts: options{Flags: []string{"--shutdown-delay", "3s"}},
			begin:  func(n *night) { n.signal(syscall.SIGTERM) },
			end:    (*night).stopped,
			health: 200, reasons: []string{"lifecycle: draining"}, answer: "202",
		},
		{
			name: "mail away", opts: options{Prepare: withMail},
			begin: (*night).askForMail, end: (*night).mailArrives,
			health: 200, answer: "202",
			noticed: func(n *night) bool {
				_, others := changes(n.lines(0))
				return others[mailFails] > 0
			},
			log: mailFails,
		},
		{
			name: "clock an hour ahead", opts: options{Prepare: withClock},
			begin: func(n *night) { n.moveClock(time.Hour) }, end: (*night).repair,
			health: 200, answer: "202", log: setBack,
		},
		{
			name: "clock an hour back", opts: options{Prepare: withClock},
			begin: func(n *night) { n.moveClock(-time.Hour) }, end: (*night).repair,
			health: 200, answer: "202", log: setBack,
		},
		{
			name:  "SIGKILL under load",
			begin: func(n *night) { n.kill() }, end: func(n *night) { n.boot() },
			answer: "no answer", alerts: []string{"PosternDown"},
		},
		{
			name:   "second server on the same data",
			begin:  (*night).startSecond,
			health: 200, answer: "202",
		},
		{
			name:  "wrong key while it runs",
			begin: (*night).swapKey, end: (*night).repair,
			health: 200, reasons: []string{"secret-key: secret-key-changed"}, answer: "202",
		},
		{
			name:  "wrong key at the start",
			begin: (*night).startWithWrongKey, end: func(n *night) { n.repair(); n.boot() },
			answer: "no answer",
		},
	}
}

// withClock makes the clock of the server movable.
func withClock(w *world) {
	w.t.Helper()
	bin, err := unsteady()
	if err != nil {
		w.t.Fatal(err)
	}
	c := newWallClock(w.t, filepath.Join(w.dir, "clock"))
	w.opts.Bin, w.opts.Env = bin, append(w.opts.Env, c.env())
}

// setBack is what the log says when the clock goes back.
const setBack = "WARN the clock was set back"

// moveClock sets the wall clock of the server, as an operator does, until the fault ends. The receiver refuses what
// is signed at a time that it does not accept, so what happens meanwhile arrives afterwards.
func (n *night) moveClock(off time.Duration) {
	n.t.Helper()
	c := wallClock{filepath.Join(n.dir, "clock")}
	if err := c.set(off); err != nil {
		n.t.Fatal(err)
	}
	n.receiver.moved.Store(true)
	n.ahead = max(off, 0)
	n.undo(func() { c.set(0) })
	n.must("posts that the receiver refuses", func() bool { return n.receiver.refused.Load() >= 100 })
}

// mailFails is what the log says of a mail that cannot be sent.
const mailFails = "WARN a link for a new password was not mailed"

const mailUser = "ada@example.com"

// withMail gives the server a mail server, through a wire.
func withMail(w *world) {
	w.mail = mailtest.New(w.t)
	w.toMail = newWire(w.t, "tcp", w.mail.Addr)
	w.opts.Flags = append(w.opts.Flags, "--smtp-url", "smtp://"+w.toMail.addr+"?tls=off&from=postern@example.com")
}

// askForMail asks for a new password, which needs a mail that cannot be sent.
func (n *night) askForMail() {
	n.t.Helper()
	var made struct{ ID string }
	n.command(&made, "user", "create", "--workspace", n.workspace, "--email", mailUser, "--role", "admin")
	n.undo(n.toMail.sever())
	n.forgot()
}

func (n *night) forgot() {
	n.t.Helper()
	at, _ := n.where()
	res, err := fresh.PostForm(at+"/signin/forgotten", url.Values{"email": {mailUser}})
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		n.t.Errorf("a forgotten password: %s", res.Status)
	}
}

// mailArrives ends the fault, and asks again.
func (n *night) mailArrives() {
	n.t.Helper()
	n.repair()
	n.forgot()
	n.must("the mail", func() bool { return len(n.mail.Mails()) > 0 })
}

// undo is called to end the fault, or at the end of the test.
func (n *night) undo(f func()) { n.restore = append(n.restore, f) }

func (n *night) signal(s syscall.Signal) {
	if err := n.gateway.running().cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
}

// stopped waits until the server has ended in good order, and starts it again.
func (n *night) stopped() {
	n.t.Helper()
	p := n.gateway.running()
	n.await("the end of the server", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if p.err != nil {
		n.t.Errorf("the server ended with %v", p.err)
	}
	n.gateway.serve("")
	n.boot()
}

// mustBeRoot fails a test that cannot cause its fault.
func mustBeRoot(w *world) {
	w.t.Helper()
	if os.Getuid() != 0 {
		w.t.Fatal("only root can mount a disk; run the check as root, or this fault is not tried")
	}
}

func run(w *world, name string, args ...string) string {
	w.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// diskOf is the directory of the server's data, where a disk is mounted.
func diskOf(w *world) string { return filepath.Join(w.dir, "data") }

// onSmallDisk gives the data a disk of its own in memory.
func onSmallDisk(w *world) {
	mustBeRoot(w)
	mount(w, "-t", "tmpfs", "-o", "size=1g", "none", diskOf(w))
}

func mount(w *world, args ...string) {
	w.t.Helper()
	if err := os.MkdirAll(diskOf(w), 0o700); err != nil {
		w.t.Fatal(err)
	}
	run(w, "mount", args...)
	w.t.Cleanup(func() { exec.Command("umount", "--lazy", diskOf(w)).Run() })
}

// fillDisk writes until nothing more can be written.
func (n *night) fillDisk() {
	ballast := filepath.Join(diskOf(n.world), "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		n.t.Fatal(err)
	}
	n.undo(func() { os.Remove(ballast) })
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			n.t.Fatal(err)
		}
	}
}

// onBrokenDisk gives the data a disk of its own whose file system becomes read-only at an error, as is usual.
func onBrokenDisk(w *world) {
	mustBeRoot(w)
	image := filepath.Join(w.dir, "disk")
	run(w, "truncate", "-s", "1G", image)
	run(w, "mkfs.ext4", "-q", image)
	mount(w, "-o", "loop,errors=remount-ro", image, diskOf(w))
}

// breakDisk makes the file system find an error. (The kernel refuses "mount -o remount,ro" while files are open
// for writing.)
func breakDisk(n *night) {
	device := filepath.Base(run(n.world, "findmnt", "-n", "-o", "SOURCE", diskOf(n.world)))
	if err := os.WriteFile("/sys/fs/ext4/"+device+"/trigger_fs_error", []byte("1"), 0); err != nil {
		n.t.Fatal(err)
	}
}

// repairDisk does what an operator has to: a file system with an error must be unmounted and checked.
func repairDisk(n *night) {
	n.gateway.serve("")
	_ = n.gateway.running().stop(patience(n.t)) // it may say that its last words could not be written
	run(n.world, "umount", diskOf(n.world))
	image := filepath.Join(n.dir, "disk")
	if out, err := exec.Command("fsck.ext4", "-p", "-f", image).CombinedOutput(); err != nil {
		if code, is := errors.AsType[*exec.ExitError](err); !is || code.ExitCode() != 1 { // 1: errors were corrected
			n.t.Fatalf("fsck: %v: %s", err, out)
		}
	}
	run(n.world, "mount", "-o", "loop,errors=remount-ro", image, diskOf(n.world))
	n.boot()
}

// useUpFiles lowers the limit of the server's files to those that it has open. It closes some of them all the time,
// and a request that gets such a descriptor is served.
func (n *night) useUpFiles() {
	pid := n.gateway.running().cmd.Process.Pid
	open, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		n.t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		n.t.Fatal(err)
	}
	low := before
	low.Cur = lowestFree(open)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &low, nil); err != nil {
		n.t.Fatal(err)
	}
	n.undo(func() { unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil) })
}

// lowestFree returns the lowest number that no open file of a process has. The limit is one for numbers, and
// each free number below it is one more file.
func lowestFree(open []os.DirEntry) (n uint64) {
	used := map[string]bool{}
	for _, f := range open {
		used[f.Name()] = true
	}
	for used[strconv.FormatUint(n, 10)] {
		n++
	}
	return n
}

// startSecond starts another server on the same data, which must refuse to start and name the first.
func (n *night) startSecond() {
	n.refuses("process " + strconv.Itoa(n.gateway.running().cmd.Process.Pid))
}

// refuses starts a server on the data, which must end with status 1 and say why.
func (n *night) refuses(why string) {
	n.t.Helper()
	args := append([]string{
		"serve", "--data-dir", n.gateway.dir, "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0",
	}, n.gateway.flags...)
	cmd := exec.CommandContext(n.t.Context(), n.opts.Bin.postern, args...)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), why) {
		n.t.Errorf("a server that cannot start exits with %d and does not say %q: %s", code, why, out)
	}
}

// swapKey replaces the secret key by another one.
func (n *night) swapKey() {
	file := filepath.Join(n.gateway.dir, "secret.key")
	if n.url != "" {
		file = n.keyFile()
	}
	right, err := os.ReadFile(file)
	if err != nil {
		n.t.Fatal(err)
	}
	put := func(key []byte) {
		if err := os.WriteFile(file, key, 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	put([]byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"))
	n.undo(func() { put(right) })
}

func (n *night) startWithWrongKey() {
	n.kill()
	n.swapKey()
	n.refuses("secret key")
}
