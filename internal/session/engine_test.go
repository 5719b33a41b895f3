package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/access"
	"postern/internal/blackbox"
	"postern/internal/gateway"
	"postern/internal/media/blob"
	"postern/internal/media/library"
	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

const (
	account  = "+15550001111"
	customer = "+15551234567"
)

// sharedLog is a log that a test reads while the engine writes it.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is an engine over the real store and a fake network, in a bubble of
// time: a day of waiting passes at once.
type world struct {
	t      *testing.T
	dir    string
	db     *store.Store
	g      *gateway.Gateway
	net    *networktest.Fake
	driver network.Driver
	left   blackbox.Left // of the process before the next boot
	caller access.Caller
	log    sharedLog
	engine *Engine // of the last boot
	stop   func()
}

func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	dir := migrated.Dir(t, "")
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: dir, net: networktest.NewFake()}
		w.driver = w.net
		w.boot()
		ws, err := w.g.Workspaces.Create(t.Context(), access.Operator(),
			gateway.NewWorkspace{
				Name: "acme",
				Plan: "growth",
			})
		if err != nil {
			t.Fatal(err)
		}
		if w.caller, err = w.g.Workspaces.Caller(t.Context(), access.Operator(), ws.ID); err != nil {
			t.Fatal(err)
		}
		defer func() { w.stop() }() // the one of the last boot
		test(t, w)
	})
}

func (w *world) boot() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	db, err := store.Open(w.t.Context(), store.Options{Dir: w.dir, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		w.t.Fatal(err)
	}
	blobs, err := blob.OpenDirectory(filepath.Join(w.dir, "media"))
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := library.Open(blobs, filepath.Join(w.dir, "transit"), db.Blobs)
	if err != nil {
		w.t.Fatal(err)
	}
	w.db, w.g = db, gateway.New(gateway.Options{
		DB: db, Box: box, Log: log, Library: files, CheckURL: func(string) error { return nil },
	})
	e := New(Options{DB: db, Gateway: w.g, Driver: w.driver, Log: log, Left: w.left, Library: files, Fetch: slowly})
	w.engine = e
	if err := e.Prepare(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := errors.Join(<-ended, db.Close()); err != nil {
			w.t.Error(err)
		}
	}
}

// settle lets everything happen that can happen now.
func (w *world) settle(d time.Duration) {
	time.Sleep(d) // the bubble's time
	synctest.Wait()
}

// absent stops the server, lets time pass and starts it again. A server that runs looks for work each second,
// which takes seconds of the test's time for a day.
func (w *world) absent(d time.Duration) {
	w.stop()
	w.settle(d)
	w.boot()
	w.settle(time.Second)
}

func (w *world) device(id postern.DeviceID) postern.Device {
	w.t.Helper()
	d, err := w.g.Devices.Get(w.t.Context(), w.caller, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) openLink() postern.Device {
	w.t.Helper()
	made, err := w.g.Devices.Create(w.t.Context(), w.caller, gateway.NewDevice{Name: "d"}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.g.Links.Open(w.t.Context(), w.caller, made.Value.ID, gateway.NewLink{}, nil); err != nil {
		w.t.Fatal(err)
	}
	w.settle(time.Second)
	return made.Value
}

func (w *world) link(d postern.Device) postern.Link {
	w.t.Helper()
	l, err := w.g.Links.Get(w.t.Context(), w.caller, d.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) linked() postern.Device {
	w.t.Helper()
	return w.linkedTo(account)
}

func (w *world) linkedTo(number string) postern.Device {
	w.t.Helper()
	d := w.openLink()
	if err := w.net.Scan(w.t.Context(), string(w.link(d).QR), number); err != nil {
		w.t.Fatal(err)
	}
	w.settle(time.Second)
	d = w.device(d.ID)
	if d.Status != postern.Connected || d.PhoneNumber != postern.Maybe(number) {
		w.t.Fatalf("linked device is %s (%s), number %q\n%s", d.Status, d.StatusReason, d.PhoneNumber, w.log.String())
	}
	return d
}

func (w *world) send(d postern.Device, to string) postern.MessageID {
	w.t.Helper()
	in := gateway.NewMessage{DeviceID: d.ID, To: to, Content: postern.Text("hi"), WhenDisconnected: "queue"}
	made, err := w.g.Messages.Send(w.t.Context(), w.caller, in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Value.ID
}

func (w *world) wantMessage(id postern.MessageID, want postern.MessageStatus) postern.Message {
	w.t.Helper()
	m, err := w.g.Messages.Get(w.t.Context(), w.caller, id)
	if err != nil || m.Status != want {
		w.t.Errorf("message is %s (%v), want %s", m.Status, err, want)
	}
	return m
}

// wantTimeline compares what happened to a message, with the outcomes of the attempts.
func (w *world) wantTimeline(id postern.MessageID, want string) {
	w.t.Helper()
	list, err := w.g.Messages.Timeline(w.t.Context(), w.caller, id, paging.Page{Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for i, e := range list.Data {
		if got = append(got, e.Type); e.Attempt != nil {
			got[i] += "-" + e.Attempt.Outcome
		}
	}
	if s := strings.Join(got, " "); s != want {
		w.t.Errorf("timeline = %s, want %s", s, want)
	}
}

func (w *world) wantStatus(d postern.Device, want postern.Status, reason string) {
	w.t.Helper()
	got := w.device(d.ID)
	if got.Status != want || reason != "" && string(got.StatusReason) != reason {
		w.t.Errorf("device is %s (%s), want %s (%s)", got.Status, got.StatusReason, want, reason)
	}
}

func (w *world) used() int {
	w.t.Helper()
	n, err := w.db.Usage.Messages(w.t.Context(), w.caller.Workspace(), store.MonthOf(postern.TimeOf(time.Now())))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) fault(f networktest.Fault) {
	w.t.Helper()
	if err := w.net.Fault(w.t.Context(), account, f); err != nil {
		w.t.Fatal(err)
	}
}

func TestCodesFollowEachOtherAndTheAttemptExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.openLink()
		first := w.link(d)
		w.settle(61 * time.Second)
		second := w.link(d)
		if first.QR == "" || second.QR == "" || first.QR == second.QR || second.QRExpiresAt <= first.QRExpiresAt {
			t.Errorf("codes %+v then %+v", first, second)
		}
		w.settle(3 * time.Minute)
		if l := w.link(d); l.Status != postern.LinkExpired || l.Reason != "timeout" || l.QR != "" {
			t.Errorf("link = %+v, want expired", l)
		}
		w.wantStatus(d, postern.Unlinked, "timeout")
	})
}

func TestLinkAttemptIsCanceled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.openLink()
		if err := w.g.Links.Cancel(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantStatus(d, postern.Unlinked, "canceled")
		if err := w.g.Links.Cancel(t.Context(), w.caller, d.ID); postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("canceling twice = %v", err)
		}
	})
}

func TestLinkAttemptSurvivesARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.openLink()
		w.stop()
		w.boot()
		w.settle(time.Second)
		if err := w.net.Scan(t.Context(), string(w.link(d).QR), account); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantStatus(d, postern.Connected, "")
	})
}

// crashing is a driver whose process dies once the keys are kept and before
// the gateway hears of it.
type crashing struct{ *networktest.Fake }

type deaf struct{ network.LinkHost }

func (h deaf) Update(ctx context.Context, u network.Update) error {
	if _, ok := u.(network.Paired); ok {
		return nil // nobody wrote it down
	}
	return h.LinkHost.Update(ctx, u)
}

func (c crashing) Link(ctx context.Context, host network.LinkHost, number string) error {
	if err := c.Fake.Link(ctx, deaf{host}, number); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestCrashBetweenKeysAndRowIsMended(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.stop()
		w.driver = crashing{w.net}
		w.boot()
		d := w.openLink()
		if err := w.net.Scan(t.Context(), string(w.link(d).QR), account); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantStatus(d, postern.Linking, "")
		w.stop()
		w.driver = w.net
		w.boot()
		w.settle(time.Second)
		w.wantStatus(d, postern.Connected, "")
		if l := w.link(d); l.Status != postern.LinkLinked {
			t.Errorf("link is %s, want linked", l.Status)
		}
	})
}

func TestUnknownOutcomeIsRepeatedUnderTheSameID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		lost := errors.New("no answer")
		if err := w.net.Answer(account, lost, lost); err != nil {
			t.Fatal(err)
		}
		first, second := w.send(d, customer), w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(first, postern.Sending)
		w.wantMessage(second, postern.Sending)
		third := w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(third, postern.Delivered) // those behind are not held up
		w.settle(time.Minute)
		m := w.wantMessage(first, postern.Delivered)
		w.wantMessage(second, postern.Delivered)
		ids := map[string]int{}
		for _, s := range w.net.Shown(customer) {
			ids[s.ID]++
		}
		if len(ids) != 3 || ids[m.NetworkID] != 1 {
			t.Errorf("the customer's phone shows %v", ids)
		}
		w.wantTimeline(first, "accepted queued attempt-unconfirmed attempt-sent sent delivered")
	})
}

// If the number is not on the network, an attempt before whose end is not known has reached nobody either.
func TestRepetitionToANumberThatIsNotOnTheNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		gone := &network.Rejected{Code: postern.RecipientNotFound, Detail: "the number is not on the network"}
		if err := w.net.Answer(account, errors.New("no answer"), gone); err != nil {
			t.Fatal(err)
		}
		id := w.send(d, customer)
		w.settle(time.Minute)
		if m := w.wantMessage(id, postern.Failed); m.Error == nil || m.Error.Code != postern.RecipientNotFound {
			t.Errorf("it failed with %+v", m.Error)
		}
	})
}

// A refusal of a repetition says nothing about the attempt before it, which a receipt may still confirm.
func TestRefusedRepetitionLeavesTheOutcomeUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		refused := &network.Rejected{Code: postern.NetworkRejected, Detail: "the network refused it"}
		if err := w.net.Answer(account, errors.New("no answer"), refused); err != nil {
			t.Fatal(err)
		}
		id := w.send(d, customer)
		w.settle(time.Minute)
		m := w.wantMessage(id, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.Unconfirmed || !strings.Contains(m.Error.Detail, refused.Detail) {
			t.Errorf("it failed with %+v", m.Error)
		}
		w.wantTimeline(id, "accepted queued attempt-unconfirmed attempt-refused failed")
		if err := w.net.Receipt(t.Context(), account, m.NetworkID, postern.Delivered); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantMessage(id, postern.Delivered)
	})
}

func TestAttemptWithoutAConnectionIsInTheTimeline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		if err := w.net.Answer(account, network.ErrNotConnected); err != nil {
			t.Fatal(err)
		}
		id := w.send(d, customer)
		w.settle(time.Minute)
		w.wantTimeline(id, "accepted queued attempt-not_connected attempt-sent sent delivered")
	})
}

// Until its next attempt, a message of which nothing was sent can be canceled.
func TestMessageIsCanceledAfterAnAttemptWithoutAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		if err := w.net.Answer(account, network.ErrNotConnected); err != nil {
			t.Fatal(err)
		}
		id := w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(id, postern.Sending)
		if _, err := w.g.Actions.Cancel(t.Context(), w.caller, id); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		w.wantMessage(id, postern.Canceled)
		if n := w.used(); n != 0 {
			t.Errorf("%d units are used after the message was canceled", n)
		}
	})
}

// An action whose outcome is unknown is repeated before the later actions in its chat, however many
// they are, and a message before the actions on it. Messages go on.
func TestActionsWaitForARepetition(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		lost := errors.New("no answer")
		react := func(id postern.MessageID, emoji string) {
			t.Helper()
			if _, err := w.g.Actions.React(t.Context(), w.caller, id, emoji); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.net.Answer(account, lost, nil, lost); err != nil {
			t.Fatal(err)
		}
		first := w.send(d, customer)
		w.settle(time.Second)
		second := w.send(d, customer)
		w.settle(time.Second)
		react(second, "👍")
		w.settle(time.Second)
		for range 2 * sendBatch {
			react(first, "🎉")
			react(second, "🙏")
		}
		react(second, "🚀")
		third := w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(third, postern.Delivered)
		w.settle(time.Hour)
		want := []string{
			w.wantMessage(second, postern.Delivered).NetworkID, w.wantMessage(third, postern.Delivered).NetworkID,
			w.wantMessage(first, postern.Delivered).NetworkID, "👍", "🎉", "🙏", "🚀",
		}
		var got []string // each text once
		for _, s := range w.net.Shown(customer) {
			if what := cmp.Or(map[string]string{"hi": s.ID}[s.Body], s.Body); !slices.Contains(got, what) {
				got = append(got, what)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the customer's phone shows %v, want %v", got, want)
		}
		m, err := w.g.Messages.Get(t.Context(), w.caller, second)
		if err != nil || len(m.State.Reactions) != 1 || m.State.Reactions[0].Emoji != "🚀" {
			t.Errorf("the second message shows %v, %v", m.State.Reactions, err)
		}
	})
}

// An action that waits for a repetition is sent when that one expires.
func TestActionsGoOnWhenARepetitionExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		first := w.send(d, customer)
		w.settle(time.Second)
		if err := w.net.Answer(account, slices.Repeat([]error{errors.New("no answer")}, 1000)...); err != nil {
			t.Fatal(err)
		}
		for _, emoji := range []string{"👍", "🎉"} {
			if _, err := w.g.Actions.React(t.Context(), w.caller, first, emoji); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Hour)
		}
		tried := func() int {
			found := regexp.MustCompile(`"message attempt".* message=\S+`).FindAllString(w.log.String(), -1)
			slices.Sort(found)
			return len(slices.Compact(found))
		}
		if n := tried(); n != 2 {
			t.Errorf("%d messages were tried, want 2: the later reaction waits for the other one", n)
		}
		w.absent(22 * time.Hour)
		w.settle(11 * time.Minute)
		if n := tried(); n != 3 {
			t.Errorf("%d messages were tried, want 3: the first reaction has expired", n)
		}
	})
}

func TestMessageThatIsNeverConfirmedEndsUnconfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		lost := errors.New("no answer")
		many := make([]error, 1000)
		for i := range many {
			many[i] = lost
		}
		if err := w.net.Answer(account, many...); err != nil {
			t.Fatal(err)
		}
		id := w.send(d, customer)
		w.settle(time.Hour)
		w.absent(22 * time.Hour)
		w.wantMessage(id, postern.Sending)
		w.settle(2 * time.Hour)
		m := w.wantMessage(id, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.Unconfirmed || w.used() != 1 {
			t.Errorf("error %+v, used %d, want UNCONFIRMED and no refund", m.Error, w.used())
		}
	})
}

func TestRefusalBeforeTheFirstFrameGivesTheUnitBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		id := w.send(d, networktest.NumberUnknown)
		w.settle(time.Second)
		if m := w.wantMessage(id, postern.Failed); m.Error == nil || m.Error.Code != postern.RecipientNotFound {
			t.Errorf("error = %+v", m.Error)
		}
		if w.used() != 0 {
			t.Errorf("used %d, want 0", w.used())
		}
		// After an attempt that may have arrived the unit is spent.
		rejected := &network.Rejected{Code: postern.RecipientNotFound}
		if err := w.net.Answer(account, errors.New("no answer"), rejected); err != nil {
			t.Fatal(err)
		}
		id = w.send(d, customer)
		w.settle(time.Minute)
		w.wantMessage(id, postern.Failed)
		if w.used() != 1 {
			t.Errorf("used %d, want 1", w.used())
		}
	})
}

func TestDropIsRetriedSoonAndTheQueueGoesOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultRefuse)
		w.fault(networktest.FaultDrop)
		w.settle(time.Millisecond)
		w.wantStatus(d, postern.Disconnected, "")
		id := w.send(d, customer)
		w.settle(10 * time.Second)
		w.wantStatus(d, postern.Connected, "")
		w.wantMessage(id, postern.Delivered)
	})
}

func TestRestrictionEndsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		id := w.send(d, customer)
		w.settle(time.Second)
		w.fault(networktest.FaultRestrict)
		w.settle(10 * time.Second)
		w.wantStatus(d, postern.Restricted, "")
		waiting := w.send(d, customer)
		w.settle(30 * time.Second)
		w.wantMessage(waiting, postern.Queued)
		w.settle(2 * time.Minute)
		w.wantStatus(d, postern.Connected, "")
		w.wantMessage(id, postern.Delivered)
		w.wantMessage(waiting, postern.Delivered)
	})
}

func TestLogOutFailsWhatWaitsAndFreesTheSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultRefuse)
		w.fault(networktest.FaultDrop)
		w.settle(time.Millisecond)
		id := w.send(d, customer)
		w.fault(networktest.FaultLogout)
		w.settle(time.Minute)
		w.wantStatus(d, postern.LoggedOut, "")
		m := w.wantMessage(id, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.DeviceLoggedOut || w.used() != 0 {
			t.Errorf("error %+v, used %d", m.Error, w.used())
		}
		if list, err := w.net.Accounts(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("keys of %v are kept (%v)", list, err)
		}
		if _, err := w.g.Links.Open(t.Context(), w.caller, d.ID, gateway.NewLink{}, nil); err != nil {
			t.Errorf("linking again: %v", err)
		}
	})
}

func TestConflictIsNotFought(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultConflict)
		w.settle(5 * time.Minute)
		w.wantStatus(d, postern.Conflict, "")
		w.settle(6 * time.Minute)
		w.wantStatus(d, postern.Connected, "")
	})
}

func TestUnlinkIsRepeatedUntilTheVendorHeardOfIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultRefuse)
		if _, err := w.g.Devices.Unlink(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Millisecond)
		w.wantStatus(d, postern.Unlinked, "unlinked")
		if list, _ := w.net.Accounts(t.Context()); len(list) != 1 {
			t.Errorf("the keys are gone before the vendor heard of it: %v", list)
		}
		w.settle(time.Minute)
		if list, _ := w.net.Accounts(t.Context()); len(list) != 0 {
			t.Errorf("keys of %v are kept", list)
		}
		if _, err := w.g.Links.Open(t.Context(), w.caller, d.ID, gateway.NewLink{}, nil); err != nil {
			t.Errorf("linking again: %v", err)
		}
	})
}

func TestDeletedDeviceIsUnlinkedAndPurged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.send(d, customer)
		w.settle(time.Second)
		if err := w.g.Devices.Delete(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		if _, err := w.db.Devices.ForEngine(t.Context(), d.ID); err == nil {
			t.Error("the device's row is still there")
		}
		if list, _ := w.net.Accounts(t.Context()); len(list) != 0 {
			t.Errorf("keys of %v are kept", list)
		}
		if list, err := w.db.Devices.AtWork(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("work is left: %v (%v)", list, err)
		}
	})
}

// absent is a driver whose vendor cannot be reached for a time.
type absent struct {
	*networktest.Fake
	until time.Time
}

func (a *absent) Open(ctx context.Context, account string) (network.Session, error) {
	if time.Now().Before(a.until) {
		return nil, errors.New("the vendor is away")
	}
	return a.Fake.Open(ctx, account)
}

// TestDeletedDeviceIsPurgedThoughTheVendorIsAway keeps the keys, and nothing
// else, until the vendor has heard of the unlink.
func TestDeletedDeviceIsPurgedThoughTheVendorIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		m := w.send(d, customer)
		w.settle(time.Second)
		w.stop()
		w.driver = &absent{Fake: w.net, until: time.Now().Add(time.Hour)}
		w.boot()
		began := time.Now()
		if err := w.g.Devices.Delete(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("deleting waited %v for the vendor, want 10s", took)
		}
		if _, err := w.g.Messages.Get(t.Context(), w.caller, m); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the message is still there: %v", err)
		}
		if list, _ := w.net.Accounts(t.Context()); len(list) != 1 {
			t.Errorf("keys of %v are kept, want those that can say goodbye", list)
		}
		w.settle(2 * time.Hour)
		if list, _ := w.net.Accounts(t.Context()); len(list) != 0 {
			t.Errorf("keys of %v are kept", list)
		}
		if _, err := w.db.Devices.ForEngine(t.Context(), d.ID); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the device's row is still there: %v", err)
		}
	})
}

// forgetful is a driver whose first Forget is interrupted: the account cannot be opened
// any more, but some of its keys are left.
type forgetful struct {
	*networktest.Fake
	calls int
}

func (f *forgetful) Forget(ctx context.Context, account string) error {
	if f.calls++; f.calls == 1 {
		return context.Canceled
	}
	return f.Fake.Forget(ctx, account)
}

func (f *forgetful) Open(ctx context.Context, account string) (network.Session, error) {
	if f.calls == 1 {
		return nil, network.ErrUnknownAccount
	}
	session, err := f.Fake.Open(ctx, account)
	return interrupted{session, f}, err
}

// interrupted is a session whose Unlink keeps the keys until the driver has removed them.
type interrupted struct {
	network.Session
	driver *forgetful
}

func (s interrupted) Unlink(ctx context.Context) error {
	return s.driver.Forget(ctx, account)
}

func TestInterruptedUnlinkIsFinished(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.stop()
		driver := &forgetful{Fake: w.net}
		w.driver = driver
		w.boot()
		w.settle(time.Minute)
		if _, err := w.g.Devices.Unlink(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		w.wantStatus(d, postern.Unlinked, "unlinked")
		if list, _ := w.net.Accounts(t.Context()); len(list) != 0 {
			t.Errorf("keys of %v are kept after %d calls of Forget", list, driver.calls)
		}
	})
}

// faulty is a driver that panics once.
type faulty struct {
	*networktest.Fake
	panics int
}

func (f *faulty) Open(ctx context.Context, account string) (network.Session, error) {
	if f.panics > 0 {
		f.panics--
		panic("boom")
	}
	return f.Fake.Open(ctx, account)
}

func TestPanicCostsOneAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.stop()
		w.driver = &faulty{w.net, 3}
		w.boot()
		w.settle(time.Minute)
		w.wantStatus(d, postern.Connected, "")
	})
}

func TestWhatArrivesWhileTheGatewayIsAwayComesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.stop()
		if _, err := w.net.Send(context.Background(), account, customer, "hello"); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.settle(time.Second)
		w.fault(networktest.FaultDrop)
		w.settle(time.Minute)
		list, err := w.g.Messages.List(t.Context(), w.caller, gateway.MessageQuery{DeviceID: d.ID})
		if err != nil || len(list.Data) != 1 || list.Data[0].Content.Text != "hello" || list.Data[0].From != customer {
			t.Errorf("messages = %+v (%v)", list.Data, err)
		}
	})
}

func TestWaitingMessageDoesNotKeepADeviceFromBeingUnlinked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultRefuse)
		w.fault(networktest.FaultDrop)
		w.settle(time.Millisecond)
		if _, err := w.net.Send(t.Context(), account, customer, "waiting"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.g.Devices.Unlink(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		if list, err := w.net.Accounts(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("keys of %v are kept (%v)", list, err)
		}
	})
}

func TestAttemptOpenedRightAfterACancelIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.openLink()
		for range 20 {
			if err := w.g.Links.Cancel(t.Context(), w.caller, d.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := w.g.Links.Open(t.Context(), w.caller, d.ID, gateway.NewLink{}, nil); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Second)
			if l := w.link(d); l.Status != postern.LinkPending || l.QR == "" {
				t.Fatalf("the new attempt = %+v", l)
			}
			w.settle(6 * time.Second) // so many in a minute are allowed
		}
	})
}

func TestDeleteIsNotUndoneByAnUnlinkThatEndsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		if _, err := w.g.Devices.Unlink(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.g.Devices.Delete(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		late := func() { // as a late engine would
			if err := w.g.Sessions.Unlinked(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
		late()
		w.settle(time.Minute)
		late()
		if _, err := w.db.Devices.ForEngine(t.Context(), d.ID); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the deleted device is still there: %v", err)
		}
	})
}

// TestAPageKeepsItsAttemptOpen beyond the codes of one connection, and no longer
// than the page.
func TestAPageKeepsItsAttemptOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.openLink() // three codes, a minute each
		if _, err := w.g.LinkPages.Open(t.Context(), w.caller, d.ID, nil); err != nil {
			t.Fatal(err)
		}
		w.settle(10 * time.Minute)
		l := w.link(d)
		if l.Status != postern.LinkPending || l.QR == "" {
			t.Fatalf("after ten minutes the attempt is %s (%s), code %q", l.Status, l.Reason, l.QR)
		}
		w.settle(6 * time.Minute)
		if l = w.link(d); l.Status != postern.LinkExpired || l.Reason != "timeout" {
			t.Errorf("after the page's time the attempt is %s (%s)", l.Status, l.Reason)
		}
		w.wantStatus(d, postern.Unlinked, "timeout")
	})
}

// TestTheGoodbyeIsSaidBeforeTheNextLink although the network was away when the
// device was unlinked.
func TestTheGoodbyeIsSaidBeforeTheNextLink(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		old, err := w.net.Accounts(t.Context())
		if err != nil || len(old) != 1 {
			t.Fatalf("accounts = %q, %v", old, err)
		}
		if err := w.net.Fault(t.Context(), account, networktest.FaultRefuse); err != nil {
			t.Fatal(err)
		}
		if _, err := w.g.Devices.Unlink(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.g.Links.Open(t.Context(), w.caller, d.ID, gateway.NewLink{}, nil); err != nil {
			t.Fatal(err)
		}
		w.settle(10 * time.Second)
		if left, err := w.net.Accounts(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("keys of %q stay, %v", left, err)
		}
		if err := w.net.Scan(t.Context(), string(w.link(d).QR), account); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantStatus(d, postern.Connected, "")
		if now, err := w.net.Accounts(t.Context()); err != nil || len(now) != 1 || now[0] == old[0] {
			t.Errorf("accounts = %q, %v, want a new one", now, err)
		}
	})
}

func TestResumedConflictTakesTheSessionBackAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultConflict)
		w.settle(time.Second)
		w.wantStatus(d, postern.Conflict, "replaced")
		if _, err := w.g.Devices.Resume(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(0)
		w.wantStatus(d, postern.Connected, "")
	})
}

// crashedIn is what a process leaves that crashed in the protocol library.
func crashedIn(stack string, entries ...blackbox.Entry) blackbox.Left {
	return blackbox.Left{Report: blackbox.Report("panic: x\n\ngoroutine 7 [running]:\n" + stack +
		"\n\ngoroutine 1 [select]:\nmain.main()\n"), Entries: entries}
}

func TestSuspectsAreThoseInTheCodeThatCrashed(t *testing.T) {
	t.Parallel()
	entries := []blackbox.Entry{
		{Subject: "dev_a", What: "frame"},
		{Subject: "dev_b", What: "message"},
		{Subject: "dev_a", What: "message"},
	}
	tests := []struct {
		name string
		left blackbox.Left
		want []postern.DeviceID
	}{
		{"a signal", blackbox.Left{Entries: entries}, nil},
		{"elsewhere", crashedIn("postern/internal/webhook.post(0x1)", entries...), nil},
		{"decoding", crashedIn("go.mau.fi/whatsmeow/binary.Unpack(0x1)\ngo.mau.fi/whatsmeow.(*Client).handleFrame(0x1)",
			entries...), []postern.DeviceID{"dev_a"}},
		{
			"a handler", crashedIn("go.mau.fi/whatsmeow.(*Client).handleNotification(0x1)", entries...),
			[]postern.DeviceID{"dev_a", "dev_b"},
		},
	}
	for _, tt := range tests {
		if got := suspects(tt.left); !slices.Equal(got, tt.want) {
			t.Errorf("%s: suspects %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCrashesAreForgottenAfterADay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		for n := range 2 * store.MaxCrashes {
			w.stop()
			time.Sleep(25 * time.Hour)
			w.left = crashedIn("go.mau.fi/whatsmeow.x()", blackbox.Entry{Subject: string(d.ID), What: "message"})
			w.boot()
			if w.settle(time.Minute); w.device(d.ID).Status != postern.Connected {
				t.Fatalf("after %d crashes in as many days: %s", n+1, w.device(d.ID).Status)
			}
		}
	})
}

func TestQuarantineLastsUntilItIsResumed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		for range store.MaxCrashes {
			w.stop()
			w.left = crashedIn("go.mau.fi/whatsmeow.x()", blackbox.Entry{Subject: string(d.ID), What: "message"})
			w.boot()
		}
		w.settle(time.Minute)
		w.wantStatus(d, postern.Disconnected, gateway.Quarantined)
		w.stop()
		w.left = blackbox.Left{}
		w.boot()
		w.settle(time.Minute)
		w.wantStatus(d, postern.Disconnected, gateway.Quarantined)
		if _, err := w.g.Devices.Resume(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(0)
		w.wantStatus(d, postern.Connected, "")
	})
}

// ordered is a driver that remembers when each account was opened.
type ordered struct {
	network.Driver
	mu   sync.Mutex
	list []opening
}

type opening struct {
	account string
	at      time.Time
}

func (o *ordered) Open(ctx context.Context, account string) (network.Session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, opening{account, time.Now()})
	return o.Driver.Open(ctx, account)
}

func TestSuspectsConnectLastAndOneAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var accounts []string
		var suspected []blackbox.Entry
		for _, number := range []string{"+15550001111", "+15550002222", "+15550003333"} {
			d, err := w.db.Devices.ForEngine(t.Context(), w.linkedTo(number).ID)
			if err != nil {
				t.Fatal(err)
			}
			accounts = append(accounts, d.Account)
			suspected = append(suspected, blackbox.Entry{Subject: string(d.ID), What: "message"})
		}
		w.stop()
		o := &ordered{Driver: w.net}
		w.driver, w.left = o, crashedIn("go.mau.fi/whatsmeow.x()", suspected[:2]...)
		w.boot()
		w.settle(time.Minute)
		if len(o.list) != 3 || o.list[0].account != accounts[2] || o.list[1].account != accounts[0] ||
			o.list[2].account != accounts[1] || o.list[2].at.Sub(o.list[1].at) < trialTime {
			t.Errorf("opened %v, want the third account first, and the others one at a time", o.list)
		}
	})
}

// A device was last seen when the network last sent it something.
func TestLastSeenFollowsTheTraffic(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.settle(time.Hour)
		sent := postern.TimeOf(time.Now())
		if _, err := w.net.Send(t.Context(), account, customer, "hello"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		if got := w.device(d.ID); got.LastSeenAt < sent || got.LastSeenAt > sent.Add(time.Minute) || got.ConnectedAt >= sent {
			t.Errorf("connected at %s, it was last seen at %s, and the message came at %s", got.ConnectedAt, got.LastSeenAt, sent)
		}
	})
}
