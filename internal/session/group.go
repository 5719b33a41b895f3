package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/requests"
)

// groupRequest carries out a request about groups, and returns its answer.
func (l asked) groupRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.GroupInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	g := l.session.Groups()
	switch gateway.GroupAction(r.Kind) {
	case gateway.GroupGet:
		g, err := l.seen(ctx, in.ChatID, postern.GroupNotice{})
		if isBehind(err) { // notices record it
			err = nil
		}
		return g, err
	case gateway.GroupCreate:
		return l.createGroup(ctx, in)
	case gateway.GroupChange:
		return l.changeGroup(ctx, in)
	case gateway.GroupParticipants:
		return l.changeParticipants(ctx, in)
	case gateway.GroupInvite:
		url, err := g.Invite(ctx, in.ChatID, in.Renew)
		return gateway.Invitation{URL: url}, err
	case gateway.GroupRequests:
		return g.Requests(ctx, in.ChatID)
	case gateway.GroupPicture:
		id, picture, err := g.Picture(ctx, in.ChatID, in.PictureID)
		return gateway.Picture{ID: id, Bytes: picture}, err
	case gateway.GroupSetPicture:
		return struct{}{}, g.SetPicture(ctx, in.ChatID, in.Picture)
	case gateway.GroupSubgroups:
		return g.Subgroups(ctx, in.ChatID)
	case gateway.GroupLink:
		return struct{}{}, l.link(ctx, in)
	case gateway.GroupLeave:
		return struct{}{}, g.Leave(ctx, in.ChatID)
	case gateway.GroupJoin:
		return l.joinGroup(ctx, in.Code)
	}
	return nil, &network.GroupRefused{Why: network.ErrGroupRefused}
}

// own returns the account; the zero value if it is not known at the moment.
func (l asked) own(ctx context.Context) postern.Participant {
	d, _ := l.settings.now(ctx)
	return postern.Participant{PhoneNumber: d.PhoneNumber}
}

// notices keeps what is read of groups from replacing what newer notices say about them: an answer of the network may
// be older than a notice that arrives while it is read or recorded. The zero value is ready for use.
type notices struct {
	mu      sync.Mutex
	arrived int
}

// record records a notice, by calling f.
func (n *notices) record(f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arrived++
	return f()
}

// read calls get, which reads groups, and then put, which records them. If notices arrive between the two, it begins
// again; if they do so at every try, put is not called, and the error is errNoticed.
func (n *notices) read(get, put func() error) error {
	for range readTries {
		before := n.count()
		if err := get(); err != nil {
			return err
		}
		if recorded, err := n.recordIf(before, put); recorded {
			return err
		}
	}
	return errNoticed
}

const readTries = 3

var errNoticed = errors.New("notices about groups kept arriving while groups were read")

func (n *notices) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.arrived
}

// recordIf calls put unless more notices have arrived than before.
func (n *notices) recordIf(before int, put func() error) (recorded bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.arrived != before {
		return false, nil
	}
	return true, put()
}

// shown reads a group, and records it as n: at once, or else later.
func (l asked) shown(ctx context.Context, chat string, n postern.GroupNotice) (postern.Group, error) {
	g, err := l.seen(ctx, chat, n)
	if isBehind(err) {
		l.e.running.Go(func() { l.record(chat, n) })
		err = nil
	}
	return g, err
}

// isBehind reports whether notices keep what was read from being recorded.
func isBehind(err error) bool { return errors.Is(err, errNoticed) || errors.Is(err, network.ErrBehind) }

// patiently calls f until notices no longer keep it from recording what it reads, or the connection ends.
func (l *liveSession) patiently(f func() error) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		err := f()
		if !isBehind(err) {
			return err
		}
		if postern.Sleep(l.ctx, wait) != nil {
			return err
		}
	}
}

// record reads a group until it could record it as n.
func (l asked) record(chat string, n postern.GroupNotice) {
	err := l.patiently(func() error {
		_, err := l.seen(context.WithoutCancel(l.ctx), chat, n)
		return err
	})
	if err != nil && l.ctx.Err() == nil {
		l.e.log.Warn("a group of the account is not known as it is now", "device", l.id, "error", err)
	}
}

// seen reads a group, and records it as n. If notices keep it from recording the group, the error says so.
func (l asked) seen(ctx context.Context, chat string, n postern.GroupNotice) (g postern.Group, err error) {
	err = l.notices.read(
		func() error { g, err = l.session.Groups().Get(ctx, chat); return err },
		func() error {
			n.ChatID, n.Seen = g.ChatID, &g
			return l.note(ctx, n)
		})
	return g, err
}

// note records what became known about a group.
func (l asked) note(ctx context.Context, n postern.GroupNotice) error {
	d, err := l.settings.now(ctx)
	if err != nil {
		return err
	}
	return l.e.g.Sessions.NoteGroup(ctx, d, n)
}

// afterEffect logs that what a request did could not be read or recorded. The request is answered as done: a refusal
// would let a retry do it again.
func (l asked) afterEffect(err error) {
	if err != nil {
		l.e.log.Warn("a changed group is not recorded; its next notice or a request for it is", "device", l.id, "error", err)
	}
}

func (l asked) createGroup(ctx context.Context, in gateway.GroupInput) (any, error) {
	if err := l.lookUp(ctx, in.Participants); err != nil {
		return nil, err
	}
	g, outcomes, err := l.session.Groups().Create(ctx, network.NewGroup{
		Subject: in.Subject, Participants: in.Participants, Invite: in.Invite, Community: in.Community,
		CommunityID: in.CommunityID,
	})
	if err != nil {
		return nil, err
	}
	if outcomes == nil {
		outcomes = []postern.ParticipantOutcome{}
	}
	l.afterEffect(l.note(ctx, postern.GroupNotice{ChatID: g.ChatID, By: l.own(ctx), Seen: &g, Joins: true}))
	return gateway.CreatedGroup{Group: g, Outcomes: outcomes}, nil
}

// link makes a group one of a community, or ends that.
func (l asked) link(ctx context.Context, in gateway.GroupInput) error {
	err := l.session.Groups().Link(ctx, in.CommunityID, in.ChatID, in.Linked)
	if err == nil {
		_, read := l.shown(ctx, in.ChatID, postern.GroupNotice{By: l.own(ctx)})
		l.afterEffect(read)
	}
	return err
}

// errEffectUnknown means that a request was carried out, and that what it did cannot be shown.
var errEffectUnknown = errors.New("the request was carried out, but its result could not be read")

func (l asked) changeGroup(ctx context.Context, in gateway.GroupInput) (any, error) {
	if err := l.session.Groups().Change(ctx, in.ChatID, in.Change); err != nil {
		return nil, err
	}
	g, err := l.shown(ctx, in.ChatID, postern.GroupNotice{By: l.own(ctx)})
	if err != nil {
		l.afterEffect(err)
		return nil, errEffectUnknown
	}
	return g, nil
}

// changeParticipants carries out one step after the other. Once one is done, the others are answered, too: those that
// are refused have failed.
func (l asked) changeParticipants(ctx context.Context, in gateway.GroupInput) (any, error) {
	all := []postern.ParticipantOutcome{}
	for i, step := range in.Steps {
		outcomes, err := l.changeSome(ctx, in, step)
		if err != nil && i == 0 {
			return nil, err
		}
		if err != nil {
			outcomes = failed(step)
		}
		all = append(all, outcomes...)
	}
	return all, nil
}

func (l asked) changeSome(
	ctx context.Context, in gateway.GroupInput, step gateway.ParticipantStep,
) ([]postern.ParticipantOutcome, error) {
	if step.Action.LooksUp() {
		if err := l.lookUp(ctx, step.Who); err != nil {
			return nil, err
		}
	}
	return l.session.Groups().ChangeParticipants(ctx, in.ChatID, step.Action, step.Who, in.Invite)
}

func failed(step gateway.ParticipantStep) []postern.ParticipantOutcome {
	list := make([]postern.ParticipantOutcome, len(step.Who))
	for i, who := range step.Who {
		list[i] = postern.ParticipantOutcome{Action: step.Action, Status: postern.ParticipantFailed}
		if postern.NumberOfChat(who) != "" {
			list[i].PhoneNumber = postern.Maybe(who)
		} else {
			list[i].LID = postern.Maybe(who)
		}
	}
	return list
}

// lookUp lets numbers be looked up whose owners the account does not know, as fast as it may start chats.
func (l asked) lookUp(ctx context.Context, who []string) error {
	n, err := l.session.Groups().Unknown(ctx, who)
	if err != nil {
		return err
	}
	return l.paceLookUps(ctx, n, "/participants")
}

func (l asked) joinGroup(ctx context.Context, code string) (any, error) {
	chat, err := l.session.Groups().Join(ctx, code)
	if err != nil {
		return nil, err
	}
	answer := gateway.JoinedGroup{ChatID: chat, Status: "joined"}
	_, err = l.shown(ctx, chat, postern.GroupNotice{By: l.own(ctx), Joins: true})
	if errors.Is(err, network.ErrGroupForbids) || errors.Is(err, network.ErrNoSuchGroup) {
		answer.Status = "requested"
		return answer, nil
	}
	l.afterEffect(err)
	return answer, nil
}

// reread records a group of which a notice does not say what it is like: the account was added to it, or others have
// changed it.
func (l asked) reread(n postern.GroupNotice) {
	l.record(n.ChatID, postern.GroupNotice{By: n.By, Joins: n.Entered})
}

// listGroups records all groups of an account that was linked since they were last listed.
func (l *liveSession) listGroups() {
	if l.listed.Load() || !l.listing.CompareAndSwap(false, true) {
		return
	}
	defer l.listing.Store(false)
	d, err := l.settings.now(l.ctx)
	if err != nil || !d.Receive.Groups {
		return
	}
	listed, err := l.e.g.Sessions.GroupsListed(l.ctx, d)
	if err == nil && !listed {
		err = l.patiently(func() error { return l.list(d) })
	}
	if err == nil {
		l.listed.Store(true)
	} else if l.ctx.Err() == nil {
		l.e.log.Warn("the groups of a device are not listed yet", "device", l.id, "error", err)
	}
}

func (l *liveSession) list(d postern.Device) (err error) {
	var list []postern.Group
	return l.notices.read(
		func() error { list, err = l.session.Groups().Joined(l.ctx); return err },
		func() error { return l.e.g.Sessions.ListGroups(context.WithoutCancel(l.ctx), d, list) })
}
