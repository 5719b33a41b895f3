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

// Reason is why an exchange failed. The set is closed; users see it.
type Reason string

// The reasons.
const (
	DNS      Reason = "dns"      // the name was not found
	Connect  Reason = "connect"  // no connection could be made
	TLS      Reason = "tls"      // the handshake failed: certificate, version, cipher
	Timeout  Reason = "timeout"  // the exchange took too long, at whatever point
	Reset    Reason = "reset"    // the connection ended before an answer
	Redirect Reason = "redirect" // a 3xx, which is never followed
	Blocked  Reason = "blocked"  // the URL or its address is not allowed
	Status   Reason = "status"   // a status other than 2xx
	Body     Reason = "body"     // the answer is malformed, has too long a head, or ends too early
)

// Error is an exchange that did not succeed. Its text is for the operator's
// log; users see only the Reason.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// judge turns the status of an answer into the outcome.
func judge(status int) error {
	switch status / 100 {
	case 2:
		return nil
	case 3:
		return &Error{Redirect, errors.New(http.StatusText(status))}
	}
	return &Error{Status, fmt.Errorf("status %d", status)}
}

// failure gives an error of the transport its reason.
func (x *exchange) failure(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	if isTimeout(err) {
		return &Error{Timeout, err}
	}
	return &Error{x.reason(err), err}
}

// reason tells how an exchange failed for which the time was not over.
func (x *exchange) reason(err error) Reason {
	switch {
	case x.sock != nil && errors.Is(x.sock.failure(), errFlood):
		return Body
	case isReset(err), x.h1 != nil && x.h1.failure() != nil:
		return Reset
	case x.sock != nil && x.h1 == nil && !isViolation(err):
		return Reset // HTTP/2: the host ended the stream or the connection
	}
	return Body // what arrived is not HTTP, or is too long
}

// isViolation recognizes the errors with which HTTP/2 ends a connection that
// breaks its rules or a bound of ours. They have no type that can be named.
func isViolation(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "connection error: ") || strings.Contains(text, "response header list larger")
}

func dialReason(err error) Reason {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS
	}
	switch {
	case isBlocked(err):
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

func isBlocked(err error) bool {
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
