package whatsapp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"
	"postern/vendorsim"
)

// starOf is a change of the star of a message that the account has sent to the friend.
func starOf(id string, on bool) network.Outbound {
	return network.Outbound{
		NetworkID: postern.NewNetworkID(), ChatID: friendNumber, Content: postern.StarOf(on), At: time.Now().UTC(),
		Target: &network.Quote{NetworkID: id, FromMe: true},
	}
}

// sent sends a message to the friend.
func sent(t *testing.T, c *networktest.Connection, id string) string {
	t.Helper()
	if _, err := c.Send(t.Context(), outbound(id, friendNumber, "hello")); err != nil {
		t.Fatal(err)
	}
	return id
}

func about(id string, on bool) func(network.Starred) bool {
	return func(s network.Starred) bool { return s.About == id && s.On == on }
}

// shows waits until the account's phone shows a star, or none.
func (w world) shows(t *testing.T, id string, on bool) {
	t.Helper()
	for {
		changed := w.vendor.Watch()
		if m, err := w.vendor.ShownMessage(ownNumber, id); err == nil && m.Starred == on {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the phone does not show the star: %v", on)
		}
	}
}

func TestStarsReachThePhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t)
	id := sent(t, c, "3EB000000000000000A0")
	one := starOf(id, true)
	for range 2 { // a repetition has no other effect
		if _, err := c.Send(t.Context(), one); err != nil {
			t.Fatal("star:", err)
		}
		w.shows(t, id, true)
	}
	if _, err := c.Send(t.Context(), starOf(id, false)); err != nil {
		t.Fatal(err)
	}
	w.shows(t, id, false)
	if err := w.vendor.Star(t.Context(), ownNumber, id, true); err != nil {
		t.Fatal(err)
	}
	networktest.Wait(t, c.Host, 1, func(s network.Starred) bool { return s.About == id && s.On && !s.At.Equal(at(one)) })
	own := networktest.All(c.Host, func(s network.Starred) bool { return s.At.Equal(at(one)) })
	if len(own) == 0 || own[0].ChatID != friendNumber || !own[0].On {
		t.Errorf("own stars are reported as %+v, want those that were sent", own)
	}
}

// A star that may not leave is not sent, and the mark that it may comes before it is.
func TestStarsMayNotLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t)
	id := sent(t, c, "3EB000000000000000A6")
	canceled, asked := errors.New("canceled"), 0
	star := starOf(id, true)
	star.Leave = func() error { return canceled }
	if _, err := c.Send(t.Context(), star); !errors.Is(err, canceled) {
		t.Errorf("star = %v, want the error of Leave", err)
	}
	star = starOf(id, false)
	star.Leave = func() error {
		asked++
		if m, err := w.vendor.ShownMessage(ownNumber, id); err != nil || m.Starred {
			t.Errorf("the phone shows %+v, %v", m, err)
		}
		return nil
	}
	if _, err := c.Send(t.Context(), star); err != nil || asked == 0 {
		t.Errorf("star = %v after %d calls of Leave", err, asked)
	}
}

// at is the time of an action as it is reported.
func at(m network.Outbound) time.Time { return m.At.Truncate(time.Millisecond) }

// A star that the host does not store ends the connection, and is reported again, although the vendor's
// notice was acknowledged.
func TestStarsThatAreNotStoredComeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	id := sent(t, c, "3EB000000000000000A1")
	c.Host.Rule(func(u network.Update) error {
		if _, ok := u.(network.Starred); ok {
			return networktest.ErrRefused
		}
		return nil
	})
	if err := w.vendor.Star(t.Context(), ownNumber, id, true); err != nil {
		t.Fatal(err)
	}
	c.EndedAs(t, postern.Disconnected, "store-unavailable")
	c.Host.Rule(nil)
	c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
	networktest.Wait(t, c.Host, 1, about(id, true))
}

// A companion without the key of the app state asks its phone for it, gives up after some tries, and
// can star when the phone has shared it.
func TestStarsNeedTheKeyOfThePhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := w.vendor.WithholdStateKeys(ownNumber); err != nil {
		t.Fatal(err)
	}
	c := w.live(t, ownNumber)
	id := sent(t, c, "3EB000000000000000A2")
	star := starOf(id, true)
	for i := range starTries {
		_, err := c.Send(t.Context(), star)
		var rejected *network.Rejected
		if last := i == starTries-1; errors.As(err, &rejected) != last || !last && !errors.Is(err, state.ErrNoKey) {
			t.Fatalf("try %d: %v", i, err)
		}
		if rejected != nil && (rejected.Code != postern.EncryptionFailed || !strings.Contains(rejected.Detail, "key")) {
			t.Errorf("the refusal is %+v", rejected)
		}
	}
	if err := w.vendor.Star(t.Context(), ownNumber, id, true); err != nil {
		t.Fatal(err)
	}
	if got := networktest.All(c.Host, about(id, true)); len(got) != 0 {
		t.Errorf("stars are read without a key: %+v", got)
	}
	if err := w.vendor.ShareStateKeys(t.Context(), ownNumber); err != nil {
		t.Fatal(err)
	}
	networktest.Wait(t, c.Host, 1, about(id, true))
	if _, err := c.Send(t.Context(), starOf(id, false)); err != nil {
		t.Fatal(err)
	}
	w.shows(t, id, false)
}

// The phone shares its key also when a companion asks for it.
func TestThePhoneIsAskedForItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := w.vendor.WithholdStateKeys(ownNumber); err != nil {
		t.Fatal(err)
	}
	c := w.live(t, ownNumber)
	id := sent(t, c, "3EB000000000000000A3")
	if err := w.vendor.ShareStateKeysOnRequest(ownNumber); err != nil {
		t.Fatal(err)
	}
	if err := w.vendor.Star(t.Context(), ownNumber, id, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), starOf(id, false)); !errors.Is(err, state.ErrNoKey) {
		t.Fatalf("star without a key: %v", err)
	}
	networktest.Wait(t, c.Host, 1, about(id, true))
}

// Damaged app state is not believed, does not end the process, and is not asked for in a loop: once as
// it is, and once from the beginning.
func TestDamagedAppStateIsRefused(t *testing.T) {
	t.Parallel()
	for damage := range 5 {
		t.Run(fmt.Sprint(damage), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c := w.live(t, ownNumber)
			w.settled(t)
			id := sent(t, c, "3EB000000000000000A4")
			if _, err := c.Send(t.Context(), starOf(id, true)); err != nil {
				t.Fatal(err)
			}
			damaged := vendorsim.Fault(fmt.Sprintf("%s:%d", vendorsim.FaultStateDamaged, damage))
			for range 100 {
				if err := w.vendor.Fault(t.Context(), ownNumber, damaged); err != nil {
					t.Fatal(err)
				}
			}
			before := w.vendor.StateQueries(ownNumber)
			star := starOf(id, false)
			for i := range starTries {
				_, err := c.Send(t.Context(), star)
				var rejected *network.Rejected
				if last := i == starTries-1; errors.As(err, &rejected) != last || !last && !errors.Is(err, state.ErrUnreadable) {
					t.Fatalf("try %d: %v", i, err)
				}
			}
			const late = 2 // queries that were announced before may come during the tries
			if n := w.vendor.StateQueries(ownNumber) - before; n <= starTries || n > starTries+1+late {
				t.Errorf("%d queries for %d tries, want one more", n, starTries)
			}
			w.shows(t, id, true)
			if got := networktest.All(c.Host, about(id, false)); len(got) != 0 {
				t.Errorf("damaged stars are reported: %+v", got)
			}
		})
	}
}

// whatsmeow fetches nothing by itself, and the gateway only what it reads.
func TestOnlyWhatIsReadIsFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	id := sent(t, c, "3EB000000000000000A5")
	if err := w.vendor.Star(t.Context(), ownNumber, id, true); err != nil {
		t.Fatal(err)
	}
	networktest.Wait(t, c.Host, 1, about(id, true))
	// Each of five collections is read when the key comes, four of them when the session connects, and
	// one after the star, which the vendor may announce while it is read.
	const most = 5 + 4 + 2
	if n := w.vendor.StateQueries(ownNumber); n > most {
		t.Errorf("%d queries after the link and a star, want at most %d", n, most)
	}
}
