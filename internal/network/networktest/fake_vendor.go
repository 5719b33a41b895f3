package networktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
)

// ErrNoSuch means that a test named a code, an account, a message or a fault
// that there is not.
var ErrNoSuch = errors.New("fake: no such thing")

// errPhoneRefused is what the phone says when the link was refused.
var errPhoneRefused = errors.New("fake: the link was refused")

// fakeLink is an open link attempt.
type fakeLink struct {
	number string // of the phone to enter the code on; "" for a code to scan
	scans  chan fakeScan
}

type fakeScan struct {
	number string
	wrong  bool       // it was not the code that is shown
	result chan error // what the phone says
}

// Link shows codes until a phone scanned one.
func (f *Fake) Link(ctx context.Context, host network.LinkHost, number string) error {
	life, codes := f.CodeLife, f.Codes
	if life == 0 {
		life = time.Minute
	}
	if codes == 0 {
		codes = 3
	}
	if number != "" {
		codes = 1
	}
	l := &fakeLink{number: number, scans: make(chan fakeScan)}
	for range codes {
		scan, err := f.showCode(ctx, host, l, life)
		if err != nil {
			return err
		}
		if scan.result != nil {
			return f.pair(ctx, host, scan)
		}
	}
	return &network.LinkError{Reason: "timeout", Expired: true}
}

// showCode shows one code, and returns the scan, or none when nobody came.
func (f *Fake) showCode(ctx context.Context, host network.Host, l *fakeLink, life time.Duration) (fakeScan, error) {
	f.mu.Lock()
	f.serial++
	code := fmt.Sprintf("fake:%d", f.serial)
	f.links[code] = l
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.links, code)
	}()
	if !stored(ctx, host, network.Code{Text: code, Expires: time.Now().Add(life)}) {
		return fakeScan{}, &network.LinkError{Reason: "store-unavailable"}
	}
	timer := time.NewTimer(life)
	defer timer.Stop()
	select {
	case scan := <-l.scans:
		return scan, nil
	case <-timer.C:
		return fakeScan{}, nil
	case <-ctx.Done():
		return fakeScan{}, &network.LinkError{Reason: "canceled"}
	}
}

// pair asks the host and keeps the account.
func (f *Fake) pair(ctx context.Context, host network.Host, scan fakeScan) error {
	if scan.wrong {
		scan.result <- ErrNoSuch
		return &network.LinkError{Reason: "wrong-code"}
	}
	f.mu.Lock()
	f.serial++
	name := fmt.Sprintf("%s:%d", scan.number, f.serial)
	f.mu.Unlock()
	if !stored(ctx, host, network.Scanned{Account: name, Number: scan.number}) {
		scan.result <- errPhoneRefused
		return &network.LinkError{Reason: "refused"}
	}
	f.mu.Lock()
	f.accounts[name] = &fakeAccount{
		name: name, number: scan.number, kept: true, recipients: make(map[string]string), armed: make(map[Fault]bool),
	}
	f.mu.Unlock()
	scan.result <- nil
	if !stored(ctx, host, network.Paired{Account: name, Number: scan.number}) {
		f.forget(name)
		return &network.LinkError{Reason: "store-unavailable"}
	}
	return nil
}

// Scan lets the phone of a number scan a code, and waits for the answer.
func (f *Fake) Scan(ctx context.Context, code, number string) error {
	f.mu.Lock()
	l := f.links[code]
	f.mu.Unlock()
	return l.take(ctx, fakeScan{number: number, result: make(chan error, 1)})
}

// EnterCode lets the owner of a number enter a code on the phone.
func (f *Fake) EnterCode(ctx context.Context, code, number string) error {
	f.mu.Lock()
	l, wrong := f.links[code], false
	for _, other := range f.links {
		if l == nil && other.number == number {
			l, wrong = other, true
		}
	}
	f.mu.Unlock()
	return l.take(ctx, fakeScan{number: number, wrong: wrong, result: make(chan error, 1)})
}

// take hands what a phone did to the attempt.
func (l *fakeLink) take(ctx context.Context, scan fakeScan) error {
	if l == nil {
		return ErrNoSuch
	}
	select {
	case l.scans <- scan:
	case <-ctx.Done():
		return fmt.Errorf("fake: %w", ctx.Err())
	}
	select {
	case err := <-scan.result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("fake: %w", ctx.Err())
	}
}

// Send lets a contact write to an account.
func (f *Fake) Send(_ context.Context, account, from, body string) (string, error) {
	return f.Inbound(account, network.Inbound{
		Sender: from, ChatID: from, From: from, FromName: "Phone " + from, Content: postern.Text(body),
	})
}

// Inbound lets any message reach an account. A missing NetworkID or At is filled in.
func (f *Fake) Inbound(account string, m network.Inbound) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.companion(account)
	if a == nil {
		return "", ErrNoSuch
	}
	if m.NetworkID == "" {
		m.NetworkID = f.newID()
	}
	if m.At.IsZero() {
		m.At = time.Now().UTC()
	}
	a.deliver(m)
	return m.NetworkID, nil
}

// Type lets the owner of an account write on the phone.
func (f *Fake) Type(_ context.Context, account, to, body string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.companion(account)
	if a == nil {
		return "", ErrNoSuch
	}
	id, at := f.newID(), time.Now().UTC()
	f.show(to, Shown{ID: id, Body: body, At: at})
	a.deliver(network.Echo{NetworkID: id, ChatID: to, To: to, Content: postern.Text(body), At: at})
	return id, nil
}

// Receipt lets the recipient of a message confirm it.
func (f *Fake) Receipt(_ context.Context, account, networkID string, status postern.MessageStatus) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.companion(account)
	if a == nil || a.recipients[networkID] == "" {
		return ErrNoSuch
	}
	a.deliver(network.Receipt{
		NetworkIDs: []string{networkID}, Chats: []string{a.recipients[networkID]}, Status: status, At: time.Now().UTC(),
	})
	return nil
}

// Answer scripts what the next sends of an account get, in turn; nil is success.
func (f *Fake) Answer(account string, errs ...error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.companion(account)
	if a == nil {
		return ErrNoSuch
	}
	a.answers = append(a.answers, errs...)
	return nil
}

// Fault makes something go wrong for an account.
func (f *Fake) Fault(_ context.Context, account string, fault Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.companion(account)
	if a == nil {
		return ErrNoSuch
	}
	switch fault {
	case FaultDrop:
		a.cut(&network.Ended{Status: postern.Disconnected, Reason: "socket-closed"})
	case FaultConflict:
		a.cut(&network.Ended{Status: postern.Conflict, Reason: "replaced"})
	case FaultLogout:
		a.lose(&network.Ended{Status: postern.LoggedOut, Reason: "device-removed"})
	case FaultBan:
		a.lose(&network.Ended{Status: postern.Banned, Reason: "banned"})
	case FaultRestrict:
		a.lose(&network.Ended{
			Status: postern.Restricted, Reason: "temporary-ban",
			Until: time.Now().Add(time.Minute),
		})
	case FaultDropBeforeAck:
		a.dropAck = true
	case FaultRefuse:
		a.refused = true
	case FaultUpload, FaultMedia, FaultMediaGone, FaultMediaSilent:
		a.armed[fault] = true
	case FaultMediaExpired:
		f.expire(a.number)
	default:
		return ErrNoSuch
	}
	return nil
}

// lose ends the connection and refuses the next ones.
func (a *fakeAccount) lose(end *network.Ended) {
	a.gone = end
	a.cut(end)
}

// Shown is what a phone shows.
func (f *Fake) Shown(number string) []Shown {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.shown[number])
}

// show puts a message on a phone, which knows messages by their id.
func (f *Fake) show(number string, m Shown) {
	same := func(other Shown) bool { return other.ID == m.ID }
	if !slices.ContainsFunc(f.shown[number], same) {
		f.shown[number] = append(f.shown[number], m)
	}
}

// companion finds the companion that was linked to a number last.
func (f *Fake) companion(number string) *fakeAccount {
	var last *fakeAccount
	for _, a := range f.accounts {
		if a.number == number &&
			(last == nil || len(a.name) > len(last.name) || len(a.name) == len(last.name) && a.name > last.name) {
			last = a
		}
	}
	return last
}

func (f *Fake) newID() string {
	f.serial++
	return fmt.Sprintf("FAKE%08d", f.serial)
}
