package whatsapp

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// closable is a connection on which the vendor has sent some bytes.
type closable struct{ *bytes.Buffer }

func (closable) Close() error { return nil }

// established returns a wire after its handshake.
func established(turn func()) *wire { return &wire{settled: true, saw: func([]byte) {}, turn: turn} }

// An account that is sent very much reads it slowly: what one account costs is bounded.
func TestStreamReadsABoundedRate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int
		took time.Duration
	}{
		"a burst":         {readBurst, 0},
		"more than that":  {readBurst + 3*readRate, 3 * time.Second},
		"a large message": {readBurst + readRate/16, time.Second / 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStream(closable{bytes.NewBuffer(make([]byte, c.size))}, established(func() {}))
				began := time.Now()
				n, err := io.Copy(io.Discard, struct{ io.Reader }{s})
				if took := time.Since(began); int(n) != c.size || err != nil || took.Round(time.Millisecond) != c.took.Round(time.Millisecond) {
					t.Errorf("read %d of %d bytes in %s, want %s: %v", n, c.size, took, c.took, err)
				}
			})
		})
	}
}

func TestCutEndsAReadThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStream(closable{bytes.NewBuffer(make([]byte, 2*readBurst))}, established(func() {}))
		began, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Read(make([]byte, readBurst))
			_, _ = s.Read(make([]byte, readBurst)) // waits for a second
		}()
		synctest.Wait()
		s.cut()
		<-done
		if took := time.Since(began); took != 0 { // by the bubble's clock
			t.Errorf("the read returned after %s", took)
		}
	})
}

// If whatsmeow learned of the end while it writes, it would take the frame for lost, whose response it may be handling.
func TestTheEndIsShownAfterTheLastWrite(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *stream, turn chan struct{}){
		"whatsmeow has written":              func(_ *stream, turn chan struct{}) { close(turn) },
		"whatsmeow has closed the WebSocket": func(s *stream, _ chan struct{}) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				turn := make(chan struct{})
				s := newStream(closable{bytes.NewBuffer(nil)}, established(func() { <-turn }))
				var got atomic.Value
				go func() {
					_, err := s.Read(make([]byte, 1))
					got.Store(err)
				}()
				synctest.Wait()
				if err := got.Load(); err != nil {
					t.Errorf("the end is shown while whatsmeow writes: %v", err)
				}
				if n, err := s.Write([]byte("late")); n != 0 || !errors.Is(err, errAborted) {
					t.Errorf("%d bytes are written afterwards: %v", n, err)
				}
				end(s, turn)
				synctest.Wait()
				if err := got.Load(); err != io.EOF { //nolint:errorlint // the end of a stream is not wrapped
					t.Errorf("the end is shown as %v", err)
				}
				_ = s.Close()
				select {
				case <-turn:
				default:
					close(turn)
				}
			})
		})
	}
}
