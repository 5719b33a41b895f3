package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// costs measures the processor time of a text, of the gateway's process beside that of bare clients.
// Webhooks are included: a text that was sent is confirmed by message.sent, and one that was
// received arrives with message.received. The time of PostgreSQL's server is not included.
func costs(t *testing.T, e engine) (list []figure) {
	all := fleets()
	a := newApart(t, e, all[len(all)-1].devices)
	for _, f := range all {
		list = append(list, a.cost("sent, "+f.String()+e.on(), f.total(), func() {
			f.post(t, a.keys[0], a.url, func(n int) string { return a.devices[n] })
			a.await("message.sent", f.total())
		}, func() { a.bare.obey("send %d %d", f.devices, f.perDevice) }))
	}
	received := 0 // by the bare clients
	for _, f := range all {
		list = append(list, a.cost("received, "+f.String()+e.on(), f.total(), func() {
			a.write(f, ourNumber)
			a.await("message.received", f.total())
		}, func() {
			a.write(f, bareNumber)
			received += f.total()
			a.bare.obey("await %d", received)
		}))
	}
	return list
}

// write lets a contact write to every account of a fleet.
func (a *apart) write(f fleet, number string) {
	inParallel(f.devices, func(n int) error {
		for range f.perDevice {
			a.inbound(fmt.Sprintf(number, n), ordinary)
		}
		return nil
	}, a.t)
}

// cost measures the processor time of each of so many texts.
func (a *apart) cost(name string, texts int, ours, plain func()) figure {
	a.t.Helper()
	f := figure{name: "processor time of a text " + name, unit: "µs", ceiling: 1}
	f.extra = "the gateway's process with its webhooks; bare: the process of whatsmeow on its sqlstore"
	gateway := func() time.Duration { return processorTimeOf(a.t, a.gateway.Process.Pid) }
	server := func() time.Duration { return databaseTime(a.t) }
	clients := func() time.Duration { return processorTimeOf(a.t, a.bare.pid) }
	var database []float64
	for range rounds {
		spent := perText(texts, ours, gateway, server)
		f.ours, database = append(f.ours, spent[0]), append(database, spent[1])
		f.bare = append(f.bare, perText(texts, plain, clients)...)
	}
	if a.env != nil {
		f.ceiling = 0 // it would leave out what the server takes
		f.extra += fmt.Sprintf("; PostgreSQL's server takes another %.0f µs", median(database))
	}
	return f
}

// perText returns what clocks advance for each text while do runs, in microseconds.
func perText(texts int, do func(), clocks ...func() time.Duration) (spent []float64) {
	var before []time.Duration
	for _, clock := range clocks {
		before = append(before, clock())
	}
	do()
	for i, clock := range clocks {
		spent = append(spent, float64((clock()-before[i]).Microseconds())/float64(texts))
	}
	return spent
}

// processorTimeOf is what a process has used so far, by its clock of processor time.
func processorTimeOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	const sched = 2 // exact, not counted in ticks
	clock := uintptr(^pid<<3 | sched)
	var spent syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&spent)), 0)
	if errno != 0 {
		t.Fatalf("the processor time of process %d: %v", pid, errno)
	}
	return time.Duration(spent.Nano())
}

// databaseTime is what the PostgreSQL server that this process has started has used so far; 0 without
// one. A server has a process for each connection; those that have ended are not included.
func databaseTime(t *testing.T) (sum time.Duration) {
	t.Helper()
	parents := postgresProcesses(t)
	for pid, parent := range parents {
		if parent == os.Getpid() || parents[parent] == os.Getpid() {
			sum += processorTimeOf(t, pid)
		}
	}
	return sum
}

// postgresProcesses returns the processes named postgres with their parents.
func postgresProcesses(t *testing.T) map[int]int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, path := range files {
		b, _ := os.ReadFile(path) // empty if it has just ended
		pid, rest, ok := strings.Cut(string(b), " (postgres) ")
		if !ok {
			continue
		}
		id, err1 := strconv.Atoi(pid)
		parent, err2 := strconv.Atoi(strings.Fields(rest)[1])
		if err1 == nil && err2 == nil {
			parents[id] = parent
		}
	}
	return parents
}
