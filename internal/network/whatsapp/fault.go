package whatsapp

import (
	"context"
	"errors"

	"postern/internal/network/whatsapp/keys"

	"go.mau.fi/whatsmeow"
)

// quiet is an error whose text holds nothing of its cause: the errors of
// whatsmeow carry numbers, addresses and stanzas.
type quiet struct {
	text  string
	cause error
}

func (q *quiet) Error() string { return q.text }
func (q *quiet) Unwrap() error { return q.cause }

// hush gives err a text that may be logged.
func hush(did string, err error) error {
	return &quiet{text: did + ": " + kindOf(err), cause: err}
}

func kindOf(err error) string {
	var gone *whatsmeow.DisconnectedError
	var iq *whatsmeow.IQError
	switch {
	case errors.Is(err, keys.ErrUnavailable):
		return "the key store failed"
	case errors.Is(err, whatsmeow.ErrMessageTimedOut), errors.Is(err, whatsmeow.ErrIQTimedOut), errors.Is(err, context.DeadlineExceeded):
		return "the vendor did not answer in time"
	case errors.As(err, &gone), errors.Is(err, whatsmeow.ErrNotConnected):
		return "the connection was lost"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &iq):
		return "the vendor refused a query"
	}
	return "unexpected failure"
}
