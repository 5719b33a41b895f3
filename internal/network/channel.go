package network

import (
	"context"
	"errors"

	"postern/internal/postern"
)

// Channels follows channels with an account, over its live connection. Its errors are those of [Groups].
type Channels interface {
	// Followed returns all channels that the account follows.
	Followed(ctx context.Context) ([]postern.Channel, error)
	// Get returns a channel.
	Get(ctx context.Context, chat string) (postern.Channel, error)
	// Follow follows a channel, and returns it. It does nothing if the account follows it.
	Follow(ctx context.Context, chat string) (postern.Channel, error)
	// FollowInvite is Follow for a channel that is named by the code at the end of its address on the web.
	FollowInvite(ctx context.Context, code string) (postern.Channel, error)
	// Unfollow ends that the account follows a channel.
	Unfollow(ctx context.Context, chat string) error
}

// Why requests about channels are refused, beside the reasons of groups.
var (
	ErrNoSuchChannel  = errors.New("there is no such channel")
	ErrChannelForbids = errors.New("the network does not let the account do this in the channel; its owner cannot leave it")
)

// ChannelFollowed reports a channel that the account follows since now, here or on its phone. A driver may report it
// again.
type ChannelFollowed struct{ postern.Channel }

func (ChannelFollowed) update() {}
