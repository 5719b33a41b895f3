package keys

import (
	"context"
	"errors"
)

var (
	// ErrUnavailable is wrapped by every error of the database.
	ErrUnavailable = errors.New("the key store is not available")
	// ErrStale means that a session changed while a message was encrypted with
	// it. Nothing was sent; encrypting again uses the session as it is now.
	ErrStale = errors.New("the session changed while it was used")

	errKeyLength = errors.New("a key has the wrong length")
)

// unavailable marks an error of the database. whatsmeow acknowledges a message
// that it could not decrypt for any reason except cancellation, so the error
// must look like a cancellation.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }
func (u unavailable) Is(target error) bool {
	return target == context.Canceled || target == ErrUnavailable
}

// check turns a failure into an error after which whatsmeow does not
// acknowledge the message, and ends the connection. A caller that gave up is
// not a failure, and neither is ErrStale.
func (r *Ring) check(ctx context.Context, err error) error {
	gaveUp := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err == nil || gaveUp && !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrStale) {
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
