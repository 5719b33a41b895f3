package network

import (
	"context"
	"errors"
	"time"

	"postern/internal/postern"
)

// Groups changes the groups of an account, over its live connection. Participants are numbers, or "lid:" and digits. All
// methods may return [ErrNotConnected], and a [*GroupRefused] if the network refuses the request; after any other error
// it is unknown whether the request had an effect.
type Groups interface {
	// Joined returns all groups that the account is in. The host has been given all notices about groups that the network
	// made before its answer, and perhaps newer ones; if it has not, the error is [ErrBehind]. The same holds for Get.
	Joined(ctx context.Context) ([]postern.Group, error)
	// Get returns a group that the account is in.
	Get(ctx context.Context, chat string) (postern.Group, error)
	// Unknown returns how many numbers Create and ChangeParticipants have to look up on the network before they add them.
	Unknown(ctx context.Context, who []string) (int, error)
	// Create creates a group. The outcomes are those of participants that could not be added; if Invite is true, those of
	// them whose settings forbid it get a message with which they can join.
	Create(ctx context.Context, g NewGroup) (postern.Group, []postern.ParticipantOutcome, error)
	// Subgroups returns the groups of a community.
	Subgroups(ctx context.Context, chat string) ([]postern.Subgroup, error)
	// Link makes a group one of a community, or ends that.
	Link(ctx context.Context, community, chat string, on bool) error
	// Change changes one thing after the other, and stops at the first that is refused.
	Change(ctx context.Context, chat string, c postern.GroupChange) error
	// ChangeParticipants returns one outcome for each participant. invite is as in Create, for those to add.
	ChangeParticipants(
		ctx context.Context, chat string, action postern.ParticipantAction, who []string, invite bool,
	) ([]postern.ParticipantOutcome, error)
	// Picture returns the picture of a group: its bytes, and its name on the network. Without bytes, the picture is the one
	// with the name known, or the name is "" and there is none.
	Picture(ctx context.Context, chat, known string) (id string, picture []byte, err error)
	// SetPicture sets the picture of a group, a square JPEG; nil removes it.
	SetPicture(ctx context.Context, chat string, jpeg []byte) error
	// Invite returns the address of the invitation to a group, or that of a new one in place of it.
	Invite(ctx context.Context, chat string, renew bool) (url string, err error)
	// Requests returns who wants to join a group.
	Requests(ctx context.Context, chat string) ([]postern.JoinRequest, error)
	// Leave leaves a group.
	Leave(ctx context.Context, chat string) error
	// Join uses the code of an invitation. If the account is not in the group afterwards, an administrator has to approve.
	Join(ctx context.Context, code string) (chat string, err error)
}

// NewGroup describes a group to create.
type NewGroup struct {
	Subject      string
	Participants []string
	Invite       bool
	Community    bool   // it is a community
	CommunityID  string // of the community to which it belongs; "" for none
}

// GroupRefused is the error of a request about a group that the network has refused.
type GroupRefused struct{ Why error }

func (e *GroupRefused) Error() string { return e.Why.Error() }

// Unwrap returns why the request was refused.
func (e *GroupRefused) Unwrap() error { return e.Why }

// Why requests about groups are refused.
var (
	ErrNoSuchGroup   = errors.New("there is no such group, or the account is not in it")
	ErrGroupForbids  = errors.New("the account is not in the group, or is not one of its administrators")
	ErrNoSuchCall    = errors.New("no such call rings")
	ErrNotOnNetwork  = errors.New("there is no such person on the network")
	ErrInviteUseless = errors.New("the invitation is not valid, or was replaced")
	ErrTooManyAsks   = errors.New("the network limits how often it is asked")
	ErrBadPicture    = errors.New("the network does not take the picture")
	ErrGroupRefused  = errors.New("the network refused the request")
)

// ErrBehind comes with an answer about groups that may be older than notices which have arrived and are not handled yet.
var ErrBehind = errors.New("notices about groups have arrived that are not handled yet")

// GroupUpdate is what became known about a group that the account is in. The network may report it more than once.
type GroupUpdate struct{ postern.GroupNotice }

// NewChats reports whether the account may write to people who have never written to it.
type NewChats struct {
	Allowed bool
	Until   time.Time // when it may again; zero if the network did not say
}

func (GroupUpdate) update() {}
func (NewChats) update()    {}
