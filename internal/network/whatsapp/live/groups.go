// Package live has what is asked over the live connection of an account and answered at once: its groups, and numbers;
// who types; calls. It also reads the network's notices about groups.
package live

import (
	"context"
	"slices"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// Enter returns the client of the live connection, and a function to call when done with it; ok is false if there is no
// live connection.
type Enter func() (cli *whatsmeow.Client, leave func(), ok bool)

// Groups implements [network.Groups].
type Groups struct {
	Enter
	// Settle waits until the host has the notices about groups that have arrived, which an answer overtakes. The error is
	// [network.ErrBehind] if that takes too long.
	Settle func() error
}

var _ network.Groups = Groups{}

// ask runs a request on the live connection. It does not end with ctx, because whatsmeow can end the program if a
// request is canceled while its answer arrives. It ends with the connection, or when whatsmeow has waited long enough.
func ask[T any](
	ctx context.Context, enter Enter, do func(context.Context, *whatsmeow.Client) (T, error),
) (answer T, err error) {
	cli, leave, ok := enter()
	if !ok {
		return answer, network.ErrNotConnected
	}
	defer leave()
	answer, err = do(context.WithoutCancel(ctx), cli)
	return answer, refusal(err)
}

// Joined returns all groups that the account is in.
func (g Groups) Joined(ctx context.Context) ([]postern.Group, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.Group, error) {
		infos, err := cli.GetJoinedGroups(ctx)
		if err == nil {
			err = g.Settle()
		}
		list := make([]postern.Group, 0, len(infos))
		for _, info := range infos {
			list = append(list, Info(info, Own(cli)))
		}
		return list, err
	})
}

// Get returns a group that the account is in.
func (g Groups) Get(ctx context.Context, chat string) (postern.Group, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (postern.Group, error) {
		info, err := cli.GetGroupInfo(ctx, address(chat))
		if err != nil {
			return postern.Group{}, err
		}
		return Info(info, Own(cli)), g.Settle()
	})
}

// Unknown returns how many numbers have to be looked up on the network before their owners can be added.
func (g Groups) Unknown(ctx context.Context, who []string) (int, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (int, error) {
		_, unknown, err := addresses(ctx, cli, who)
		return len(unknown), err
	})
}

// made is a new group, with those who could not be added.
type made struct {
	group    postern.Group
	outcomes []postern.ParticipantOutcome
}

// Create creates a group.
func (g Groups) Create(
	ctx context.Context, n network.NewGroup,
) (postern.Group, []postern.ParticipantOutcome, error) {
	m, err := ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (made, error) {
		people, missing, err := find(ctx, cli, n.Participants, true)
		if err != nil {
			return made{}, err
		}
		ctx, done, err := readAhead(ctx, cli, people)
		defer done()
		if err != nil {
			return made{}, err
		}
		ask := whatsmeow.ReqCreateGroup{Name: n.Subject, Participants: people}
		if ask.IsParent = n.Community; n.CommunityID != "" {
			ask.LinkedParentJID = address(n.CommunityID)
		}
		info, err := cli.CreateGroup(ctx, ask)
		if err != nil {
			return made{}, err
		}
		failed, in := refused(info.Participants)
		info.Participants = in
		list := outcomes(ctx, cli, failed, postern.AddParticipants)
		if n.Invite {
			inviteEach(ctx, cli, info, failed, list)
		}
		return made{Info(info, Own(cli)), append(notFound(missing, postern.AddParticipants), list...)}, nil
	})
	return m.group, m.outcomes, err
}

// Subgroups returns the groups of a community.
func (g Groups) Subgroups(ctx context.Context, chat string) ([]postern.Subgroup, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.Subgroup, error) {
		found, err := cli.GetSubGroups(ctx, address(chat))
		list := make([]postern.Subgroup, 0, min(len(found), maxSubgroups))
		for _, one := range found[:min(len(found), maxSubgroups)] {
			s := postern.Subgroup{
				ChatID: chatOf(one.JID), Subject: clip(one.Name, postern.MaxGroupSubject), Kind: postern.PlainGroup,
			}
			if one.IsDefaultSubGroup {
				s.Kind = postern.AnnouncementsGroup
			}
			list = append(list, s)
		}
		return list, err
	})
}

// maxSubgroups is how many groups of a community are listed. Apps allow 100.
const maxSubgroups = 1000

// Link makes a group one of a community, or ends that.
func (g Groups) Link(ctx context.Context, community, chat string, on bool) error {
	_, err := ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		if on {
			return struct{}{}, cli.LinkGroup(ctx, address(community), address(chat))
		}
		return struct{}{}, cli.UnlinkGroup(ctx, address(community), address(chat))
	})
	return err
}

// refused separates the participants that could not be added from the others.
func refused(list []types.GroupParticipant) (failed, in []types.GroupParticipant) {
	for _, p := range list {
		if p.Error != 0 {
			failed = append(failed, p)
		} else {
			in = append(in, p)
		}
	}
	return failed, in
}

// Change changes one thing after the other.
func (g Groups) Change(ctx context.Context, chat string, c postern.GroupChange) error {
	_, err := ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		jid := address(chat)
		for _, do := range []func() error{
			set(c.Subject, func(v string) error { return cli.SetGroupName(ctx, jid, v) }),
			set(c.Description, func(v string) error { return setDescription(ctx, cli, jid, v) }),
			set(c.AnnounceOnly, func(v bool) error { return cli.SetGroupAnnounce(ctx, jid, v) }),
			set(c.AdminsEdit, func(v bool) error { return cli.SetGroupLocked(ctx, jid, v) }),
			set(c.JoinApproval, func(v bool) error { return cli.SetGroupJoinApprovalMode(ctx, jid, v) }),
			set(c.Disappearing, func(v int) error { return setTimer(ctx, cli, jid, v) }),
		} {
			if err := do(); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// setDescription replaces the description that a group has now. whatsmeow would read it, too, and hide why it cannot.
func setDescription(ctx context.Context, cli *whatsmeow.Client, jid types.JID, text string) error {
	info, err := cli.GetGroupInfo(ctx, jid)
	if err != nil {
		return err
	}
	return cli.SetGroupTopic(ctx, jid, info.TopicID, "", text)
}

func set[T any](to *T, do func(T) error) func() error {
	return func() error {
		if to == nil {
			return nil
		}
		return do(*to)
	}
}

// ChangeParticipants adds, removes, promotes or demotes members, or answers those who want to join.
func (g Groups) ChangeParticipants(
	ctx context.Context, chat string, action postern.ParticipantAction, who []string, invite bool,
) ([]postern.ParticipantOutcome, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.ParticipantOutcome, error) {
		people, missing, err := find(ctx, cli, who, action.LooksUp())
		if err != nil || len(people) == 0 {
			return notFound(missing, action), err
		}
		list, err := change(ctx, cli, address(chat), people, action)
		keep(cli, address(chat), list, action)
		all := outcomes(ctx, cli, list, action)
		if invite && slices.ContainsFunc(list, isInvitable) {
			info, err := cli.GetGroupInfo(ctx, address(chat))
			if err == nil {
				inviteEach(ctx, cli, info, list, all)
			}
		}
		return append(notFound(missing, action), all...), err
	})
}

// keep tells whatsmeow who has come or gone, so that the next message is encrypted for the current members: the
// network's notice of the change may come later. Nothing is kept of a group whose members whatsmeow has not read yet.
func keep(cli *whatsmeow.Client, jid types.JID, list []types.GroupParticipant, action postern.ParticipantAction) {
	notice := events.GroupInfo{JID: jid}
	for _, p := range list {
		switch {
		case status(p.Error) != postern.ParticipantDone:
		case action == postern.AddParticipants, action == postern.ApproveParticipants:
			notice.Join = append(notice.Join, p.JID)
		case action == postern.RemoveParticipants:
			notice.Leave = append(notice.Leave, p.JID, p.LID, p.PhoneNumber) // by which of them depends on the group
		}
	}
	cli.DangerousInternals().UpdateGroupParticipantCache(&notice)
}

func change(
	ctx context.Context, cli *whatsmeow.Client, jid types.JID, people []types.JID, action postern.ParticipantAction,
) ([]types.GroupParticipant, error) {
	switch action {
	case postern.ApproveParticipants, postern.RejectParticipants:
		return cli.UpdateGroupRequestParticipants(ctx, jid, people, whatsmeow.ParticipantRequestChange(action))
	case postern.AddParticipants:
		ahead, done, err := readAhead(ctx, cli, people)
		defer done()
		if err != nil {
			return nil, err
		}
		ctx = ahead
	case postern.RemoveParticipants, postern.PromoteParticipants, postern.DemoteParticipants:
	}
	return cli.UpdateGroupParticipants(ctx, jid, people, whatsmeow.ParticipantChange(action))
}

// Invite returns the address of the invitation to a group.
func (g Groups) Invite(ctx context.Context, chat string, renew bool) (string, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (string, error) {
		return cli.GetGroupInviteLink(ctx, address(chat), renew)
	})
}

// Requests returns who wants to join a group.
func (g Groups) Requests(ctx context.Context, chat string) ([]postern.JoinRequest, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.JoinRequest, error) {
		list, err := cli.GetGroupRequestParticipants(ctx, address(chat))
		list = list[:min(len(list), maxMembers)]
		requests := make([]postern.JoinRequest, len(list))
		for i, r := range list {
			p, err := known(ctx, cli, r.JID)
			if err != nil {
				return nil, err
			}
			requests[i] = postern.JoinRequest{
				PhoneNumber: p.PhoneNumber, LID: p.LID, RequestedAt: postern.TimeOf(r.RequestedAt.UTC()),
			}
		}
		return requests, err
	})
}

// Leave leaves a group.
func (g Groups) Leave(ctx context.Context, chat string) error {
	_, err := ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		return struct{}{}, cli.LeaveGroup(ctx, address(chat))
	})
	return err
}

// Join uses the code of an invitation.
func (g Groups) Join(ctx context.Context, code string) (string, error) {
	return ask(ctx, g.Enter, func(ctx context.Context, cli *whatsmeow.Client) (string, error) {
		jid, err := cli.JoinGroupWithLink(ctx, code)
		return chatOf(jid), err
	})
}
