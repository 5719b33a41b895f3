// Package state reads and changes the app state of an account: settings and stars, which the account's
// phone and companions share through the vendor.
//
// whatsmeow would fetch all of it by itself, in goroutines whose panics end the process, and it stores
// that it has read something before it reports what. So it may not ([Guard]): a [State] fetches only
// what the gateway needs, and stores that it was read after the host has stored what it says.
package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/internal/network/whatsapp/keys"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

var (
	// ErrNoKey means that the phone has not shared the key of the app state yet. It was asked for it,
	// if the vendor named the key.
	ErrNoKey = errors.New("the phone has not shared the key of the app state")
	// ErrUnreadable means that what the vendor has is damaged, also when it is read from the beginning.
	ErrUnreadable = errors.New("the app state cannot be read")
	// ErrRefused means that the vendor has refused a change several times.
	ErrRefused = errors.New("the vendor refused a change of the app state")

	// ErrNotStored means that a change could not be stored. It is read again by the next Sync.
	ErrNotStored = errors.New("a change of the app state was not stored")

	errUnasked = errors.New("the app state is fetched by package state only")
)

// sendTries is how often a change is sent if it is refused, because others came first.
const sendTries = 3

// The collections that the gateway reads. Stars contains the salt of privacy tokens too, and Settings
// the name of the account. Stars has the muted chats, and Chats those that are archived or were marked as read.
const (
	Stars    = appstate.WAPatchRegularHigh
	Settings = appstate.WAPatchCriticalBlock
	Chats    = appstate.WAPatchRegularLow
)

// State is the app state of an account during one connection. Its methods may be called from any
// goroutine.
type State struct {
	cli    *whatsmeow.Client
	ring   *keys.Ring
	stored func(context.Context, []any) bool

	turn  chan struct{}                 // holds a value while somebody reads or changes the app state
	again map[appstate.WAPatchName]bool // collections that were read from the beginning; used in turn
}

// New makes the State of a connection, before it begins. stored stores what the account has set, in the events of
// whatsmeow, as a [postern.AddressBook] and as [postern.LabelChanges], and reports whether that is durable. It may get the
// same changes again.
func New(cli *whatsmeow.Client, ring *keys.Ring, stored func(context.Context, []any) bool) *State {
	cli.EmitAppStateEventsOnFullSync = true
	return &State{
		cli: cli, ring: ring, stored: stored,
		turn: make(chan struct{}, 1), again: make(map[appstate.WAPatchName]bool),
	}
}

// Guard keeps whatsmeow from fetching the app state by itself. It must come before the client is made.
func Guard(device *store.Device) { device.AppState = guarded{device.AppState} }

type guarded struct{ store.AppStateStore }

// GetAppStateVersion is what whatsmeow calls before it fetches or sends anything.
func (g guarded) GetAppStateVersion(ctx context.Context, name string) (version uint64, hash [128]byte, err error) {
	if !keys.InDraft(ctx) {
		return 0, hash, errUnasked
	}
	return g.AppStateStore.GetAppStateVersion(ctx, name)
}

// Sync reads what has changed in a collection, or all of it the first time. It calls begun when its
// turn has come: what changes later may not be read. When it returns nil, what it found is
// stored. Without a key it reads nothing.
func (s *State) Sync(ctx context.Context, name appstate.WAPatchName, begun func()) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.giveBack()
	begun()
	if has, err := s.hasKey(ctx); err != nil || !has {
		return err
	}
	return s.sync(ctx, name)
}

// Star is a change of a message's star.
type Star struct {
	Chat   types.JID
	Author types.JID // of the message, if another member of a group wrote it; otherwise Chat
	ID     string    // of the message on the network
	FromMe bool      // the account wrote the message
	On     bool
	At     time.Time // when it was asked for; with ID, it identifies the change
	Leave  func() error
}

// Star changes a star. Right before it is sent, Star calls Leave, and returns its error. A change that
// was sent before can be sent again, and has no further effect.
func (s *State) Star(ctx context.Context, star Star) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.giveBack()
	info := appstate.BuildStar(star.Chat, star.Author, star.ID, star.FromMe, star.On)
	info.Timestamp = star.At
	return s.submit(ctx, info, star.Leave)
}

// Change makes a change, and reads it again with what others have changed meanwhile. When it returns nil, that is
// stored.
func (s *State) Change(ctx context.Context, info appstate.PatchInfo) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.giveBack()
	if err := s.submit(ctx, info, func() error { return nil }); err != nil {
		return err
	}
	return s.sync(ctx, info.Type)
}

// submit sends a change, after it has read what is new in the collection, and again if others came first. The caller
// has its turn.
func (s *State) submit(ctx context.Context, info appstate.PatchInfo, mayLeave func() error) (err error) {
	for range sendTries {
		if err = s.sync(ctx, info.Type); err != nil {
			return err
		}
		if err = s.send(ctx, info, mayLeave); !errors.Is(err, whatsmeow.ErrAppStateUpdate) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// hasKey reports whether the phone has shared a key.
func (s *State) hasKey(ctx context.Context) (bool, error) {
	id, err := s.cli.Store.AppStateKeys.GetLatestAppStateSyncKeyID(ctx)
	return id != nil, err
}

// take waits for the caller's turn.
func (s *State) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *State) giveBack() { <-s.turn }
