package retries

import (
	"fmt"
	"log/slog"
	"testing"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

func asks(id string, count int) *waBinary.Node {
	member := types.JID{User: "100000000000001", Server: types.HiddenUserServer, Device: 3}
	group := types.NewJID("120363000000000001", types.GroupServer)
	return &waBinary.Node{
		Tag:     "receipt",
		Attrs:   waBinary.Attrs{"from": group, "participant": member, "type": "retry"},
		Content: []waBinary.Node{{Tag: "retry", Attrs: waBinary.Attrs{"id": id, "count": fmt.Sprint(count)}}},
	}
}

// A request has its turn once, and those whose turn never comes do not add up.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	a := Use(whatsmeow.NewClient(&store.Device{}, nil), slog.New(slog.DiscardHandler), func() {})
	by := asks("", 0).Attrs["participant"].(types.JID)
	a.Saw(asks("3EB01", 1))
	a.Saw(asks("3EB01", 2))
	a.Saw(&waBinary.Node{Tag: "receipt", Attrs: waBinary.Attrs{"type": "read"}})
	a.Saw(&waBinary.Node{Tag: "receipt", Attrs: waBinary.Attrs{"type": "retry"}})
	for _, count := range []int{2, 1} {
		r := request{by, "3EB01", count}
		if node, within := a.begin(r); node == nil || within {
			t.Fatalf("request %d: %v, within another one: %v", count, node, within)
		}
		if node, within := a.begin(r); node != nil || !within {
			t.Errorf("request %d begins within itself: %v, %v", count, node, within)
		}
		a.done()
		if node, _ := a.begin(r); node != nil {
			t.Errorf("request %d has its turn again", count)
		}
	}
	for i := range 2 * maxWaiting {
		a.Saw(asks(fmt.Sprint(i), 1))
	}
	if len(a.waiting) != maxWaiting {
		t.Errorf("%d requests wait, want %d", len(a.waiting), maxWaiting)
	}
	if node, _ := a.begin(request{by, fmt.Sprint(2*maxWaiting - 1), 1}); node == nil {
		t.Error("the last request is forgotten")
	}
}
