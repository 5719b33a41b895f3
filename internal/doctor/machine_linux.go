package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// freeMemory is the memory that can still be used, in bytes: that of the machine or, if it is less, that of the
// control group.
func freeMemory() (int64, error) {
	free, err := availableMemory()
	limit, used, bad := groupMemory()
	if bad == nil && (err != nil || limit-used < free) {
		return limit - used, nil
	}
	return free, err
}

// availableMemory reads proc(5).
func availableMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no line MemAvailable")
}

// groupMemory reads the limit and the use of a control group of version 2.
func groupMemory() (limit, used int64, err error) {
	read := func(name string) (int64, error) {
		text, err := os.ReadFile("/sys/fs/cgroup/" + name)
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is none
	}
	if limit, err = read("memory.max"); err != nil {
		return 0, 0, err
	}
	used, err = read("memory.current")
	return limit, used, err
}

// Clock asks the kernel whether something keeps the clock right (adjtimex(2)).
func Clock() Check {
	return Check{"clock", func(context.Context) Finding {
		var t unix.Timex
		if _, err := unix.Adjtimex(&t); err != nil {
			return Skip("The kernel does not say whether the clock is synchronized: " + err.Error() + ".")
		}
		if t.Status&unix.STA_UNSYNC != 0 {
			return warn("Nothing keeps the clock right, as far as the kernel knows.",
				"Install chrony or systemd-timesyncd. Receivers refuse webhooks whose timestamp is more than five "+
					"minutes off.")
		}
		return ok(fmt.Sprintf("It is synchronized; the error is at most %d ms.", t.Maxerror/1000))
	}}
}
