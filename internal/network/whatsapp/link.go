package whatsapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/keys"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// Link shows codes to the host until a phone has scanned one, or one code until
// it is entered on the phone of a number.
func (d *Driver) Link(ctx context.Context, host network.LinkHost, number string) error {
	prefix := d.prefix(host.Space())
	a := &attempt{
		driver: d, number: number, prefix: prefix, conn: d.connect(d.keys.Fresh(prefix), host), pace: d.pace,
		owner: host, codes: make(chan []string, 1), passkey: make(chan struct{}), scanned: make(chan struct{}),
		paired: make(chan struct{}), restart: make(chan struct{}, 1), compare: make(chan *events.PairPasskeyConfirmation, 1),
	}
	a.cli.PrePairCallback = a.accept
	a.onSent, a.onReceived = a.sawBundle, a.sawAnswer
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { a.cancel(end) })()
	ended := a.run(life, a.handle, a.watch)
	if ring, ok := a.ring(); ok {
		ring.Close(context.WithoutCancel(ctx))
	}
	if a.wasStored() {
		return nil
	}
	a.discard(ctx)
	switch {
	case ctx.Err() != nil || ended == nil:
		return &network.LinkError{Reason: "canceled"}
	case a.failure != nil:
		return a.failure
	default:
		return &network.LinkError{Reason: ended.Reason}
	}
}

// attempt is one Link.
type attempt struct {
	*conn
	driver *Driver
	owner  network.LinkHost
	pace   pace
	number string // of the phone on which the code is entered; "" shows QR codes
	prefix string // of the account's name

	codes   chan []string                        // one batch of codes
	passkey chan struct{}                        // closed when the vendor asked for a passkey
	compare chan *events.PairPasskeyConfirmation // readable when the vendor has accepted the passkey
	scanned chan struct{}                        // closed when the host accepted the phone that scanned
	paired  chan struct{}                        // closed when the host stored the link, or could not
	restart chan struct{}                        // readable when the vendor wants the companion to connect again
	scan    sync.Once
	asked   sync.Once

	// The fields below are guarded by conn.mu.
	account  string // its name; "" before a phone has scanned
	canceled bool   // no phone is accepted any more
	stored   bool
	bundle   string // id of the stanza sent after a code was entered
	failure  *network.LinkError
}

// handle handles one event of whatsmeow. The new keys are not used before the
// account is opened, so a failure only ends the attempt.
func (a *attempt) handle(ctx context.Context, evt any) bool {
	switch evt := evt.(type) {
	case *events.QR:
		select {
		case a.codes <- evt.Codes:
		default: // the vendor sends only one batch per connection
		}
	case *events.PairSuccess:
		a.store(ctx, evt)
	case *events.PairError:
		a.fail("pairing-failed", false) // unless accept has failed it already
	case *events.PairPasskeyRequest:
		a.askPasskey(ctx, evt)
	case *events.PairPasskeyConfirmation:
		select {
		case a.compare <- evt:
		default: // the vendor continues an attempt once
		}
	case *events.PairPasskeyError:
		a.fail("pairing-failed", false)
	case *events.ManualLoginReconnect: // may come before PairSuccess
		select {
		case a.restart <- struct{}{}:
		default:
		}
	case *events.Disconnected:
		a.lost()
	}
	return true
}

// fail ends the attempt; only the first failure counts.
func (a *attempt) fail(reason string, expired bool) {
	a.mu.Lock()
	if a.failure == nil && !a.stored {
		a.failure = &network.LinkError{Reason: reason, Expired: expired}
	}
	a.mu.Unlock()
	a.end(disconnected(reason))
}

// accept asks the host whether the account that scanned may be linked; if not,
// whatsmeow tells the phone. Old keys of an account with the same name are
// removed, because they would be mistaken for the new ones.
func (a *attempt) accept(jid types.JID, _, _ string) (accepted bool) {
	ctx := a.cli.BackgroundEventCtx
	first := false
	a.scan.Do(func() { first = true })
	if !first || !isDigits(jid.User) || !a.calls.Enter() {
		return false
	}
	defer a.calls.Leave()
	defer func() {
		if recover() != nil || !accepted {
			accepted = false
			a.setFailure("refused") // whatsmeow's PairError ends the attempt
		}
	}()
	account := a.prefix + jid.String()
	if err := a.update(ctx, network.Scanned{Account: account, Number: "+" + jid.User}); err != nil {
		return false
	}
	if err := a.driver.keys.Forget(ctx, account); err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.canceled {
		return false
	}
	a.account = account
	close(a.scanned)
	return true
}

// cancel ends the attempt. If a phone was accepted, the exchange with it comes to its end first, because the phone may
// list the companion by then, and nothing else could tell.
func (a *attempt) cancel(end context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.canceled = true; a.account == "" {
		end()
	}
}

// setFailure sets why the attempt fails, before the connection ends.
func (a *attempt) setFailure(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure == nil {
		a.failure = &network.LinkError{Reason: reason}
	}
}

// store reports the link once its keys are durable.
func (a *attempt) store(ctx context.Context, evt *events.PairSuccess) {
	if ring, ok := a.ring(); !ok || ring.Flush(ctx) != nil {
		a.fail("store-unavailable", false)
		return
	}
	paired := network.Paired{
		Account: a.prefix + evt.ID.String(), Number: "+" + evt.ID.User, DisplayName: content.Name(evt.BusinessName),
	}
	if a.stores(ctx, paired) {
		a.mu.Lock()
		a.stored = true
		a.mu.Unlock()
	} else {
		a.setFailure("store-unavailable")
	}
	close(a.paired)
}

// ring returns the keys of the account, after a phone has scanned.
func (a *attempt) ring() (*keys.Ring, bool) { return keys.RingOf(a.cli.Store) }

func (a *attempt) wasStored() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored
}

// discard removes the companion of a link that failed from the phone, which may have been told that it is linked, and
// then its keys.
func (a *attempt) discard(ctx context.Context) {
	if a.account == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := a.leave(ctx); err != nil {
		a.log.WarnContext(ctx, "remove the companion of a failed link; the phone may list it", "error", err)
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	if err := a.driver.keys.Forget(ctx, a.account); err != nil {
		a.log.ErrorContext(ctx, "remove the keys of a failed link", "error", err)
	}
}

// leave removes the companion from the phone. Without its keys, nothing but the phone could remove it.
func (a *attempt) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	s, err := a.driver.Open(ctx, a.account)
	if errors.Is(err, network.ErrUnknownAccount) {
		return nil // the attempt failed before its keys were stored, and so before the phone was told
	}
	if err != nil {
		return err
	}
	return network.Leave(ctx, s, a.owner)
}

// watch shows the codes until a phone has scanned one, and then waits until the
// vendor wants the companion to connect again.
func (a *attempt) watch(ctx context.Context) {
	silence := time.NewTimer(a.pace.silence)
	defer silence.Stop()
	select {
	case <-ctx.Done():
	case <-silence.C:
		a.fail("not-receiving", false)
	case texts := <-a.codes:
		if a.number != "" {
			a.showPairing(ctx)
			return
		}
		a.show(ctx, texts)
	}
}

func (a *attempt) show(ctx context.Context, texts []string) {
	for i, text := range texts {
		shown := a.pace.nextCode
		if i == 0 {
			shown = a.pace.firstCode
		}
		if !a.showOne(ctx, text, shown) {
			return
		}
	}
	a.fail("timeout", true)
}

// showOne shows one code. It reports false if no further code is needed.
func (a *attempt) showOne(ctx context.Context, text string, shown time.Duration) bool {
	if !a.stores(ctx, network.Code{Text: text, Expires: time.Now().Add(shown)}) {
		a.fail("store-unavailable", false)
		return false
	}
	timer := time.NewTimer(shown)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-a.passkey:
		a.linkByPasskey(ctx)
		return false
	case <-a.scanned:
		a.settle(ctx)
		return false
	}
}

// settle waits until the pairing is stored, and then for the vendor's order to
// connect again: only then has the vendor completed the pairing.
func (a *attempt) settle(ctx context.Context) {
	timer := time.NewTimer(restartWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		a.fail("not-receiving", false)
		return
	case <-a.paired:
	}
	timer.Reset(restartWait)
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-a.restart:
	}
	a.end(disconnected("restart"))
}
