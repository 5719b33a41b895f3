package vendorsim

import (
	"fmt"
	"testing"
)

// The memory and the state directory do not grow with the number of messages.
func TestMemoryDoesNotGrowWithMessages(t *testing.T) {
	const limit = 1000
	v, err := Open(Options{Dir: t.TempDir(), Ledger: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	book := func(from, to int) {
		for n := from; n < to; n++ {
			v.records.bookOutbound(Entry{
				Account: "+15550001111", Peer: "+15551234567", Direction: Outbound, NetworkID: fmt.Sprintf("%020d", n),
				Content: Content{Type: TypeText, Body: fmt.Sprintf("the message number %d", n)},
			})
			if err := v.journal.flush(); err != nil { // as after each message
				t.Fatal(err)
			}
		}
	}
	empty := heap()
	book(0, 5*limit)
	early := heap() - empty
	book(5*limit, 50*limit)
	if late := heap() - empty; late > early+early/2 {
		t.Errorf("%d messages take %d bytes, and %d messages %d", 5*limit, early, 50*limit, late)
	}
	list := v.Ledger(0, 0)
	if len(list) != limit || list[0].N != 49*limit+1 || len(v.ledger.index) != limit {
		t.Errorf("the ledger has %d entries from %d, and %d in its index", len(list), list[0].N, len(v.ledger.index))
	}
	t.Logf("%d bytes for each of the messages that are kept, on the phones of both ends too", early/limit)
}
