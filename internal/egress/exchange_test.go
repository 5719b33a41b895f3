package egress

import (
	"io"
	"testing"
)

func TestConnectionsThatWereClosedBeforeARequestDoNotCount(t *testing.T) {
	t.Parallel()
	x := &exchange{}
	for sent := range maxSent {
		for range 10 {
			body, err := x.again([]byte("{}"))
			if err != nil {
				t.Fatalf("after %d sends: %v", sent, err)
			}
			if b, err := io.ReadAll(body); err != nil || string(b) != "{}" {
				t.Fatalf("body = %q, %v", b, err)
			}
		}
		x.open.Store(true)
		x.wroteHeaders()
	}
	if _, err := x.again([]byte("{}")); reasonOf(err) != Reset {
		t.Errorf("after %d sends: %v, want %s", maxSent, err, Reset)
	}
}
