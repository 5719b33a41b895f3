package app

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// residentFiles is how many kB of files are mapped and in memory.
func residentFiles(t *testing.T) (kB int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"RssFile:", "RssShmem:"} { // those of a file system in memory count as shared
		var some int
		_, rest, _ := strings.Cut(string(b), field)
		if _, err := fmt.Sscan(rest, &some); err != nil {
			t.Fatal(err)
		}
		kB += some
	}
	return kB
}

func TestStartPagesAreDropped(t *testing.T) {
	before := residentFiles(t)
	if err := dropStartPages(); err != nil {
		t.Fatal(err)
	}
	if after := residentFiles(t); after >= before {
		t.Errorf("%d kB of files are in memory, and before %d kB", after, before)
	}
}

func TestOnlyUnchangedPartsOfTheProgramAreDropped(t *testing.T) {
	const smaps = `00400000-01e00000 r-xp 00000000 fe:00 1 /usr/bin/postern
Rss:               24576 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01e00000-03500000 r--p 01a00000 fe:00 1 /usr/bin/postern
Anonymous:             4 kB
VmFlags: rd mr mw me
03400000-03500000 r--p 03000000 fe:00 1 /usr/bin/postern
Anonymous:             0 kB
Swap:                  8 kB
VmFlags: rd mr mw me
03500000-03600000 rw-p 03100000 fe:00 1 /usr/bin/postern
Anonymous:             0 kB
VmFlags: rd wr mr mw me
03600000-03700000 r--p 03200000 fe:00 1 /usr/bin/postern
Anonymous:             0 kB
VmFlags: rd mr mw me
7f0000000000-7f0000100000 r-xp 00000000 fe:00 2 /usr/bin/other
Anonymous:             0 kB
VmFlags: rd ex
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
VmFlags: rd wr
`
	got, err := unchangedParts(strings.NewReader(smaps), "/usr/bin/postern")
	want := []part{{0x400000, 0x1e00000}, {0x3600000, 0x3700000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parts = %x, %v, want %x", got, err, want)
	}
}
