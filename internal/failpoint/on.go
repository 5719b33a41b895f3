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

// The settings of a run. POSTERN_FAILPOINT is "point=crash@N", which kills the process
// when it reaches the point for the Nth time, or "point=error" or "point=delay", which
// take effect every fourth time. POSTERN_SABOTAGE is a mistake.
var (
	point, action, at = parse(os.Getenv("POSTERN_FAILPOINT"))
	mistake           = Mistake(os.Getenv("POSTERN_SABOTAGE"))

	hits, slips atomic.Int64
)

const (
	every     = 4  // error and delay take effect every fourth time
	slipFirst = 3  // a mistake is made at the third chance
	slipEvery = 20 // and at every twentieth
	delay     = 100 * time.Millisecond
)

// ErrInjected is the error that a fail point returns.
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

// Armed reports whether the run has a setting for a point.
func Armed(p Point) bool { return p != "" && p == point }

// At kills the process, returns ErrInjected or waits, as the setting of the run says. It
// reports that on standard error first.
func At(p Point) error {
	if !Armed(p) {
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

// Makes reports whether the run makes a mistake, for mistakes that are made every time.
func Makes(m Mistake) bool { return m == mistake }

// Note writes on standard error that something has happened which tests count.
func Note(what string) {
	fmt.Fprintf(os.Stderr, `{"msg":"fail point","note":%q}`+"\n", what)
}

// Slips reports whether a mistake is made this time, which is the third and then every
// twentieth.
func Slips(m Mistake) bool {
	if m != mistake {
		return false
	}
	n := slips.Add(1)
	return n == slipFirst || n%slipEvery == 0
}
