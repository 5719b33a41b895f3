package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/store"
)

// attempt is one POST of one delivery, to the endpoint as it was at its start.
type attempt struct {
	*Dispatcher
	endpoint *postern.Endpoint
	signer   *signer
	delivery store.DueDelivery
}

// report is what a lane must know of an attempt: first that it was answered, or
// will not be, and then that this is on disk.
type report struct {
	id       postern.DeliveryID
	answered bool    // the first of the two
	verdict  verdict // then: what it says of the endpoint
	shared   bool    // then: it used a shared slot
	chat     string  // whose events keep their order
	failed   bool    // there is another attempt, or somebody asked for one
}

// verdict is what an answer says of the endpoint.
type verdict int

const (
	well   verdict = iota // it took the event
	unwell                // it did not, and was quick about it
	slow                  // it did not answer in time, or asks for less
	gone                  // it wants nothing any more
)

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

// run posts and tells the outcome, first when there is one, and again when it is
// durable. When ctx ends before, there is none: the delivery stays due.
func (a attempt) run(ctx context.Context, answered func(verdict), recorded func(failed bool)) {
	l := letter{a.delivery.EventID, a.delivery.Attempts + 1, a.delivery.Body}
	began := now()
	answer, err := a.send(ctx, a.endpoint, a.signer, l)
	if ctx.Err() != nil && err != nil {
		a.log.WarnContext(ctx, "webhook attempt cut off", "endpoint", a.endpoint.ID, "delivery", a.delivery.ID, "event", l.id, "attempt", l.number)
		answered(unwell)
		recorded(false)
		return
	}
	reason := reasonOf(err)
	o := a.outcome(began, now(), answer, reason)
	answered(verdictOf(answer, reason))
	a.observe(ctx, o)
	a.db.Deliveries.FinishAttemptThen(o, func(err error) {
		if err == nil {
			recorded(o.Reason != "")
			return
		}
		go func() {
			a.record(ctx, o, err)
			recorded(o.Reason != "")
		}()
	})
}

// reasonOf gives an error of the client its reason. Any other error means that
// no POST could be made of the delivery, which is told like a URL that is not
// allowed.
func reasonOf(err error) egress.Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*egress.Error](err); ok {
		return e.Reason
	}
	return egress.Blocked
}

// outcome decides what follows from an answer.
func (a attempt) outcome(began, ended postern.Time, answer egress.Answer, reason egress.Reason) store.Attempt {
	d := a.delivery
	o := store.Attempt{
		DeliveryID: d.ID, Row: d.Row, EndpointID: d.EndpointID, URL: a.endpoint.URL, Claimed: d.DueAt, Replay: d.Replay, Number: d.Attempts + 1, At: began, Ended: ended,
		HTTPStatus: answer.Status, Reason: string(reason), Answer: answerText(answer.Body), Status: postern.DeliverySucceeded,
	}
	if reason == "" {
		return o
	}
	first := d.FirstAttemptAt
	if first == 0 {
		first = began
	}
	next, again := try{o.Number - d.Earlier, first, ended, answer.RetryAfter, a.jitter()}.next()
	o.Status, o.DueAt = postern.DeliveryPending, next
	if !again {
		o.Status, o.DueAt = postern.DeliveryExhausted, ended
	}
	if verdictOf(answer, reason) == gone {
		o.Disable = "gone"
	}
	return o
}

// answerText makes text of what a receiver answered. The marks in the place of
// what is none must not make it longer than what is kept.
func answerText(body []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= answerBytes {
		return text
	}
	return strings.ToValidUTF8(text[:answerBytes], "")
}

func (a attempt) observe(ctx context.Context, o store.Attempt) {
	took := time.Duration(o.Ended-o.At) * time.Millisecond
	a.metrics.attempts.WithLabelValues(outcome(o.Reason)).Inc()
	a.metrics.duration.Observe(took.Seconds())
	if o.Number == 1 {
		a.metrics.wait.Observe((time.Duration(o.At-a.delivery.CreatedAt) * time.Millisecond).Seconds())
	}
	if !a.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	a.log.InfoContext(ctx, "webhook attempt", "workspace", a.endpoint.WorkspaceID, "endpoint", o.EndpointID, "delivery", o.DeliveryID, "event", a.delivery.EventID,
		"attempt", o.Number, "status", o.HTTPStatus, "reason", o.Reason, "duration_ms", took.Milliseconds(), "outcome", string(o.Status))
}

// record makes the outcome durable that the storage has refused. Until then the
// attempt stays in flight, so that the receiver is not sent the same event in a
// circle.
func (a attempt) record(ctx context.Context, o store.Attempt, err error) {
	for gap := time.Second; err != nil; gap = min(2*gap, maxRest) {
		a.log.ErrorContext(ctx, "webhook attempt not recorded", "delivery", o.DeliveryID, "attempt", o.Number, "error", err)
		if postern.Sleep(ctx, gap) != nil {
			return
		}
		err = a.db.Deliveries.FinishAttempt(ctx, o)
	}
}
