package networktest

import (
	"context"

	"postern/internal/network"
	"postern/internal/postern"
)

// noGroups are the groups of an account that is in none.
type noGroups struct{}

func none() error { return &network.GroupRefused{Why: network.ErrNoSuchGroup} }

// Joined returns no group.
func (noGroups) Joined(context.Context) ([]postern.Group, error) { return nil, nil }

// Get refuses.
func (noGroups) Get(context.Context, string) (postern.Group, error) { return postern.Group{}, none() }

// Unknown returns none.
func (noGroups) Unknown(context.Context, []string) (int, error) { return 0, nil }

// Create refuses.
func (noGroups) Create(
	context.Context, network.NewGroup,
) (postern.Group, []postern.ParticipantOutcome, error) {
	return postern.Group{}, nil, &network.GroupRefused{Why: network.ErrGroupRefused}
}

// Subgroups refuses.
func (noGroups) Subgroups(context.Context, string) ([]postern.Subgroup, error) { return nil, none() }

// Link refuses.
func (noGroups) Link(context.Context, string, string, bool) error { return none() }

// Change refuses.
func (noGroups) Change(context.Context, string, postern.GroupChange) error { return none() }

// ChangeParticipants refuses.
func (noGroups) ChangeParticipants(
	context.Context, string, postern.ParticipantAction, []string, bool,
) ([]postern.ParticipantOutcome, error) {
	return nil, none()
}

// Invite refuses.
func (noGroups) Invite(context.Context, string, bool) (string, error) { return "", none() }

// Requests refuses.
func (noGroups) Requests(context.Context, string) ([]postern.JoinRequest, error) { return nil, none() }

// Leave refuses.
func (noGroups) Leave(context.Context, string) error { return none() }

// Join refuses.
func (noGroups) Join(context.Context, string) (string, error) {
	return "", &network.GroupRefused{Why: network.ErrInviteUseless}
}

// CheckNumbers finds every number.
func (*fakeSession) CheckNumbers(_ context.Context, numbers []string) ([]postern.CheckedNumber, error) {
	list := make([]postern.CheckedNumber, len(numbers))
	for i, n := range numbers {
		list[i] = postern.CheckedNumber{PhoneNumber: n, Exists: true, NetworkNumber: postern.Maybe(n)}
	}
	return list, nil
}

// Typing shows nothing.
func (*fakeSession) Typing(context.Context, string, postern.Typing) error { return nil }

// RejectCall finds no call.
func (*fakeSession) RejectCall(context.Context, string) error { return network.ErrNoSuchCall }

// ReadHistory finds nothing.
func (*fakeSession) ReadHistory(context.Context, network.Ref, network.HistoryReader) error {
	return network.ErrMediaGone
}

// AskHistory asks in vain.
func (*fakeSession) AskHistory(context.Context, network.HistoryRequest) error { return nil }

// Picture fails.
func (noGroups) Picture(context.Context, string, string) (string, []byte, error) {
	return "", nil, none()
}

// SetPicture fails.
func (noGroups) SetPicture(context.Context, string, []byte) error { return none() }

// ChangeChat changes nothing.
func (*fakeSession) ChangeChat(context.Context, string, network.ChatChange) error { return nil }

// ChangeLabel changes nothing.
func (*fakeSession) ChangeLabel(context.Context, postern.LabelEdit) error { return nil }
