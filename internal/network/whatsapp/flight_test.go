package whatsapp

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"postern/internal/network"
	"postern/internal/network/networktest"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
)

// TestFramesAreCounted however the bytes are cut.
func TestFramesAreCounted(t *testing.T) {
	t.Parallel()
	stream := slices.Concat(
		[]byte{0x82, 4, 0, 0, 1, 'a'},                                        // one frame
		[]byte{0x8A, 2, 'p', 'o'},                                            // a pong
		[]byte{0x02, 2, 0, 0}, []byte{0x89, 1, 'x'}, []byte{0x80, 2, 1, 'b'}, // one frame in two parts, a ping between
		[]byte{0x81, 3, 'a', 'b', 'c'},                         // text
		[]byte{0x82, 126, 0, 7}, []byte{0, 0, 1, 'c', 0, 0, 0}, // two frames, the second one empty
		[]byte{0x82, 127, 0, 0, 0, 0, 0, 0, 0, 4}, []byte{0, 0, 1, 'd'},
		[]byte{0x82, 1, 0}, // the first byte of one more
	)
	const want = 6
	for cut := range stream {
		var f frames
		f.read(stream[:cut])
		f.read(stream[cut:])
		if f.begun != want {
			t.Fatalf("cut at %d: %d frames, want %d", cut, f.begun, want)
		}
	}
	var f frames
	for i := range stream {
		f.read(stream[i : i+1])
	}
	if f.begun != want {
		t.Errorf("byte by byte: %d frames, want %d", f.begun, want)
	}
}

func TestStanzaIsOpenUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	var notes []string
	f := newFlight(func(what string) {
		if len(notes) == 0 || notes[len(notes)-1] != what {
			notes = append(notes, what)
		}
	})
	message := &waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{"id": "A"}}
	f.read([]byte{0x82, 4, 0, 0, 1, 'a'})
	f.decodedOne(message)
	if got := f.answered(&waBinary.Node{Tag: "ack", Attrs: waBinary.Attrs{"id": "B", "class": "message"}}); got != nil {
		t.Errorf("an acknowledgement of another message ends %v", got)
	}
	if got := f.answered(&waBinary.Node{Tag: "receipt", Attrs: waBinary.Attrs{"id": "A"}}); got != message {
		t.Errorf("the receipt ends %v", got)
	}
	f.read([]byte{0x82, 4, 0, 0, 1, 'a'})
	f.decodedOne(&waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{"id": "1", "type": "result"}})
	f.read([]byte{0x82, 4, 0, 0, 1, 'a'})
	f.land()
	f.read([]byte{0x82, 4, 0, 0, 1, 'a'})
	want := []string{network.ProcessingFrame, "message", "", network.ProcessingFrame, "", network.ProcessingFrame, ""}
	if !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}

// noted is a host that remembers what is processed.
type noted struct {
	*networktest.Recorder
	noted chan struct{} // gets a value after notes, not for each
	mu    sync.Mutex
	notes map[string]int
	last  string
}

func (n *noted) Processing(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes[what]++
	n.last = what
	select {
	case n.noted <- struct{}{}:
	default:
	}
}

// rest waits until nothing is processed.
func (n *noted) rest() {
	for {
		n.mu.Lock()
		last := n.last
		n.mu.Unlock()
		if last == "" {
			return
		}
		<-n.noted
	}
}

func TestHostKnowsWhatIsProcessed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	host := &noted{Recorder: &networktest.Recorder{}, noted: make(chan struct{}, 1), notes: map[string]int{}}
	account := networktest.Link(t, w.World, ownNumber)
	s, err := w.driver.Open(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), host) }()
	networktest.Wait(t, host.Recorder, 1, networktest.Any[network.Live])
	host.rest() // the note names the stanza that has been processed for longest
	networktest.Wait(t, host.Recorder, 1, byID(send(t, w, "hello")))
	s.(*session).liveConn().end(disconnected("test"))
	<-ended
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.notes[network.ProcessingFrame] == 0 || host.notes["message"] == 0 || host.last != "" {
		t.Errorf("noted %v, last %q", host.notes, host.last)
	}
}

// An answer about groups is handed on after the notices that came before it.
func TestAnswersWaitForNoticesAboutGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlight(func(string) {})
		notice := func(id, kind string) *waBinary.Node {
			return &waBinary.Node{Tag: "notification", Attrs: waBinary.Attrs{"id": id, "type": kind}}
		}
		acknowledge := func(id string) {
			f.answered(&waBinary.Node{Tag: "ack", Attrs: waBinary.Attrs{"id": id, "class": "notification"}})
		}
		answer := make(chan error, 1)
		settle := func() { answer <- f.settle(settleTimeout) }
		f.decodedOne(notice("A", "w:gp2"))
		f.decodedOne(notice("B", "w:gp2"))
		f.decodedOne(notice("C", "picture"))
		go settle()
		for _, id := range []string{"A", "C"} {
			acknowledge(id)
			synctest.Wait()
			if len(answer) > 0 {
				t.Fatalf("the answer is handed on once %s is acknowledged", id)
			}
		}
		f.decodedOne(notice("D", "w:gp2")) // after the answer
		acknowledge("B")
		if err := <-answer; err != nil {
			t.Errorf("the answer is handed on with %v", err)
		}
		if settle(); !errors.Is(<-answer, network.ErrBehind) { // the bubble's time passes
			t.Error("an answer waits for ever")
		}
		go settle()
		synctest.Wait()
		f.unsettle()
		for range 2 {
			if err := <-answer; !errors.Is(err, whatsmeow.ErrNotConnected) {
				t.Errorf("after the connection has ended, the error is %v", err)
			}
			settle()
		}
		f.decodedOne(notice("E", "w:gp2"))
		acknowledge("D")
	})
}
