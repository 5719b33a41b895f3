package session

import (
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

func (w *world) change(d postern.Device, in gateway.DeviceChange) {
	w.t.Helper()
	if _, err := w.g.Devices.Change(w.t.Context(), w.caller, d.ID, in); err != nil {
		w.t.Fatal(err)
	}
}

func given[T any](v T) gateway.Change[T] { return gateway.Change[T]{Given: true, Value: &v} }

func paced(all, fresh postern.Rate) gateway.DeviceChange {
	return gateway.DeviceChange{Pace: given(gateway.PaceChange{PerMinute: given(all), NewChatsPerMinute: given(fresh)})}
}

// numbers are contacts who never wrote.
func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, "+1555200"+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10))+"0")
	}
	return list
}

func (w *world) count(ids []postern.MessageID, want postern.MessageStatus) (n int) {
	w.t.Helper()
	for _, id := range ids {
		m, err := w.g.Messages.Get(w.t.Context(), w.caller, id)
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Status.Rank() >= want.Rank() {
			n++
		}
	}
	return n
}

// TestPaceHoldsAnyMinute watches the moments at which messages reach phones.
func TestPaceHoldsAnyMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(10, 1000))
		var ids []postern.MessageID
		for _, to := range numbers(35) {
			ids = append(ids, w.send(d, to))
		}
		for minute, want := range []int{10, 20, 30, 35} {
			w.settle(time.Second)
			if got := w.count(ids, postern.Sent); got != want {
				t.Errorf("%d sent after %d minutes, want %d", got, minute, want)
			}
			w.settle(59*time.Second - time.Millisecond)
			if got := w.count(ids, postern.Sent); got != want {
				t.Errorf("%d sent within minute %d, want %d", got, minute+1, want)
			}
			w.settle(time.Millisecond)
		}
	})
}

func TestNewChatsHaveAPaceOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		known := numbers(1)[0]
		w.send(d, known)
		w.settle(2 * time.Minute)
		w.change(d, paced(20, 2))
		var fresh, old []postern.MessageID
		for _, to := range numbers(8)[1:] {
			fresh = append(fresh, w.send(d, to))
		}
		for range 5 {
			old = append(old, w.send(d, known))
		}
		second := w.send(d, numbers(2)[1]) // to a chat that the first message opened
		w.settle(time.Second)
		if got := w.count(fresh, postern.Sent); got != 2 {
			t.Errorf("%d new chats in the first minute, want 2", got)
		}
		if got := w.count(old, postern.Sent); got != 5 {
			t.Errorf("%d messages to a known chat went past the waiting new ones, want 5", got)
		}
		w.wantMessage(second, postern.Delivered)
		w.settle(time.Minute)
		if got := w.count(fresh, postern.Sent); got != 4 {
			t.Errorf("%d new chats after a minute, want 4", got)
		}
	})
}

// Nobody starts a group by writing to it, so its messages do not wait behind those that start chats.
func TestGroupsDoNotWaitForThePaceOfNewChats(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(20, 1))
		var fresh []postern.MessageID
		for _, to := range numbers(3) {
			fresh = append(fresh, w.send(d, to))
		}
		toGroup := w.send(d, "group:120363041234567890")
		w.settle(time.Second)
		w.wantMessage(toGroup, postern.Delivered)
		if got := w.count(fresh, postern.Sent); got != 1 {
			t.Errorf("%d new chats in the first minute, want 1", got)
		}
	})
}

// A call does not count as a message: the first message to somebody who has only called starts a chat.
func TestCallIsNoMessageForThePace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(20, 1))
		_, err := w.net.Inbound(account, network.Inbound{
			Sender: customer, ChatID: customer, From: customer,
			Content: postern.Content{Kind: postern.KindCall},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		first, second := w.send(d, numbers(1)[0]), w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(first, postern.Delivered)
		w.wantMessage(second, postern.Queued)
		w.settle(time.Minute)
		w.wantMessage(second, postern.Delivered)
	})
}

// What waits for the pace of new chats is sent when the person writes.
func TestAnAnswerEndsTheWaitForThePace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(20, 1))
		first, second := w.send(d, numbers(1)[0]), w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(first, postern.Delivered)
		w.wantMessage(second, postern.Queued)
		if _, err := w.net.Send(t.Context(), account, customer, "hello"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantMessage(second, postern.Delivered)
	})
}

// Each time that the network keeps an account from starting chats, its pace for new chats is halved. A day without that
// doubles it.
func TestPaceForNewChatsFollowsTheNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(1000, 4))
		set := func(allowed bool) {
			t.Helper()
			if err := w.g.Sessions.SetNewChats(t.Context(), d.ID, postern.NewChats{Allowed: allowed}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			set(false)
			set(false) // is known already
			set(true)
		}
		fresh := numbers(100)
		wants := func(slowed postern.Slowdown, within time.Duration) {
			t.Helper()
			if got := w.device(d.ID).NewChats.Slowed; got != slowed {
				t.Errorf("the pace is halved %d times, want %d", got, slowed)
			}
			var ids []postern.MessageID
			for range 8 {
				ids = append(ids, w.send(d, fresh[0]))
				fresh = fresh[1:]
			}
			w.settle(within - time.Second)
			if got := w.count(ids, postern.Sent); got != 4 {
				t.Errorf("%d new chats in the first %s, want 4", got, within)
			}
			w.settle(within)
			if got := w.count(ids, postern.Sent); got != 8 {
				t.Errorf("%d new chats in twice %s, want 8", got, within)
			}
		}
		wants(2, 4*time.Minute)
		for _, slowed := range []postern.Slowdown{1, 0, 0} {
			w.absent(24 * time.Hour)
			w.settle(maintenanceInterval)
			wants(slowed, time.Minute<<slowed)
		}
	})
}

func TestPaceNeverHoldsUpAReply(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(1, 1))
		var held []postern.MessageID
		for _, to := range numbers(100) {
			held = append(held, w.send(d, to))
		}
		w.settle(time.Second)
		if _, err := w.net.Send(t.Context(), account, customer, "hello?"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		var replies []postern.MessageID
		for range 5 {
			replies = append(replies, w.send(d, customer))
		}
		w.settle(time.Second)
		if got := w.count(replies, postern.Sent); got != 5 {
			t.Errorf("%d of 5 replies were sent", got)
		}
		if got := w.count(held, postern.Sent); got != 1 {
			t.Errorf("%d others were sent, want 1", got)
		}
		w.settle(2 * time.Hour) // the others are sent, one a minute
		w.absent(22 * time.Hour)
		late := w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(late, postern.Delivered) // the window is free again
		late = w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(late, postern.Queued)
		w.change(d, gateway.DeviceChange{Pace: gateway.Change[gateway.PaceChange]{Given: true}})
		w.settle(time.Second)
		w.wantMessage(late, postern.Delivered) // the operator of this server has no default
	})
}

// TestPaceNeverHoldsUpARepetition of a message that may have left: older messages
// that the pace holds, more than are looked at together, are not before it.
func TestPaceNeverHoldsUpARepetition(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		known := numbers(1)[0]
		w.send(d, known)
		w.settle(time.Second)
		w.change(d, paced(1, 1))
		var held []postern.MessageID
		for range 2 * sendBatch {
			held = append(held, w.send(d, known))
		}
		begun := w.send(d, known)
		w.settle(time.Second)
		if err := w.db.Outbox.MarkSending(begun, 0)(); err != nil {
			t.Fatal(err)
		}
		w.stop() // after the first frame of it
		w.boot()
		w.settle(time.Second)
		w.wantMessage(begun, postern.Delivered)
		if got := w.count(held, postern.Sent); got != 2 {
			t.Errorf("%d of those that are held were sent, want one before the restart and one after", got)
		}
	})
}

func TestDirectChatsThatNobodyWantsAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		inbound := func() int {
			w.settle(time.Second)
			list, err := w.g.Messages.List(t.Context(), w.caller, gateway.MessageQuery{DeviceID: d.ID})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Data)
		}
		write := func() {
			if _, err := w.net.Send(t.Context(), account, customer, "hello"); err != nil {
				t.Fatal(err)
			}
			if _, err := w.net.Type(t.Context(), account, customer, "typed on the phone"); err != nil {
				t.Fatal(err)
			}
		}
		w.change(d, gateway.DeviceChange{Receive: given(gateway.ReceiveChange{Direct: given(false)})})
		write()
		if n := inbound(); n != 0 {
			t.Errorf("%d messages were stored", n)
		}
		m := w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(m, postern.Delivered) // receipts still count
		w.change(d, gateway.DeviceChange{Receive: gateway.Change[gateway.ReceiveChange]{Given: true}})
		write()
		if n := inbound(); n != 3 {
			t.Errorf("%d messages, want 3: what was dropped was taken and does not come again", n)
		}
		w.wantStatus(d, postern.Connected, "")
	})
}

func TestPaceOutlivesAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.change(d, paced(5, 1000))
		var ids []postern.MessageID
		for _, to := range numbers(30) {
			ids = append(ids, w.send(d, to))
		}
		w.settle(time.Second)
		for range 3 {
			if _, err := w.g.Devices.Pause(t.Context(), w.caller, d.ID); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Second)
			if _, err := w.g.Devices.Resume(t.Context(), w.caller, d.ID); err != nil {
				t.Fatal(err)
			}
			w.settle(2 * time.Second)
		}
		if got := w.count(ids, postern.Sent); got != 5 {
			t.Errorf("%d messages were sent in a minute, want 5", got)
		}
	})
}

// A pause ends with a pacer to remember; after a minute it delays nothing more.
func TestPaceOfAPausedDeviceIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.send(d, customer)
		w.settle(time.Second)
		if _, err := w.g.Devices.Pause(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		before := w.pacers()
		w.settle(time.Minute + maintenanceInterval)
		if after := w.pacers(); before != 1 || after != 0 {
			t.Errorf("%d paces are remembered after a pause, and %d after a minute; want 1 and 0", before, after)
		}
	})
}

func (w *world) pacers() int {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return len(w.engine.pacers)
}

func TestDeviceIsNotConnectedThroughAnotherProxy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		changed, err := w.db.Devices.Change(
			t.Context(),
			d.WorkspaceID,
			d.ID,
			func(d *postern.Device) ([]store.Act, error) { d.Proxy = []byte("unreadable"); return nil, nil },
		)
		if err != nil || changed.Status != postern.Connecting {
			t.Errorf("right after the change the device is %s (%v), want connecting", changed.Status, err)
		}
		w.settle(time.Minute)
		w.wantStatus(d, postern.Disconnected, "proxy-unreadable")
	})
}
