package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/internal/testkit"
)

const firstGuide = "first-message.md"

// shells are how a terminal starts them. zsh is tried where it is installed.
var shells = map[string][]string{
	"bash": {"bash", "--norc", "-i"}, "dash": {"dash", "-i"}, "zsh": {"zsh", "-f", "-i"},
}

// terminal is an interactive shell, into which commands are pasted.
type terminal struct {
	t     *testing.T
	out   output
	input io.Writer
	n     int
}

// openTerminal starts a shell in a directory, and ends it with the test. The commands postern and make in it are
// this test binary, and a make that makes bin/postern from it.
func openTerminal(t *testing.T, shell, dir string, env ...string) *terminal {
	t.Helper()
	args := shells[shell]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed", args[0])
	}
	bin := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\necho $$ >pid\n%s=1 exec %s \"$@\"\n", asProgram, os.Args[0])
	executable(t, filepath.Join(bin, "postern"), []byte(program))
	executable(t, filepath.Join(bin, "make"), fmt.Appendf(nil, "#!/bin/sh\nmkdir -p bin && cp %s/postern bin/\n", bin))
	x := &terminal{t: t}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &x.out, &x.out
	cmd.Env = append(os.Environ(), append(env, "PATH="+bin+":"+os.Getenv("PATH"), "PS1=", "PS2=", "HISTFILE=")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Minute
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait() // with the status of its last command
	})
	x.input = input
	return x
}

// paste types commands, without waiting for them.
func (x *terminal) paste(commands string) {
	x.t.Helper()
	if _, err := io.WriteString(x.input, commands); err != nil {
		x.t.Fatalf("%v\n%s", err, x.out.String())
	}
}

// shows pastes commands, waits for their end, and returns what was printed since then.
func (x *terminal) shows(commands string) string {
	x.t.Helper()
	x.n++
	end := fmt.Sprintf("end-of-%d", x.n)
	before := len(x.out.String())
	x.paste(commands + "echo end-of-$((" + fmt.Sprint(x.n) + "))\n")
	awaitText(x.t, &x.out, end)
	return x.out.String()[before:]
}

// complaint matches what shells and curl print about commands that they do not understand.
var complaint = regexp.MustCompile(`(?i)not found|no match|parse error|syntax error|bad (pattern|substitution)|unknown|curl:|postern:|"status":4\d\d`)

// responses matches the responses that curl prints.
var responses = regexp.MustCompile(`\{".*\}`)

// well fails the test if a shell complained.
func (x *terminal) well(printed string) {
	x.t.Helper()
	if line := complaint.FindString(printed); line != "" {
		x.t.Fatalf("the shell says %q:\n%s", line, printed)
	}
}

// follows runs the commands of a step with a server at another port, and compares the response with what the guide
// shows.
func (x *terminal) follows(s step, port string) (wrong string) {
	x.t.Helper()
	printed := x.shows(strings.ReplaceAll(s.script, "8080", port))
	x.well(printed)
	for _, shown := range s.shown {
		all := append([]string{""}, responses.FindAllString(printed, -1)...) // the terminal may show the command first
		if wrong := compareShown(shown, all[len(all)-1]); wrong != "" {
			return wrong + "\nin " + printed
		}
	}
	return ""
}

// running waits until the program that was started last in a directory has printed a text, and returns a function
// that interrupts it, as Ctrl-C does. The end of the test does so, too.
func (x *terminal) running(dir, text string) (stop func()) {
	x.t.Helper()
	awaitText(x.t, &x.out, text)
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		x.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		x.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = syscall.Kill(n, syscall.SIGINT) })
	x.t.Cleanup(stop)
	return stop
}

// TestFirstMessage pastes the commands of the first guide into two terminals of each shell.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	list := steps(readGuide(t, firstGuide))
	if len(list) < 5 {
		t.Fatalf("the guide has %d commands", len(list))
	}
	for shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir, port := shortDir(t), testkit.FreePort(t)
			first := openTerminal(t, shell, dir, "POSTERN_ADDR=127.0.0.1:"+port, "POSTERN_OPS_ADDR=127.0.0.1:0")
			first.paste(list[0].script)
			stop := first.running(dir, `"msg":"serving"`)
			second := openTerminal(t, shell, dir)
			last := len(list) - 1
			for i, s := range list[1:] {
				wrong := second.follows(s, port)
				for i == last-1 && wrong != "" { // a reader repeats it until the reply is there
					<-time.After(50 * time.Millisecond)
					wrong = second.follows(s, port)
				}
				if wrong != "" {
					t.Errorf("line %d: %s", s.line, wrong)
				}
			}
			stop()
			if ended := first.shows(""); strings.Contains(ended, "panic") {
				t.Errorf("the server ended with %s", ended)
			}
		})
	}
}

// TestReadmeCommands pastes the commands of the README into each shell.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	text := readGuide(t, "../../README.md")
	list := steps(text)
	if len(list) != 1 || len(unpasteable(text)) != 0 {
		t.Fatalf("the README has the commands %+v", list)
	}
	for shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			x := openTerminal(t, shell, dir, "POSTERN_ADDR=127.0.0.1:0", "POSTERN_OPS_ADDR=127.0.0.1:0")
			x.paste(list[0].script)
			stop := x.running(dir, "Everything worked")
			awaitText(t, &x.out, "/setup/")
			stop()
			x.well(x.shows(""))
		})
	}
}

// TestTerminalsComplain: what does not work when it is pasted is noticed.
func TestTerminalsComplain(t *testing.T) {
	t.Parallel()
	for shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, shell, t.TempDir())
			if printed := x.shows("nosuchcommand\n"); !complaint.MatchString(printed) {
				t.Errorf("not noticed: %q", printed)
			}
			if shell != "zsh" {
				return
			}
			for _, commands := range []string{"A=1   # a comment\n", "echo http://127.0.0.1/?limit=1\n"} {
				if printed := x.shows(commands); !complaint.MatchString(printed) {
					t.Errorf("%q is not noticed: %q", commands, printed)
				}
			}
		})
	}
}
