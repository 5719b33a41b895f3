package dbtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Hold stops all processes of the server, as a machine does that has too much to do, until release is called. It
// works on Linux only.
func (c *Cluster) Hold(tb testing.TB) (release func()) {
	tb.Helper()
	held := []int{c.proc.Process.Pid}
	_ = syscall.Kill(held[0], syscall.SIGSTOP) // first, so that it starts no others; the file below says whether it is there
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", held[0]))
	if err != nil {
		tb.Fatal(err)
	}
	for one := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(one)
		if err != nil {
			tb.Fatal(err)
		}
		held = append(held, pid)
	}
	tell := func(s syscall.Signal) {
		for _, pid := range held {
			_ = syscall.Kill(pid, s) // a process that has ended needs no signal
		}
	}
	tell(syscall.SIGSTOP)
	return func() { tell(syscall.SIGCONT) }
}
