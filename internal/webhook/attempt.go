package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/trace"
)

// attempt is one POST of one delivery. It uses the endpoint's settings as they were
// when it started.
type attempt struct {
	*Dispatcher
	endpoint *postern.Endpoint
	signer   *signer
	delivery store.DueDelivery
}

// report tells a lane the progress of an attempt. Each attempt sends two: the first
// when the POST has ended, with or without an answer, and the second when the
// outcome is durable.
type report struct {
	id       postern.DeliveryID
	answered bool         // this is the first report
	verdict  verdict      // how the endpoint answered
	first    postern.Time // first report: when the delivery had been attempted first; 0 if never
	quiet    postern.Time // first report: the receiver asked not to be tried before this time; 0 if it did not
	shared   bool         // first report: the attempt used a shared slot
	size     int          // first report: bytes of the body, which is no longer held
	chat     string       // second report: the chat, if its events keep their order
	fate     fate         // second report
}

// fate is what follows from an attempt.
type fate int

const (
	fateEnded   fate = iota // nothing: it succeeded, or the delivery no longer exists
	fateAgain               // it failed, so that there may be another
	fateNotMade             // the storage failed: the delivery is still due
)

// verdict is how an endpoint answered.
type verdict int

const (
	well   verdict = iota // it accepted the event
	unwell                // it failed quickly
	slow                  // it did not answer in time, or answered 429
	gone                  // it answered 410 and wants no more events
	unmade                // nothing was posted, or nothing is known of it
)

// failed reports whether the verdict is a failure of the endpoint.
func (v verdict) failed() bool { return v != well && v != unmade }

func verdictOf(answer egress.Answer, reason egress.Reason) verdict {
	switch {
	case reason == "":
		return well
	case answer.Status == http.StatusGone:
		return gone
	case reason == egress.Timeout || answer.Status == http.StatusTooManyRequests:
		return slow
	}
	return unwell
}

// run makes the POST. It calls answered when the POST has ended, with the time before which the
// receiver asked not to be tried again, and recorded when
// its outcome is durable. If ctx ends first, there is no outcome and the delivery
// stays due.
func (a *attempt) run(ctx context.Context, answered func(verdict, postern.Time), recorded func(fate)) {
	body, err := a.body(ctx)
	if err != nil {
		answered(unmade, 0)
		recorded(a.unread(ctx, err))
		return
	}
	ctx, span := a.tracer.Start(a.tracer.Continue(ctx, a.delivery.Trace), "webhook attempt")
	defer span.End()
	l := letter{a.delivery.EventID, a.delivery.Attempts + 1, body}
	began := a.now()
	answer, err := a.send(ctx, a.endpoint, a.signer, l)
	if ctx.Err() != nil && err != nil {
		a.log.WarnContext(ctx, "webhook attempt cut off", "endpoint", a.endpoint.ID, "delivery", a.delivery.ID,
			"event", l.id, "attempt", l.number)
		answered(unmade, 0)
		recorded(fateEnded)
		return
	}
	reason := reasonOf(err)
	o := a.outcome(began, a.now(), answer, reason)
	answered(verdictOf(answer, reason), o.NotBefore)
	a.observe(ctx, o, err)
	describe(span, o)
	a.db.Deliveries.FinishAttemptThen(o, func(err error) {
		if err == nil {
			recorded(fateOf(o))
			return
		}
		go func() {
			a.record(ctx, o, err)
			recorded(fateOf(o))
		}()
	})
}

func fateOf(o store.Attempt) fate {
	if o.Reason == "" {
		return fateEnded
	}
	return fateAgain
}

// body returns the bytes to post, and drops them from the delivery: they must not be held
// until its outcome is recorded.
func (a *attempt) body(ctx context.Context) (body []byte, err error) {
	if body = a.delivery.Body; body == nil && a.delivery.Size > 0 {
		return a.db.Deliveries.Body(ctx, a.delivery)
	}
	a.delivery.Body = nil
	return body, nil
}

// unread handles the error of a body that could not be read. If the delivery still exists,
// it waits for the storage to recover.
func (a *attempt) unread(ctx context.Context, err error) fate {
	if postern.ReasonOf(err) == postern.NotFound || ctx.Err() != nil {
		return fateEnded
	}
	a.log.ErrorContext(ctx, "cannot read the body of a webhook", "delivery", a.delivery.ID, "error", err)
	_ = postern.Sleep(ctx, rest)
	return fateNotMade
}

// reasonOf returns the reason of an error of the client, and "" for nil. Any other
// error means that the delivery could not be posted at all; its reason is
// egress.Blocked, as for a URL that is not allowed.
func reasonOf(err error) egress.Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*egress.Error](err); ok {
		return e.Reason
	}
	return egress.Blocked
}

// outcome returns the record of the attempt: whether the delivery succeeded, when it
// is attempted again, and whether the endpoint is disabled.
func (a *attempt) outcome(began, ended postern.Time, answer egress.Answer, reason egress.Reason) store.Attempt {
	d := a.delivery
	o := store.Attempt{
		DeliveryID: d.ID, Row: d.Row, EndpointID: d.EndpointID, URL: a.endpoint.URL, Claimed: d.DueAt, Replay: d.Replay,
		Number: d.Attempts + 1, At: began, Ended: ended,
		HTTPStatus: answer.Status, Reason: string(reason), Answer: answerText(answer.Body),
		Status: postern.DeliverySucceeded,
	}
	if reason == "" {
		return o
	}
	first := d.FirstAttemptAt
	if first == 0 {
		first = began
	}
	next, again := try{o.Number - d.Earlier, first, ended, answer.RetryAfter, a.jitter()}.next()
	o.Status, o.DueAt, o.NotBefore = postern.DeliveryPending, next, notBefore(ended, answer.RetryAfter)
	if !again {
		o.Status, o.DueAt = postern.DeliveryExhausted, ended
	}
	if verdictOf(answer, reason) == gone {
		o.Disable = "gone"
	}
	return o
}

// answerText returns the body of an answer as valid UTF-8 without NUL, at most
// answerBytes long. A replacement character is longer than the byte that it
// replaces, so the text is cut again.
func answerText(body []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= answerBytes {
		return text
	}
	return strings.ToValidUTF8(text[:answerBytes], "")
}

// observe counts and logs an attempt, which has failed with err.
func (a *attempt) observe(ctx context.Context, o store.Attempt, err error) {
	took := time.Duration(o.Ended-o.At) * time.Millisecond
	a.metrics.attempts.WithLabelValues(outcome(o.Reason)).Inc()
	a.metrics.duration.Observe(took.Seconds())
	if o.Number == 1 {
		a.metrics.wait.Observe((time.Duration(o.At-a.delivery.CreatedAt) * time.Millisecond).Seconds())
	}
	if !a.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	a.log.InfoContext(ctx, "webhook attempt", "workspace", a.endpoint.WorkspaceID, "endpoint", o.EndpointID,
		"delivery", o.DeliveryID, "event", a.delivery.EventID, "attempt", o.Number, "status", o.HTTPStatus,
		"reason", o.Reason, "error", causeOf(err), "duration_ms", took.Milliseconds(), "outcome", string(o.Status))
}

// describe says in the span of an attempt what came of it.
func describe(s trace.Span, o store.Attempt) {
	s.Set("endpoint", string(o.EndpointID))
	s.Set("delivery", string(o.DeliveryID))
	s.SetInt("attempt", o.Number)
	s.SetInt("http.response.status_code", o.HTTPStatus)
	if o.Reason != "" {
		s.Fail(o.Reason)
	}
}

// causeOf returns the error behind a reason, without addresses. It is "" for errors that may name the
// host, or quote its response, which may quote the event.
func causeOf(err error) string {
	e, ok := errors.AsType[*egress.Error](err)
	if !ok || e.Reason != egress.Connect && e.Reason != egress.Timeout && e.Reason != egress.Reset {
		return ""
	}
	if op, ok := errors.AsType[*net.OpError](e.Err); ok {
		return op.Op + ": " + op.Err.Error()
	}
	return e.Err.Error()
}

// record retries to store an outcome after the storage has failed with err. Until
// it succeeds the delivery stays held by its lane, so that the receiver does not
// get the same event again and again.
func (a *attempt) record(ctx context.Context, o store.Attempt, err error) {
	a.log.WarnContext(ctx, "a webhook attempt is not recorded yet; this is tried until it succeeds",
		"delivery", o.DeliveryID, "attempt", o.Number, "error", err)
	for gap := time.Second; err != nil; gap = min(2*gap, maxRest) {
		if postern.Sleep(ctx, gap) != nil {
			return
		}
		err = a.db.Deliveries.FinishAttempt(ctx, o)
	}
}
