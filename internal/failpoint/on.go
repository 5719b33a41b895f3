//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// The settings of one run. POSTERN_FAILPOINT is "point=crash@N", which kills the
// process the Nth time it comes there, "point=error" or "point=delay", which
// hit every fourth time. POSTERN_SABOTAGE is a mistake.
var (
	point, action, at = parse(os.Getenv("POSTERN_FAILPOINT"))
	mistake           = Mistake(os.Getenv("POSTERN_SABOTAGE"))

	hits, slips atomic.Int64
)

const (
	every     = 4  // error and delay hit each fourth time
	slipFirst = 3  // the first slip
	slipEvery = 20 // and then each twentieth time
	delay     = 100 * time.Millisecond
)

// ErrInjected is the error of a fail point.
var ErrInjected = errors.New("a fail point")

func parse(setting string) (Point, string, int64) {
	p, act, _ := strings.Cut(setting, "=")
	act, times, _ := strings.Cut(act, "@")
	n, err := strconv.ParseInt(times, 10, 64)
	if err != nil {
		n = 1
	}
	return Point(p), act, n
}

// At stops the process, fails or waits, as the run's setting says, and notes it
// on the standard error output before it does.
func At(p Point) error {
	if p == "" || p != point {
		return nil
	}
	n := hits.Add(1)
	if action == "crash" && n != at || action != "crash" && n%every != 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, `{"msg":"fail point","point":%q,"action":%q,"hit":%d}`+"\n", p, action, n)
	switch action {
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "error":
		return ErrInjected
	default:
		time.Sleep(delay)
		return nil
	}
}

// Makes tells whether a mistake is made throughout.
func Makes(m Mistake) bool { return m == mistake }

// Slips tells whether a mistake is made this time, which is the third and then
// each twentieth.
func Slips(m Mistake) bool {
	if m != mistake {
		return false
	}
	n := slips.Add(1)
	return n == slipFirst || n%slipEvery == 0
}
