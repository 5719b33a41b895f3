package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
)

// ask queues a text with a priority.
func (w *world) ask(d postern.Device, p postern.Priority, to, body string) {
	w.t.Helper()
	in := gateway.NewMessage{
		DeviceID: d.ID, To: to, Content: postern.Text(body), Priority: p, WhenDisconnected: "queue",
	}
	if _, err := w.g.Messages.Send(w.t.Context(), w.caller, in, nil); err != nil {
		w.t.Fatal(err)
	}
}

// asleep returns a linked device that queues messages until it is resumed.
func (w *world) asleep() postern.Device {
	w.t.Helper()
	d := w.linked()
	if _, err := w.g.Devices.Pause(w.t.Context(), w.caller, d.ID); err != nil {
		w.t.Fatal(err)
	}
	w.settle(time.Second)
	return d
}

// wake resumes a device, and returns the texts in the order in which they left.
func (w *world) wake(d postern.Device) []string {
	w.t.Helper()
	if _, err := w.g.Devices.Resume(w.t.Context(), w.caller, d.ID); err != nil {
		w.t.Fatal(err)
	}
	w.settle(time.Minute)
	return w.net.Order()
}

// While messages of all priorities wait, 6 of 10 are of the high one, 3 of the normal one and 1
// of the low one, also after a restart. The order in which they were accepted makes no difference.
func TestPrioritiesShareTheSending(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.asleep()
		for _, p := range []postern.Priority{postern.LowPriority, postern.NormalPriority, postern.HighPriority} {
			for i, to := range numbers(60) {
				w.ask(d, p, strings.Replace(to, "+1555", "+1"+fmt.Sprint(500+len(p)), 1), fmt.Sprint(p, i))
			}
		}
		w.stop()
		w.boot()
		list := w.wake(d)
		if len(list) != 180 {
			t.Fatalf("%d messages were sent, want 180", len(list))
		}
		for n := 10; n <= 100; n += 10 {
			counts := map[string]int{}
			for _, body := range list[:n] {
				counts[strings.TrimRight(body, "0123456789")]++
			}
			if counts["high"] != n*6/10 || counts["normal"] != n*3/10 || counts["low"] != n/10 {
				t.Errorf("of the first %d messages, %v were sent", n, counts)
			}
		}
	})
}

// Messages with low priority leave while more with high priority wait than one look at the
// queue shows.
func TestLowPriorityIsNotStarved(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.asleep()
		for i, to := range numbers(300) {
			w.ask(d, postern.HighPriority, to, fmt.Sprint("high", i))
		}
		for i := range 20 {
			w.ask(d, postern.LowPriority, customer, fmt.Sprint("low", i))
		}
		list := w.wake(d)
		for i := range 20 {
			if got := slices.Index(list, fmt.Sprint("low", i)); got < 0 || got > 7*(i+1) {
				t.Errorf("message %d with low priority left as number %d", i, got)
			}
		}
	})
}

// The messages of a chat leave in the order in which they were accepted; one with high priority
// takes those before it along.
func TestPriorityKeepsTheOrderOfAChat(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.asleep()
		for i, to := range numbers(100) {
			w.ask(d, postern.NormalPriority, to, fmt.Sprint("other", i))
		}
		for i, p := range []postern.Priority{"low", "high", "low", "normal", "high"} {
			w.ask(d, p, customer, fmt.Sprint("mine", i))
		}
		var mine []string
		list := w.wake(d)
		for i, body := range list {
			if strings.HasPrefix(body, "mine") {
				if mine = append(mine, body); i > 10 {
					t.Errorf("%s left as number %d", body, i)
				}
			}
		}
		if got := strings.Join(mine, " "); got != "mine0 mine1 mine2 mine3 mine4" {
			t.Errorf("the messages of the chat left as %q", got)
		}
	})
}

// hooked calls a function before the n-th message is sent.
type hooked struct {
	network.Driver

	n    int
	hook func()
}

func (h *hooked) Open(ctx context.Context, account string) (network.Session, error) {
	s, err := h.Driver.Open(ctx, account)
	return &hookedSession{s, h}, err
}

type hookedSession struct {
	network.Session

	h *hooked
}

func (s *hookedSession) Send(ctx context.Context, m network.Outbound) (time.Time, error) {
	if s.h.n--; s.h.n == 0 {
		s.h.hook()
	}
	return s.Session.Send(ctx, m)
}

// A message with high priority does not wait until those are sent that the sender has read.
func TestHighPriorityLeavesNext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := &hooked{Driver: w.net, n: 3}
		w.driver = h
		w.stop()
		w.boot()
		d := w.asleep()
		for i, to := range numbers(50) {
			w.ask(d, "", to, fmt.Sprint("normal", i))
		}
		h.hook = func() {
			w.ask(d, postern.HighPriority, customer, "high")
			time.Sleep(time.Second) // the bubble's time: until all else waits
		}
		if list := w.wake(d); len(list) != 51 || list[3] != "high" {
			t.Errorf("messages left in the order %v", list)
		}
	})
}
