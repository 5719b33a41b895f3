package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// Reason is why an exchange failed. Users see it, and there are no values other than
// the constants below.
type Reason string

// The reasons for which an exchange fails.
const (
	DNS      Reason = "dns"      // the name was not found
	Connect  Reason = "connect"  // no connection could be made
	TLS      Reason = "tls"      // the handshake failed: certificate, version, cipher
	Timeout  Reason = "timeout"  // the exchange took too long, in any phase
	Reset    Reason = "reset"    // the connection ended before an answer
	Redirect Reason = "redirect" // the status is 3xx; redirects are never followed
	Blocked  Reason = "blocked"  // the URL or its address is not allowed
	Status   Reason = "status"   // the status is neither 2xx nor 3xx
	Body     Reason = "body"     // the answer is malformed, its head is too long, or it ends too early
)

// Error is the error of a failed exchange. Its text is for the operator's log; users
// see only the Reason.
type Error struct {
	Reason Reason
	Err    error
}

// Error returns the reason and the cause.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// judge returns nil for a 2xx status, and otherwise the error of the exchange.
func judge(status int) error {
	switch status / 100 {
	case 2:
		return nil
	case 3:
		return &Error{Redirect, errors.New(http.StatusText(status))}
	}
	return &Error{Status, fmt.Errorf("status %d", status)}
}

// failure adds the reason to an error of the transport.
func (x *exchange) failure(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	if isTimeout(err) {
		return &Error{Timeout, err}
	}
	return &Error{x.reason(err), err}
}

// reason returns the reason of an error that is not a time-out.
func (x *exchange) reason(err error) Reason {
	switch {
	case x.sock != nil && errors.Is(x.sock.failure(), errFlood):
		return Body
	case isReset(err), x.h1 != nil && x.h1.failure() != nil:
		return Reset
	case x.sock != nil && x.h1 == nil && !isViolation(err):
		return Reset // HTTP/2: the host ended the stream or the connection
	}
	return Body // the answer is not HTTP, or is too long
}

// isViolation reports whether err is the error with which net/http ends an HTTP/2
// connection because the host broke the protocol or a limit of ours. These errors
// have no exported type, so their text is compared.
func isViolation(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "connection error: ") || strings.Contains(text, "response header list larger")
}

func dialReason(err error) Reason {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS
	}
	switch {
	case IsBlocked(err):
		return Blocked
	case isTimeout(err):
		return Timeout
	}
	return Connect
}

func bodyReason(err error) Reason {
	if isTimeout(err) {
		return Timeout
	}
	return Body
}

// IsBlocked reports whether an error is due to an address or URL that may not be used.
func IsBlocked(err error) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Reason == Blocked
}

func isTimeout(err error) bool {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func isReset(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return false
}
