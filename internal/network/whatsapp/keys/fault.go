package keys

import (
	"context"
	"errors"
)

// ErrStore is in every error that means the database of keys cannot be used.
var ErrStore = errors.New("the key store is not available")

// unavailable marks an error of the database. whatsmeow acknowledges a message
// that it could not decrypt for any reason but cancellation, so a database that
// is away must look like a cancellation.
type unavailable struct{ error }

func (u unavailable) Unwrap() error        { return u.error }
func (u unavailable) Is(target error) bool { return target == context.Canceled || target == ErrStore }

// judge turns a failure into one that whatsmeow does not acknowledge, and ends
// the connection. A caller who gave up is no failure, and neither is ErrStale.
func (r *Ring) judge(ctx context.Context, err error) error {
	gaveUp := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err == nil || gaveUp && !errors.Is(err, ErrStore) || errors.Is(err, ErrStale) {
		return err
	}
	r.mu.Lock()
	r.broken = true
	r.mu.Unlock()
	if r.fail != nil {
		r.fail()
	}
	return unavailable{err}
}
