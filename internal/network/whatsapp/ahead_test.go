package whatsapp

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
)

// gates hold messages that are being stored.
type gates struct {
	mu    sync.Mutex
	begun []string
	open  map[string]chan error
}

func (g *gates) hold(u network.Update) func() error {
	in, is := u.(network.Inbound)
	if !is {
		return func() error { return nil }
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := make(chan error, 1)
	g.begun, g.open[in.NetworkID] = append(g.begun, in.NetworkID), gate
	return func() error { return <-gate }
}

// order returns the messages in the order in which they were begun.
func (g *gates) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.begun)
}

func (g *gates) release(id string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[id] <- err
}

// Messages are handed to the host while those before them are not durable yet, and each is
// acknowledged when it is. One that is not stored ends the connection, and those behind it come
// again with it.
func TestMessagesAreAcknowledgedWhenTheyAreDurable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	g := &gates{open: map[string]chan error{}}
	c.Host.Delay(g.hold)
	var ids []string
	for range 3 {
		ids = append(ids, send(t, w, "hello"))
	}
	networktest.Wait(t, c.Host, 1, byID(ids[2]))
	for _, id := range ids {
		if entryOf(t, w, id).AckedAt != nil {
			t.Fatal("a message was acknowledged before it was durable")
		}
	}
	if got := g.order(); !slices.Equal(got, ids) {
		t.Errorf("stored in the order %q, want %q", got, ids)
	}
	g.release(ids[0], nil)
	w.awaitAck(t, ids[0])
	g.release(ids[1], errors.New("the disk is full"))
	g.release(ids[2], nil)
	c.EndedAs(t, postern.Disconnected, "store-unavailable")
	for _, id := range ids[1:] {
		if entryOf(t, w, id).AckedAt != nil {
			t.Error("a message was acknowledged after one that was not stored")
		}
	}
	c.Host.Delay(nil)
	c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
	for _, id := range ids[1:] {
		w.awaitAck(t, id)
		if got := networktest.All(c.Host, byID(id)); got[len(got)-1].Content.Text != "hello" {
			t.Errorf("a message came again as %+v", got)
		}
	}
	if got := networktest.All(c.Host, networktest.Any[network.Undecryptable]); len(got) != 0 {
		t.Error("a message was reported as undecryptable")
	}
}

// What waits for the messages before it waits until all of them are finished, and there are at
// most maxAhead of them.
func TestMessagesAheadAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		finished := 0
		a := &ahead{finish: func(arriving) { <-gate; finished++ }}
		added, settled := 0, false
		go func() {
			for range maxAhead + 2 {
				a.add(t.Context(), arriving{})
				added++
			}
			a.settle(t.Context())
			settled = true
		}()
		synctest.Wait()
		if added != maxAhead {
			t.Errorf("%d messages are ahead, want %d", added, maxAhead)
		}
		for range maxAhead + 1 {
			gate <- struct{}{}
		}
		synctest.Wait()
		if added != maxAhead+2 || settled {
			t.Errorf("with one message left, %d were added; settled %v", added, settled)
		}
		gate <- struct{}{}
		synctest.Wait()
		if finished != maxAhead+2 || !settled {
			t.Errorf("%d messages are finished, settled %v", finished, settled)
		}
		a.settle(t.Context()) // with nothing to wait for
	})
}
