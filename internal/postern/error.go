package postern

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is the precise, stable cause of a refusal: the last part of "type" in
// a problem document. Each has its status and its coarse code in package problem.
type Reason string

// The reasons, as in the contract's table of errors.
const (
	MalformedRequest     Reason = "malformed-request"
	Unauthorized         Reason = "unauthorized"
	InsecureTransport    Reason = "insecure-transport"
	PlanWithoutAPI       Reason = "plan-without-api"
	MissingScope         Reason = "missing-scope"
	ResourceNotAllowed   Reason = "resource-not-allowed"
	QuotaExhausted       Reason = "quota-exhausted"
	DeviceLimit          Reason = "device-limit"
	EndpointLimit        Reason = "endpoint-limit"
	ResourceLimit        Reason = "resource-limit"
	NotFound             Reason = "not-found"
	MethodNotAllowed     Reason = "method-not-allowed"
	NotAcceptable        Reason = "not-acceptable"
	PayloadTooLarge      Reason = "payload-too-large"
	RangeNotSatisfiable  Reason = "range-not-satisfiable"
	UnsupportedMediaType Reason = "unsupported-media-type"
	HeadersTooLarge      Reason = "headers-too-large"
	DeviceNotConnected   Reason = "device-not-connected"
	MessageNotCancelable Reason = "message-not-cancelable"
	ActionNotPossible    Reason = "action-not-possible"
	DeviceAlreadyLinked  Reason = "device-already-linked"
	NumberAlreadyLinked  Reason = "number-already-linked"
	LinkAlreadyOpen      Reason = "link-already-open"
	GroupNotAllowed      Reason = "group-not-allowed"
	InviteNotValid       Reason = "invite-not-valid"
	NewChatsBlocked      Reason = "new-chats-blocked"
	NetworkRefused       Reason = "network-refused"
	NetworkTimeout       Reason = "network-timeout"
	NoOpenLink           Reason = "no-open-link"
	NotLinked            Reason = "device-not-linked"
	NoPasskeyWanted      Reason = "no-passkey-wanted"
	NothingToConfirm     Reason = "nothing-to-confirm"
	EndpointNotActive    Reason = "endpoint-not-active"
	EndpointIsPaused     Reason = "endpoint-paused"
	ReplayLimit          Reason = "replay-limit"
	EventRemoved         Reason = "event-removed"
	NotRetriable         Reason = "delivery-not-retriable"
	SandboxOff           Reason = "sandbox-off"
	IdempotencyRunning   Reason = "idempotency-in-progress"
	IdempotencyReused    Reason = "idempotency-key-reused"
	EventsExpired        Reason = "events-expired"
	ValidationFailed     Reason = "validation-failed"
	RateLimited          Reason = "rate-limited"
	Internal             Reason = "internal"
	Unavailable          Reason = "unavailable"
)

// Field names an invalid place in a request.
type Field struct {
	Pointer string `json:"pointer" doc:"JSON pointer to the place, such as /to." example:"/to"`
	Detail  string `json:"detail" doc:"What is wrong and what is accepted." example:"write a phone number as + and 7 to 15 digits"`
}

// Error is an error whose text a caller may see. Every other error is internal: it is
// logged, and its text is not part of the response.
type Error struct {
	Reason     Reason
	Detail     string        // for people: what is wrong and how to fix it, but never what the caller sent
	Fields     []Field       // the places, for ValidationFailed
	RetryAfter time.Duration // for RateLimited and Unavailable
}

// Error returns the detail and the invalid places.
func (e *Error) Error() string {
	text := []string{e.Detail}
	for _, f := range e.Fields {
		text = append(text, f.Pointer+": "+f.Detail)
	}
	return strings.Join(text, "; ")
}

// Is matches another *Error of the same Reason, so that
// errors.Is(err, &Error{Reason: NotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := errors.AsType[*Error](target)
	return ok && t.Reason == e.Reason
}

// Errorf creates an Error. The text must not contain what the caller sent.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Invalid creates a ValidationFailed error about one place in the body.
func Invalid(pointer, format string, args ...any) *Error {
	return &Error{
		Reason: ValidationFailed, Detail: "the request has fields that cannot be accepted",
		Fields: []Field{{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}},
	}
}

// maxStep is how many bytes of a member's name a pointer shows.
const maxStep = 100

// Step returns the step of a JSON pointer to a member (RFC 6901). A long name is
// cut: a pointer names a place, and must not be a way to send text back.
func Step(name string) string {
	if len(name) > maxStep {
		name = strings.ToValidUTF8(name[:maxStep], "")
	}
	return "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// ReasonOf returns the Reason of err, or Internal if err is not an *Error.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Internal
}
