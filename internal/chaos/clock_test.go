package chaos_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// unsteady returns the programs as they are released, but with a standard library whose wall clock the
// harness can move while they run. Everything in them reads the moved clock, the libraries too. The
// monotonic clock and timers go on, as they do when an operator sets the clock of a machine.
var unsteady = sync.OnceValues(func() (b binaries, err error) {
	if b.vendorsim, err = vendorProgram(); err != nil {
		return b, err
	}
	overlay, err := movableClock()
	if err != nil {
		return b, err
	}
	b.postern, err = goBuild("", "postern", "-overlay", overlay)
	return b, err
})

// reading is the line of time.Now that reads the clock.
const reading = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"

// moved is added to the package time. The file that clockVar names begins with the seconds by which the wall
// clock is off.
const moved = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var offset = mapOffset()

func mapOffset() *int64 {
	name, set := syscall.Getenv("` + clockVar + `")
	if !set {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic("open " + name + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map " + name + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func off() int64 {
	if offset == nil { // it is read before it is set
		return 0
	}
	return atomic.LoadInt64(offset)
}
`

const clockVar = "CHAOS_WALL_CLOCK"

// movableClock writes a file for the -overlay flag of the go command.
func movableClock() (string, error) {
	root, err := buildDir()
	if err != nil {
		return "", err
	}
	goroot, err := output(".", "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	pkg := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(pkg, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), reading) != 1 {
		return "", errors.New("time.Now of this Go release reads the clock in another way than the harness knows")
	}
	text := strings.Replace(string(source), reading, strings.Replace(reading, "\n", "\n\tsec += off()\n", 1), 1)
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": text, "moved.go": moved} {
		own := filepath.Join(root, name)
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(pkg, name)] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// wallClock is a file that says by how much the wall clock of a server is off.
type wallClock struct{ path string }

func newWallClock(t *testing.T, path string) wallClock {
	t.Helper()
	c := wallClock{path}
	if err := c.set(0); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c wallClock) env() string { return clockVar + "=" + c.path }

// set moves the clock at once, by whole seconds. A time that is read meanwhile is the old or the new one.
func (c wallClock) set(off time.Duration) error {
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(off/time.Second))
	_, err = f.WriteAt(b[:], 0)
	return errors.Join(err, f.Close())
}

// mostOff is by how much a wall clock is moved at most.
const mostOff = 10 * time.Minute

// move sets the wall clock of a server ahead or back.
func (w *world) move(n node, r *rand.Rand) {
	w.t.Helper()
	off := time.Duration(r.Int64N(int64(2*mostOff))) - mostOff
	if err := n.clock.set(off); err != nil {
		w.t.Fatal(err)
	}
	w.shifts++
}

// moveClock moves the clock of a server, which stays so until it is moved again. The server keeps its devices:
// leases follow the database's clock and the monotonic one.
func (w *world) moveClock(n node, r *rand.Rand) {
	before := w.replaced()
	w.move(n, r)
	w.flowOn(meanFlow)
	w.seesSecond(n, before)
}

// moveClockOfLost moves the clock of a server that cannot renew its lease. It ends its connections in time
// nevertheless.
func (w *world) moveClockOfLost(n node, r *rand.Rand) {
	w.cutWhile(n, func() { w.move(n, r) })
}
