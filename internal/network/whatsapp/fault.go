package whatsapp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strconv"

	"postern/internal/network/whatsapp/keys"
	"postern/internal/network/whatsapp/state"

	"go.mau.fi/whatsmeow"
)

// redacted is an error whose text contains nothing of its cause: whatsmeow's
// errors contain numbers, addresses and stanzas.
type redacted struct {
	text  string
	cause error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.cause }

// redact wraps err in an error whose text may be logged.
func redact(did string, err error) error {
	return &redacted{text: did + ": " + kindOf(err), cause: err}
}

func kindOf(err error) string {
	var gone *whatsmeow.DisconnectedError
	var iq *whatsmeow.IQError
	var status whatsmeow.DownloadHTTPError
	switch {
	case errors.Is(err, keys.ErrUnavailable):
		return "the key store failed"
	case errors.Is(err, state.ErrNoKey):
		return "the phone has not shared its key"
	case errors.Is(err, state.ErrNotStored):
		return "the host did not store it"
	case errors.Is(err, state.ErrUnreadable):
		return "it is damaged"
	case errors.Is(err, state.ErrRefused):
		return "the vendor refused it"
	case errors.Is(err, whatsmeow.ErrMessageTimedOut), errors.Is(err, whatsmeow.ErrIQTimedOut),
		errors.Is(err, context.DeadlineExceeded):
		return "the vendor did not answer in time"
	case errors.As(err, &gone), errors.Is(err, whatsmeow.ErrNotConnected):
		return "the connection was lost"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &iq):
		return "the vendor refused a query"
	case errors.As(err, &status):
		return "the vendor answered with status " + strconv.Itoa(status.StatusCode)
	case errors.Is(err, io.ErrUnexpectedEOF), isErr[net.Error](err):
		return "the network failed"
	case isErr[*fs.PathError](err):
		return "the disk failed"
	}
	return "unexpected failure"
}
