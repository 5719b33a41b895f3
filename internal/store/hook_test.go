//go:build failpoints

package store

import "testing"

// A write with a fail point has its turn like any other.
func TestFailPointsHideNoOwner(t *testing.T) {
	t.Parallel()
	for _, o := range []op{RecordInbound{}, QueueMessage{}, Attempt{}} {
		_, was := o.(owned)
		if _, is := bare(&hooked{op: o}).(owned); was != is {
			t.Errorf("%T: owned %v, hooked %v", o, was, is)
		}
	}
}
