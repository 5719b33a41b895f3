package blackbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Report is what the runtime wrote when a process crashed. It contains the stacks of all
// goroutines, the one that crashed first.
type Report string

// maxReport bounds how much of a report is read: the crashed goroutine comes first.
const maxReport = 1 << 20

// Through reports whether the goroutine that crashed was running code whose name in the
// stack contains one of the texts, such as the path of a package.
func (r Report) Through(texts ...string) bool {
	stack := r.crashed()
	for _, text := range texts {
		if strings.Contains(stack, text) {
			return true
		}
	}
	return false
}

// crashed returns the stack of the goroutine that crashed. It begins with "goroutine" at
// the start of a line and ends with an empty line.
func (r Report) crashed() string {
	_, stack, _ := strings.Cut(string(r), "\ngoroutine ")
	stack, _, _ = strings.Cut(stack, "\n\n")
	return stack
}

// takeLeft reads what the previous process left, and keeps its report for the operator.
func takeLeft(dir string) (left Left, err error) {
	if left.Report, err = readReport(filepath.Join(dir, reportName)); err != nil {
		return left, err
	}
	if left.Report != "" {
		err = os.Rename(filepath.Join(dir, reportName), filepath.Join(dir, lastName)) //nolint:gosec // as below
		if err != nil {
			return left, err
		}
	}
	left.Entries, err = readEntries(filepath.Join(dir, mapName))
	return left, err
}

func readReport(path string) (Report, error) {
	text, err := readAtMost(path, maxReport)
	return Report(text), err
}

func readEntries(path string) (list []Entry, err error) {
	data, err := readAtMost(path, slotSize*maxSlots)
	for ; len(data) >= slotSize; data = data[slotSize:] {
		if e, ok := read(data[:slotSize]); ok {
			list = append(list, e)
		}
	}
	return list, err
}

// readAtMost reads the beginning of a file; a missing file is empty.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
