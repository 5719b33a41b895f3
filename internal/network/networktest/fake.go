package networktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
)

// Fake is a small working network in memory: a driver and its vendor in one.
// Phones and contacts act through the [Vendor] methods; the answers to sends can
// be scripted with [Fake.Answer].
type Fake struct {
	// CodeLife is how long a code is shown; 0 means a minute. Set it before use.
	CodeLife time.Duration
	// Codes is how many codes a link attempt shows; 0 means 3. Set it before use.
	Codes int

	mu       sync.Mutex // guards the fields below
	serial   int
	links    map[string]*fakeLink // by the code that is shown
	accounts map[string]*fakeAccount
	shown    map[string][]Shown
	files    map[string]*fakeFile        // by reference
	sent     map[string]network.Outbound // by network id
	order    []string                    // texts of messages, as they were sent
}

var (
	_ network.Driver = (*Fake)(nil)
	_ Vendor         = (*Fake)(nil)
)

// NewFake makes an empty network.
func NewFake() *Fake {
	return &Fake{
		links:    make(map[string]*fakeLink),
		accounts: make(map[string]*fakeAccount),
		shown:    make(map[string][]Shown),
		files:    make(map[string]*fakeFile),
		sent:     make(map[string]network.Outbound),
	}
}

// fakeAccount is a linked companion, as the driver and as the vendor know it.
type fakeAccount struct {
	name       string // the driver's
	number     string
	kept       bool              // the driver has its keys
	gone       *network.Ended    // why the vendor no longer serves it; nil if it does
	refused    bool              // the next connection is
	dropAck    bool              // the next message is delivered, not answered
	answers    []error           // to the next sends
	waiting    []network.Update  // not acknowledged yet
	recipients map[string]string // of sent messages, by network id
	armed      map[Fault]bool    // faults of the next transfer
	line       *fakeLine         // nil when not connected
}

// fakeLine is one connection.
type fakeLine struct {
	wake chan struct{} // something waits, or the line ended; one place
	end  *network.Ended
	live bool
}

func (l *fakeLine) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Open prepares a session for a linked account.
func (f *Fake) Open(_ context.Context, account string) (network.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.accounts[account]; a == nil || !a.kept {
		return nil, network.ErrUnknownAccount
	}
	return &fakeSession{f: f, account: account}, nil
}

// Forget removes the account's keys.
func (f *Fake) Forget(ctx context.Context, account string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.forget(account)
	return nil
}

func (f *Fake) forget(account string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.accounts[account]; a != nil {
		a.kept = false
	}
}

// Accounts lists the accounts whose keys are kept.
func (f *Fake) Accounts(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name, a := range f.accounts {
		if a.kept {
			names = append(names, name)
		}
	}
	return names, nil
}

// Groups returns the groups of an account: the fake network has none.
func (*fakeSession) Groups() network.Groups { return noGroups{} }

// fakeSession is an opened account.
type fakeSession struct {
	f       *Fake
	account string
}

// Run connects and delivers waiting updates until the connection ends.
func (s *fakeSession) Run(ctx context.Context, host network.Host) error {
	line, ended := s.connect()
	if ended != nil {
		return ended
	}
	defer s.hangUp(line)
	for {
		if end := s.serve(ctx, host, line); end != nil && ctx.Err() == nil {
			return end
		}
		select {
		case <-ctx.Done():
			return nil
		case <-line.wake:
		}
	}
}

func (s *fakeSession) connect() (*fakeLine, *network.Ended) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a := s.f.accounts[s.account]
	switch {
	case a == nil || !a.kept:
		return nil, &network.Ended{Status: postern.LoggedOut, Reason: "keys-gone"}
	case a.gone != nil && (a.gone.Until.IsZero() || time.Now().Before(a.gone.Until)):
		return nil, a.gone
	case a.refused:
		a.refused = false
		return nil, &network.Ended{Status: postern.Disconnected, Reason: "vendor-unavailable"}
	}
	a.gone = nil
	a.line = &fakeLine{wake: make(chan struct{}, 1)}
	return a.line, nil
}

func (s *fakeSession) hangUp(line *fakeLine) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if a := s.f.accounts[s.account]; a.line == line {
		a.line = nil
	}
}

// serve delivers all waiting updates, and returns why the line ended, or nil.
func (s *fakeSession) serve(ctx context.Context, host network.Host, line *fakeLine) *network.Ended {
	for {
		u, end := s.next(line)
		if end != nil || u == nil {
			return end
		}
		if !stored(ctx, host, u) {
			return &network.Ended{Status: postern.Disconnected, Reason: "store-unavailable"}
		}
		s.took(u)
	}
}

// next returns the next update for the host; Live comes when nothing else waits.
func (s *fakeSession) next(line *fakeLine) (network.Update, *network.Ended) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a := s.f.accounts[s.account]
	switch {
	case line.end != nil:
		return nil, line.end
	case len(a.waiting) > 0:
		return a.waiting[0], nil
	case !line.live:
		line.live = true
		return network.Live{DisplayName: "Phone " + a.number}, nil
	}
	return nil, nil
}

// took acknowledges an update.
func (s *fakeSession) took(u network.Update) {
	if _, isLive := u.(network.Live); isLive {
		return
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a := s.f.accounts[s.account]
	a.waiting = a.waiting[1:]
}

// stored gives one update to the host; a panic of the host is a refusal.
func stored(ctx context.Context, host network.Host, u network.Update) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	host.Processing(network.ProcessingFrame)
	defer host.Processing("")
	return host.Update(ctx, u) == nil
}

// errLost is the unknown outcome of a send whose connection was cut.
var errLost = errors.New("fake: the connection was lost before the answer")

// Send delivers m, or answers as scripted.
func (s *fakeSession) Send(ctx context.Context, m network.Outbound) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("fake: %w", err)
	}
	if err := m.MayLeave(); err != nil {
		return time.Time{}, err
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a := s.f.accounts[s.account]
	if !a.isLive() {
		return time.Time{}, network.ErrNotConnected
	}
	if m.ChatID == NumberUnknown {
		return time.Time{}, &network.Rejected{
			Code:   postern.RecipientNotFound,
			Detail: "the number is not on the network",
		}
	}
	if m.Content.Kind.HasMedia() && (m.File == nil || s.f.files[string(m.File.Ref)] == nil) {
		return time.Time{}, &network.Rejected{Code: postern.MediaUnusable, Detail: "the file is not on the network"}
	}
	if len(a.answers) > 0 {
		err := a.answers[0]
		a.answers = a.answers[1:]
		if err != nil {
			if _, refused := errors.AsType[*network.Rejected](err); !refused && !errors.Is(err, network.ErrNotConnected) {
				a.recipients[m.NetworkID] = m.ChatID // it may have arrived, and may be confirmed
			}
			return time.Time{}, err
		}
	}
	at := time.Now().UTC()
	s.f.show(m.ChatID, Shown{ID: m.NetworkID, Body: m.Content.Text, At: at})
	a.recipients[m.NetworkID] = m.ChatID
	s.f.sent[m.NetworkID] = m
	s.f.order = append(s.f.order, m.Content.Text)
	a.deliver(network.Receipt{
		NetworkIDs: []string{m.NetworkID}, Chats: []string{m.ChatID}, Status: postern.Delivered, At: at,
	})
	if a.dropAck {
		a.dropAck = false
		a.cut(&network.Ended{Status: postern.Disconnected, Reason: "socket-closed"})
		return time.Time{}, errLost
	}
	return at, nil
}

// Unlink removes the companion and its keys.
func (s *fakeSession) Unlink(context.Context) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a := s.f.accounts[s.account]
	if a.line == nil || !a.line.live {
		return network.ErrNotConnected
	}
	a.kept, a.gone = false, &network.Ended{Status: postern.LoggedOut, Reason: "unlinked"}
	a.cut(a.gone)
	return nil
}

// isLive reports whether the account can send.
func (a *fakeAccount) isLive() bool { return a.line != nil && a.line.live && a.line.end == nil }

// deliver queues an update for the host.
func (a *fakeAccount) deliver(u network.Update) {
	a.waiting = append(a.waiting, u)
	if a.line != nil {
		a.line.poke()
	}
}

// cut ends the connection.
func (a *fakeAccount) cut(end *network.Ended) {
	if a.line != nil {
		a.line.end = end
		a.line.poke()
	}
}
