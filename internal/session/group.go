package session

import (
	"context"
	"encoding/json"
	"errors"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/requests"
)

// groupRequest carries out a request about groups, and returns its answer.
func (l *liveSession) groupRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.GroupInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	g := l.session.Groups()
	switch gateway.GroupAction(r.Kind) {
	case gateway.GroupGet:
		return l.seen(ctx, in.ChatID, postern.Participant{})
	case gateway.GroupCreate:
		return l.createGroup(ctx, in)
	case gateway.GroupChange:
		if err := g.Change(ctx, in.ChatID, in.Change); err != nil {
			return nil, err
		}
		return l.seen(ctx, in.ChatID, l.own(ctx))
	case gateway.GroupParticipants:
		return l.changeParticipants(ctx, in)
	case gateway.GroupInvite:
		url, err := g.Invite(ctx, in.ChatID, in.Renew)
		return gateway.Invitation{URL: url}, err
	case gateway.GroupRequests:
		return g.Requests(ctx, in.ChatID)
	case gateway.GroupLeave:
		return struct{}{}, g.Leave(ctx, in.ChatID)
	case gateway.GroupJoin:
		return l.joinGroup(ctx, in.Code)
	}
	return nil, &network.GroupRefused{Why: network.ErrGroupRefused}
}

// own returns the account; the zero value if it is not known at the moment.
func (l *liveSession) own(ctx context.Context) postern.Participant {
	d, _ := l.settings.now(ctx)
	return postern.Participant{PhoneNumber: d.PhoneNumber}
}

// seen reads a group, and records it. by is who has changed it.
func (l *liveSession) seen(ctx context.Context, chat string, by postern.Participant) (postern.Group, error) {
	g, err := l.session.Groups().Get(ctx, chat)
	if err != nil {
		return g, err
	}
	return g, l.note(ctx, postern.GroupNotice{ChatID: g.ChatID, By: by, Seen: &g})
}

// note records what became known about a group.
func (l *liveSession) note(ctx context.Context, n postern.GroupNotice) error {
	d, err := l.settings.now(ctx)
	if err != nil {
		return err
	}
	return l.e.g.Sessions.NoteGroup(ctx, d, n)
}

func (l *liveSession) createGroup(ctx context.Context, in gateway.GroupInput) (any, error) {
	g, outcomes, err := l.session.Groups().Create(ctx, in.Subject, in.Participants)
	if err != nil {
		return nil, err
	}
	if outcomes == nil {
		outcomes = []postern.ParticipantOutcome{}
	}
	return gateway.CreatedGroup{Group: g, Outcomes: outcomes}, l.note(ctx, postern.GroupNotice{
		ChatID: g.ChatID, By: l.own(ctx), Seen: &g, Joins: true,
	})
}

func (l *liveSession) changeParticipants(ctx context.Context, in gateway.GroupInput) (any, error) {
	all := []postern.ParticipantOutcome{}
	for _, step := range in.Steps {
		outcomes, err := l.session.Groups().ChangeParticipants(ctx, in.ChatID, step.Action, step.Who)
		if err != nil {
			return nil, err
		}
		all = append(all, outcomes...)
	}
	return all, nil
}

func (l *liveSession) joinGroup(ctx context.Context, code string) (any, error) {
	chat, err := l.session.Groups().Join(ctx, code)
	if err != nil {
		return nil, err
	}
	answer := gateway.JoinedGroup{ChatID: chat, Status: "joined"}
	_, err = l.seen(ctx, chat, l.own(ctx))
	if errors.Is(err, network.ErrGroupForbids) || errors.Is(err, network.ErrNoSuchGroup) {
		answer.Status = "requested"
		err = nil
	}
	return answer, err
}

// listGroups records all groups of an account that was linked since they were last listed.
func (l *liveSession) listGroups() {
	d, err := l.settings.now(l.ctx)
	if err != nil || !d.Receive.Groups {
		return
	}
	if listed, err := l.e.g.Sessions.GroupsListed(l.ctx, d); err != nil || listed {
		return
	}
	list, err := l.session.Groups().Joined(l.ctx)
	if err == nil {
		err = l.e.g.Sessions.ListGroups(context.WithoutCancel(l.ctx), d, list)
	}
	if err != nil && l.ctx.Err() == nil {
		l.e.log.Warn("the groups of a device are not listed yet", "device", l.id, "error", err)
	}
}
