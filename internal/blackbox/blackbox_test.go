package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const inChild = "BLACKBOX_TEST_DIR"

// TestMain lets this test binary be the process that crashes.
func TestMain(m *testing.M) {
	if dir := os.Getenv(inChild); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child records something and ends as its argument says.
func child(dir string) {
	box, _, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	box.Mark("dev_idle").Set("")
	box.Mark("dev_done").Set("frame")
	box.Mark("dev_busy").Set("frame")
	done := box.Mark("dev_other")
	done.Set("message")
	done.Release()
	switch os.Getenv("BLACKBOX_TEST_END") {
	case "panic":
		go explode(nil)
		select {}
	case "kill":
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		select {}
	default:
		box.Close()
		os.Exit(0)
	}
}

func explode(data []byte) { _ = data[0] }

// after runs a child to its end and returns what it left.
func after(t *testing.T, end string) Left {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), inChild+"="+dir, "BLACKBOX_TEST_END="+end)
	out, err := cmd.CombinedOutput()
	if end == "" && err != nil || end == "panic" && !strings.Contains(string(out), "index out of range") {
		t.Fatalf("child: %v\n%s", err, out)
	}
	box, left, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, lastName)); (err == nil) != (end == "panic") {
		t.Errorf("the report of the previous process: %v", err)
	}
	if _, again, err := Open(dir); err != nil || again.Report != "" || len(again.Entries) != 0 {
		t.Errorf("a second start finds %v (%v)", again, err)
	}
	return left
}

func TestCrashLeavesWhatWasInProgress(t *testing.T) {
	left := after(t, "panic")
	if want := []Entry{{"dev_done", "frame"}, {"dev_busy", "frame"}}; !slices.Equal(left.Entries, want) {
		t.Errorf("left %v, want %v", left.Entries, want)
	}
	if !left.Report.Through("blackbox.explode") || left.Report.Through("blackbox.TestMain") ||
		left.Report.Through("testing.") {
		t.Errorf("the report does not name the goroutine that crashed:\n%s", left.Report)
	}
}

func TestKilledProcessLeavesNoReport(t *testing.T) {
	left := after(t, "kill")
	if left.Report != "" || len(left.Entries) != 2 {
		t.Errorf("left %v, want two entries and no report", left)
	}
}

func TestOrderlyEndLeavesNothing(t *testing.T) {
	if left := after(t, ""); left.Report != "" || len(left.Entries) != 0 {
		t.Errorf("left %v, want nothing", left)
	}
}

func TestMarksShareTheRoom(t *testing.T) {
	box, _, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	marks := make([]*Mark, maxSlots)
	for i := range marks {
		marks[i] = box.Mark("dev")
		marks[i].Set("x")
	}
	none := box.Mark("dev")
	none.Set("x") // there is no room
	if none.slot >= 0 {
		t.Errorf("there is a slot %d", none.slot)
	}
	none.Release()
	marks[7].Release()
	marks[7].Set("after its release")
	again := box.Mark(strings.Repeat("s", 100))
	again.Set(strings.Repeat("w", 100))
	e, ok := read(box.data[7*slotSize : 8*slotSize])
	if !ok || len(e.Subject) != maxSubject || len(e.What) != maxWhat {
		t.Errorf("the slot given back holds %v (%v)", e, ok)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	again.Set("after the end")
	again.Release()
	var nothing *Box
	m := nothing.Mark("dev")
	m.Set("x")
	m.Release()
}

// A subject for which nothing is in progress takes no slot from the others.
func TestIdleMarksTakeNoRoom(t *testing.T) {
	box, _, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for range maxSlots {
		idle := box.Mark("idle")
		idle.Set("x")
		idle.Set("")
	}
	m := box.Mark("dev")
	m.Set("frame")
	if e, ok := read(box.data[:slotSize]); !ok || e != (Entry{"dev", "frame"}) {
		t.Errorf("the record holds %v (%v)", e, ok)
	}
}
