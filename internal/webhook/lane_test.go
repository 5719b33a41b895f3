package webhook

import (
	"testing"

	"postern/internal/postern"
)

// A lane with much to do reads on where it stopped. What is written meanwhile at
// an earlier time than it has reached is read too, and nothing twice.
func TestLaneReadsWhatIsWrittenLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.active("http://127.0.0.1:1", nil)
	early := w.inbound("late")
	early.Now = early.Now.Add(-clockSlack / 2)
	w.receive(make([]string, 3*batch)...)
	l := w.dispatcher(Options{}).newLane(e.ID)
	read := map[postern.DeliveryID]int{}
	for reads := 0; l.more; reads++ {
		w.must(l.readFirsts(t.Context()))
		if len(l.firsts) > batch {
			t.Errorf("read %d at once, want at most %d", len(l.firsts), batch)
		}
		for _, d := range l.firsts {
			read[d.ID]++
			if len(d.Body) == 0 || len(d.Body) != d.Size {
				t.Errorf("%d of %d bytes of a small body were read with its delivery", len(d.Body), d.Size)
			}
		}
		if reads == 1 {
			w.must(w.db.Messages.RecordInbound(t.Context(), early))
		}
	}
	if len(read) != 3*batch+1 {
		t.Errorf("%d were read, want %d", len(read), 3*batch+1)
	}
	for id, n := range read {
		if n != 1 {
			t.Errorf("%s was read %d times", id, n)
		}
	}
}
