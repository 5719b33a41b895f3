package whatsapp

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/vendorsim"
)

// accounts links n accounts.
func (w world) accounts(tb testing.TB, n int) []string {
	tb.Helper()
	accounts := make([]string, n)
	for i := range accounts {
		accounts[i] = networktest.Link(tb, w.World, number(i))
	}
	return accounts
}

func number(i int) string { return fmt.Sprintf("+1555%07d", 2000000+i) }

// BenchmarkIdleSession reports what 100 live sessions cost: the heap and the
// resident memory that their connections add, in kB each. The simulated vendor's
// end of them is in the same process and counted in rss-kB, and in heap-kB too.
func BenchmarkIdleSession(b *testing.B) {
	const sessions = 100
	w := newWorld(b, nil)
	accounts := w.accounts(b, sessions)
	for b.Loop() {
		heap, rss := memory(b)
		var conns []*networktest.Connection
		for _, account := range accounts {
			conns = append(conns, networktest.Connect(b, w.World, account, &networktest.Recorder{}))
		}
		for _, c := range conns {
			c.Live(b, 1)
		}
		heapAfter, rssAfter := memory(b)
		b.ReportMetric(float64(heapAfter-heap)/1024/sessions, "heap-kB/session")
		b.ReportMetric(float64(rssAfter-rss)/1024/sessions, "rss-kB/session")
		b.ReportMetric(float64(rssAfter)/1024/1024, "rss-MB")
		for _, c := range conns {
			c.Stop(b)
		}
	}
}

// memory is the live heap and the resident memory, in bytes.
func memory(tb testing.TB) (heap, rss int64) {
	tb.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return int64(m.HeapAlloc), 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return int64(m.HeapAlloc), pages * int64(os.Getpagesize())
}

// BenchmarkSend sends over 10 devices at once, each to its own contact. The
// simulated vendor decrypts every message, twice, on the same processors.
func BenchmarkSend(b *testing.B) {
	const devices = 10
	w := newWorld(b, nil)
	var conns []*networktest.Connection
	for i, account := range w.accounts(b, devices) {
		c := networktest.Connect(b, w.World, account, &networktest.Recorder{}).Live(b, 1)
		conns = append(conns, c)
		warm := outbound(fmt.Sprintf("3EB0FF%014d", i), contact(i), "hello")
		if _, err := c.Send(b.Context(), warm); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var group sync.WaitGroup
	for i, c := range conns {
		group.Go(func() {
			for j := i; j < b.N; j += devices {
				m := outbound(fmt.Sprintf("3EB0%016d", j), contact(i), "hello")
				if _, err := c.Send(b.Context(), m); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func contact(i int) string { return fmt.Sprintf("+1555%07d", 3000000+i) }

// BenchmarkReceive lets contacts write to 10 devices at once.
func BenchmarkReceive(b *testing.B) {
	const devices = 10
	w := newWorld(b, nil)
	var conns []*networktest.Connection
	for _, account := range w.accounts(b, devices) {
		conns = append(conns, networktest.Connect(b, w.World, account, &networktest.Recorder{}).Live(b, 1))
	}
	b.ResetTimer()
	var group sync.WaitGroup
	for i, c := range conns {
		group.Go(func() {
			count := 0
			for j := i; j < b.N; j += devices {
				if _, err := w.vendor.Send(b.Context(), number(i), contact(i), "hello"); err != nil {
					b.Error(err)
					return
				}
				count++
			}
			if count > 0 {
				networktest.Wait(b, c.Host, count, networktest.Any[network.Inbound])
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkLink links one account after another.
func BenchmarkLink(b *testing.B) {
	vendor, err := vendorsim.Open(vendorsim.Options{Keys: vendorKeys})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closing(b, vendor.Close) })
	w := worldOf(b, vendor, Network{Dial: dialing(vendor)}, nil)
	for i := 0; b.Loop(); i++ {
		networktest.Link(b, w.World, number(i))
	}
}
