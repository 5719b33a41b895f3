package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
)

var followed = flag.Int("followed", 4000, "events that are recorded while a reader follows the log")

// Three servers record events, and their commits are delayed at random. A reader that follows the log sees
// each event once: none becomes visible before a position that was read.
func TestReaderMissesNoEventOfSeveralServers(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	servers := make([]*Store, 3)
	for i := range servers {
		servers[i] = reopen(t, Options{Dir: t.TempDir(), URL: url, Nodes: true, Trace: lateCommits})
		join(t, servers[i], string(rune('a'+i)))
	}
	ws := newWorkspace(t, servers[0])
	var left atomic.Int64
	left.Store(int64(*followed))
	var writing sync.WaitGroup
	for w := range 8 {
		d := newDevice(t, servers[0], ws, postern.Connected)
		for range 32 { // messages at a time
			writing.Go(func() {
				for n := left.Add(-1); n >= 0; n = left.Add(-1) {
					err := servers[w%3].Messages.RecordInbound(t.Context(), inboundOf(d, fmt.Sprint("N", n), "lid:1", "hello"))
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	if seen := follow(t, servers[2], ws, written); seen != *followed {
		t.Errorf("the reader has seen %d of %d events", seen, *followed)
	}
}

// lateCommits delays a commit now and then.
func lateCommits(query string, _ []any) {
	if query == "COMMIT" && rand.N(20) == 0 {
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// follow reads the log until all is written and read, and returns the number of events. The events of each
// device are numbered without a gap.
func follow(t *testing.T, s *Store, ws postern.WorkspaceID, written <-chan struct{}) (seen int) {
	t.Helper()
	logged := s.Listen(EventLogged, string(ws))
	defer logged.Close()
	last := map[postern.DeviceID]int64{}
	for after, ended := int64(0), false; ; {
		p, err := s.Events.List(t.Context(), ws, EventFilter{}, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			if e.Position <= after || e.Sequence != last[e.DeviceID]+1 {
				t.Fatalf("after the position %d and the sequence %d, there is %d with %d", after, last[e.DeviceID], e.Position, e.Sequence)
			}
			after, last[e.DeviceID] = e.Position, e.Sequence
		}
		if seen += len(p.Entries); len(p.Entries) > 0 {
			continue
		}
		if ended {
			return seen
		}
		select {
		case <-logged.C():
			logged.Take()
		case <-written:
			ended = true
		}
	}
}
