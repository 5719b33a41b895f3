package whatsapp

import (
	"runtime"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
)

// A client that was shrunk holds at least 30 kB less. If whatsmeow no longer makes the large map, or
// gives it another name, this fails, and shrink can be removed or changed.
func TestClientsAreShrunk(t *testing.T) {
	held := func(change func(*whatsmeow.Client)) int64 {
		clients := make([]*whatsmeow.Client, 200)
		before := heap()
		for i := range clients {
			clients[i] = whatsmeow.NewClient(&store.Device{}, nil)
			change(clients[i])
		}
		defer runtime.KeepAlive(clients)
		return (heap() - before) / int64(len(clients))
	}
	as, small := held(func(*whatsmeow.Client) {}), held(shrink)
	if small+30_000 > as {
		t.Errorf("a client holds %d bytes, and %d after it was shrunk", as, small)
	}
	t.Logf("a client holds %d bytes, and %d after it was shrunk", as, small)
}

// heap is how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // also what finalizers and pools have held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
