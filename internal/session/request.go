package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/requests"
)

// parallelRequests is how many requests of callers a session carries out at a time.
const parallelRequests = 4

// requested carries out the requests of callers that wait for a device, if its session is live here.
func requested(e *Engine, id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		l.carryOut()
	}
}

// carryOut starts to carry out the requests that wait, or lets those who do so look once more.
func (l *liveSession) carryOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.asked {
		l.askedMore = true
		return
	}
	l.asked = true
	l.e.running.Go(l.takeRequests)
}

// takeRequests carries out requests until none waits.
func (l *liveSession) takeRequests() {
	for {
		n, err := l.takeSome()
		if err != nil && l.ctx.Err() == nil {
			l.e.log.Warn("requests to a session are delayed", "device", l.id, "error", err)
		}
		l.mu.Lock()
		if err != nil || l.closed || n == 0 && !l.askedMore {
			l.asked = false
			l.mu.Unlock()
			return
		}
		l.askedMore = false
		l.mu.Unlock()
	}
}

func (l *liveSession) takeSome() (int, error) {
	table := l.e.g.Sessions.Requests()
	if waiting, err := table.Waiting(l.ctx, l.id); err != nil || !waiting {
		return 0, err
	}
	list, err := table.Take(l.ctx, l.id, parallelRequests)
	var all sync.WaitGroup
	for _, r := range list {
		all.Go(func() { l.answer(table, r) })
	}
	all.Wait()
	return len(list), err
}

// answer carries out a request and records the outcome, even if the connection has ended.
func (l *liveSession) answer(table requests.Table, r requests.Request) {
	ctx := context.WithoutCancel(l.ctx)
	output, err := l.perform(ctx, r)
	if err := table.Answer(ctx, r, outcomeOf(output, err)); err != nil {
		l.e.log.Warn("the outcome of a request is lost", "device", l.id, "request", r.ID, "error", err)
	}
}

func outcomeOf(output any, err error) (o requests.Outcome) {
	if err == nil {
		o.Output, err = json.Marshal(output)
	}
	var slow *postern.Error
	switch {
	case err == nil:
	case errors.As(err, &slow):
		o.Reason, o.Detail, o.RetryAfter = slow.Reason, slow.Detail, slow.RetryAfter
	default:
		o.Reason, o.Detail = refusedFor(err)
	}
	return o
}

// refusedFor explains why a request had no effect, or that this is unknown.
func refusedFor(err error) (postern.Reason, string) {
	switch {
	case errors.Is(err, network.ErrNotConnected):
		return postern.DeviceNotConnected, "the device is not connected at the moment; wait until it is"
	case errors.Is(err, network.ErrNoSuchGroup):
		return postern.NotFound, "there is no such group, or the account is not in it"
	case errors.Is(err, network.ErrGroupForbids):
		return postern.GroupNotAllowed, network.ErrGroupForbids.Error()
	case errors.Is(err, network.ErrNoSuchCall):
		return postern.NotFound, "no such call rings; it may have ended"
	case errors.Is(err, network.ErrInviteUseless):
		return postern.InviteNotValid, network.ErrInviteUseless.Error()
	case errors.Is(err, network.ErrTooManyAsks):
		return postern.RateLimited, "the network limits how often it is asked; wait some minutes"
	case errors.Is(err, network.ErrGroupRefused):
		return postern.NetworkRefused, "the network refused the request"
	}
	return postern.NetworkTimeout, "the network did not answer; look whether the request had an effect before you repeat it"
}

// perform carries out a request, and returns its answer.
func (l *liveSession) perform(ctx context.Context, r requests.Request) (any, error) {
	switch r.Kind {
	case gateway.CheckNumbers, gateway.ShowTyping, gateway.RejectCall:
		return l.contactRequest(ctx, r)
	}
	return l.groupRequest(ctx, r)
}

// contactRequest carries out a request about people, and returns its answer.
func (l *liveSession) contactRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.ContactInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	switch r.Kind {
	case gateway.CheckNumbers:
		return l.checkNumbers(ctx, in.Numbers)
	case gateway.ShowTyping:
		return struct{}{}, l.session.Typing(ctx, in.ChatID, in.Typing)
	}
	return struct{}{}, l.session.RejectCall(ctx, in.CallID)
}

// checkNumbers asks about numbers as fast as the device may start chats.
func (l *liveSession) checkNumbers(ctx context.Context, numbers []string) (any, error) {
	pace, err := l.paceOf(ctx)
	if err != nil {
		return nil, err
	}
	if most := int(pace.NewChatsPerMinute); most > 0 && len(numbers) > most {
		return nil, &postern.Error{Reason: postern.RateLimited, RetryAfter: time.Minute, Detail: fmt.Sprintf(
			"the device's pace for new chats allows %d checks per minute; check at most so many numbers at a time", most)}
	}
	if wait := l.pacer.takeFresh(pace, len(numbers)); wait > 0 {
		return nil, &postern.Error{
			Reason: postern.RateLimited, RetryAfter: wait,
			Detail: "checks count towards the device's pace for new chats; wait for the time in Retry-After, or check fewer numbers",
		}
	}
	return l.session.CheckNumbers(ctx, numbers)
}
