package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/requests"
)

// asked is a live session that carries out requests of callers.
type asked struct{ *liveSession }

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

// carryOut takes as many of the requests that wait as there is room for.
func (l *liveSession) carryOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.taking || l.answering == parallelRequests {
		l.askedMore = true
		return
	}
	l.taking, l.askedMore = true, false
	free := parallelRequests - l.answering
	l.e.running.Go(func() { l.takeRequests(free) })
}

// takeRequests takes requests, and starts to carry each of them out.
func (l *liveSession) takeRequests(free int) {
	table := l.e.g.Sessions.Requests()
	list, err := l.waitingRequests(table, free)
	l.mu.Lock()
	l.taking = false
	l.answering += len(list)
	again := l.askedMore || len(list) == free
	l.mu.Unlock()
	for _, r := range list {
		l.e.running.Go(func() {
			l.answer(table, r)
			l.mu.Lock()
			l.answering--
			again := l.askedMore
			l.mu.Unlock()
			if again {
				l.carryOut()
			}
		})
	}
	switch {
	case err != nil && l.ctx.Err() == nil:
		l.e.log.Warn("requests to a session are delayed", "device", l.id, "error", err)
		time.AfterFunc(storeRetryWait, l.carryOut)
	case again:
		l.carryOut()
	}
}

func (l *liveSession) waitingRequests(table requests.Table, most int) ([]requests.Request, error) {
	if waiting, err := table.Waiting(l.ctx, l.id); err != nil || !waiting {
		return nil, err
	}
	return table.Take(l.ctx, l.id, most)
}

// answer carries out a request and records the outcome, even if the connection has ended.
func (l *liveSession) answer(table requests.Table, r requests.Request) {
	ctx := context.WithoutCancel(l.ctx)
	output, err := asked{l}.perform(ctx, r)
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
		o.Reason, o.Detail, o.Fields, o.RetryAfter = slow.Reason, slow.Detail, slow.Fields, slow.RetryAfter
	default:
		o.Reason, o.Detail = refusedFor(err)
	}
	return o
}

// refusedFor explains why a request had no effect, or that this is unknown.
func refusedFor(err error) (postern.Reason, string) {
	var rejected *network.Rejected
	switch {
	case errors.As(err, &rejected):
		return postern.NetworkRefused, rejected.Detail
	case errors.Is(err, network.ErrNotConnected):
		return postern.DeviceNotConnected, "the device is not connected at the moment; wait until it is"
	case errors.Is(err, network.ErrNoSuchGroup):
		return postern.NotFound, "there is no such group, or the account is not in it"
	case errors.Is(err, network.ErrNoSuchChannel):
		return postern.NotFound, network.ErrNoSuchChannel.Error()
	case errors.Is(err, network.ErrChannelForbids):
		return postern.NetworkRefused, network.ErrChannelForbids.Error()
	case errors.Is(err, network.ErrGroupForbids):
		return postern.GroupNotAllowed, network.ErrGroupForbids.Error()
	case errors.Is(err, network.ErrNotOnNetwork):
		return postern.NotFound, "the number is not on the network"
	case errors.Is(err, network.ErrNoSuchCall):
		return postern.NotFound, "no such call rings; it may have ended"
	case errors.Is(err, network.ErrInviteUseless):
		return postern.InviteNotValid, network.ErrInviteUseless.Error()
	case errors.Is(err, network.ErrBadPicture):
		return postern.NetworkRefused, network.ErrBadPicture.Error()
	case errors.Is(err, network.ErrTooManyAsks):
		return postern.RateLimited, "the network limits how often it is asked; wait some minutes"
	case errors.Is(err, network.ErrGroupRefused):
		return postern.NetworkRefused, "the network refused the request"
	}
	return postern.NetworkTimeout, "the network did not answer; check whether the request had an effect before you repeat it"
}

// perform carries out a request, and returns its answer.
func (l asked) perform(ctx context.Context, r requests.Request) (any, error) {
	switch r.Kind {
	case gateway.CheckNumbers, gateway.ShowTyping, gateway.RejectCall, gateway.ListBlocked, gateway.ChangeBlocked,
		gateway.ContactPicture:
		return l.contactRequest(ctx, r)
	case gateway.AskHistory:
		return l.askHistory(ctx, r)
	case gateway.ChangeChat:
		return l.changeChat(ctx, r)
	case gateway.ChangeLabel:
		return l.changeLabel(ctx, r)
	case gateway.ListChannels, gateway.FollowChannel, gateway.UnfollowChannel:
		return l.channelRequest(ctx, r)
	case gateway.GetProfile, gateway.ChangeProfile:
		return l.profileRequest(ctx, r)
	}
	return l.groupRequest(ctx, r)
}

// contactRequest carries out a request about people, and returns its answer.
func (l asked) contactRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.ContactInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	switch r.Kind {
	case gateway.CheckNumbers:
		return l.checkNumbers(ctx, in.Numbers)
	case gateway.ShowTyping:
		return struct{}{}, l.showTyping(ctx, in)
	case gateway.ListBlocked:
		return l.session.People().Blocked(ctx)
	case gateway.ContactPicture:
		id, picture, err := l.session.People().Picture(ctx, in.ChatID, in.PictureID)
		return gateway.Picture{ID: id, Bytes: picture}, err
	case gateway.ChangeBlocked:
		return struct{}{}, l.setBlocked(ctx, in)
	}
	return struct{}{}, l.session.RejectCall(ctx, in.CallID)
}

// setBlocked blocks somebody, or ends that. A number that nobody knows here is looked up as a new chat would be.
func (l asked) setBlocked(ctx context.Context, in gateway.ContactInput) error {
	if len(in.Numbers) > 0 {
		if err := l.paceLookUps(ctx, len(in.Numbers), "/chatId"); err != nil {
			return err
		}
	}
	return l.session.People().SetBlocked(ctx, in.ChatID, in.Blocked)
}

// changeChat changes what the account has set for a chat.
func (l asked) changeChat(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.ChatInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	change := network.ChatChange{
		Archived: in.Archived, MutedUntil: (*postern.Time)(in.MutedUntil), LabelID: in.LabelID, Labeled: in.Labeled,
	}
	if in.LastID != "" {
		change.Last = &network.Quote{NetworkID: in.LastID, FromMe: in.LastFromMe, Author: in.LastAuthor}
		change.LastAt = in.LastAt.Std()
	}
	return struct{}{}, l.session.ChangeChat(ctx, in.ChatID, change)
}

// changeLabel makes, changes or deletes a label of the account, and returns it.
func (l asked) changeLabel(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.LabelInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	label := postern.Label{ID: in.ID, Name: in.Name, Color: in.Color}
	return label, l.session.ChangeLabel(ctx, postern.LabelEdit{Label: label, Rest: in.Rest, Deleted: in.Deleted})
}

// checkNumbers asks about numbers as fast as the device may start chats.
func (l asked) checkNumbers(ctx context.Context, numbers []string) (any, error) {
	if err := l.paceLookUps(ctx, len(numbers), "/phoneNumbers"); err != nil {
		return nil, err
	}
	return l.session.CheckNumbers(ctx, numbers)
}

// paceLookUps counts n numbers that are looked up as new chats, or returns how long they have to wait.
func (l asked) paceLookUps(ctx context.Context, n int, pointer string) error {
	pace, err := l.paceOf(ctx)
	if err != nil || n == 0 {
		return err
	}
	if most := int(pace.NewChatsPerMinute); most > 0 && n > most {
		return postern.Invalid(pointer, "the device's pace for new chats allows at most %d numbers at a time that were not "+
			"looked up before", most)
	}
	if wait := l.pacer.takeFresh(pace, n); wait > 0 {
		return &postern.Error{
			Reason: postern.RateLimited, RetryAfter: wait,
			Detail: "looking up numbers counts towards the device's pace for new chats; wait for the time in Retry-After",
		}
	}
	return nil
}
