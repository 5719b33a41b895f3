package state

import (
	"context"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/appstate"
)

// errPanicked means that whatsmeow panicked: it trusts the lengths of what it decrypts.
var errPanicked = errors.New("reading the app state panicked")

// sync reads what has changed in a collection. If that is damaged, it reads the collection from the
// beginning, once in the life of the connection. The caller has its turn.
func (s *State) sync(ctx context.Context, name appstate.WAPatchName) error {
	err := s.fetch(ctx, name, false)
	if isDamaged(err) && !s.again[name] {
		s.again[name] = true
		err = s.fetch(ctx, name, true)
	}
	switch {
	case isDamaged(err):
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	case errors.Is(err, appstate.ErrKeyNotFound):
		return fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	return err
}

func isDamaged(err error) bool {
	for _, damage := range []error{
		appstate.ErrMismatchingLTHash, appstate.ErrMismatchingPatchMAC, appstate.ErrMismatchingContentMAC,
		appstate.ErrMismatchingIndexMAC, errPanicked,
	} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}

// fetch reads a collection: what is new in it, or all of it. What it has read is stored last, so that
// it is read again after a crash.
func (s *State) fetch(ctx context.Context, name appstate.WAPatchName, whole bool) (err error) {
	defer recovered(&err)
	ctx, draft := s.ring.Draft(ctx)
	evts, err := s.changes(ctx, name, whole)
	if err != nil {
		return err
	}
	if !s.stored(ctx, evts) {
		return ErrNotStored
	}
	return draft.Save(ctx)
}

// changes returns what is new in a collection, or all of it, in the events of whatsmeow; of the address book, it is a
// [postern.AddressBook], and of the labels [postern.LabelChanges].
func (s *State) changes(ctx context.Context, name appstate.WAPatchName, whole bool) ([]any, error) {
	version, hash, err := s.cli.Store.AppState.GetAppStateVersion(ctx, string(name))
	if err != nil {
		return nil, err
	}
	switch name {
	case Contacts:
		book, err := s.book(ctx, version, hash, whole)
		return []any{book}, err
	case Labels:
		list, err := s.labels(ctx, version, hash, whole)
		return []any{list}, err
	}
	//nolint:staticcheck // marked as dangerous, but the safe one reports in other goroutines
	return s.cli.DangerousInternals().FetchAppState(ctx, name, whole || version == 0, false)
}

// send sends a change. What whatsmeow reads of its effect is not kept: it is read again with what
// follows it, because whatsmeow would report it in another goroutine.
func (s *State) send(ctx context.Context, info appstate.PatchInfo, mayLeave func() error) (err error) {
	defer recovered(&err)
	if has, err := s.hasKey(ctx); err != nil || !has {
		return errors.Join(err, ErrNoKey)
	}
	if err := mayLeave(); err != nil {
		return err
	}
	ctx, _ = s.ring.Draft(ctx) // the draft is never saved
	return s.cli.SendAppState(ctx, info)
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = errPanicked // the value may contain what was decrypted
	}
}
