package whatsapp

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// closable is a connection on which the vendor has sent some bytes.
type closable struct{ *bytes.Buffer }

func (closable) Close() error { return nil }

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
				s := newStream(closable{bytes.NewBuffer(make([]byte, c.size))}, &wire{settled: true, saw: func([]byte) {}})
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
		s := newStream(closable{bytes.NewBuffer(make([]byte, 2*readBurst))}, &wire{settled: true, saw: func([]byte) {}})
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
