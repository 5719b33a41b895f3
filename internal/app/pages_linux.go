package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// dropStartPages unmaps the pages of the executable: the start touches nearly all of them, mostly to
// register types, and the server needs few. What it uses later is mapped again from the kernel's cache,
// in about a microsecond for 64 kB. Parts of the executable with changed pages stay as they are.
//
// The errors say what was not unmapped, which costs memory only.
func dropStartPages() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	parts, err := unchangedParts(f, program)
	for _, p := range parts {
		_, _, failed := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, syscall.MADV_DONTNEED)
		if failed != 0 {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// part is a range of addresses.
type part struct{ from, to uintptr }

// unchangedParts returns where a program is mapped that cannot be written and has no page of its own: a
// page that was changed would be lost. The form of the text is that of /proc/pid/smaps (proc(5)).
func unchangedParts(smaps io.Reader, program string) (list []part, err error) {
	var p part
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasSuffix(line, " "+program):
			var rights string
			if _, err := fmt.Sscanf(line, "%x-%x %s", &p.from, &p.to, &rights); err != nil {
				return nil, fmt.Errorf("read the memory map: %w", err)
			}
			if strings.Contains(rights, "w") {
				p = part{}
			}
		case hasOwnPages(line):
			p = part{}
		case strings.HasPrefix(line, "VmFlags:") && p.to > p.from: // the last line about a range
			list, p = append(list, p), part{}
		}
	}
	return list, lines.Err()
}

// hasOwnPages reports whether a line counts changed pages, in memory or swapped out.
func hasOwnPages(line string) bool {
	fields := strings.Fields(line)
	return len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:") && fields[1] != "0"
}
