package networktest

import (
	"context"

	"postern/internal/network"
	"postern/internal/postern"
)

// noChannels are the channels of an account that follows none.
type noChannels struct{}

// Channels returns the channels of an account. The fake network has no channels.
func (*fakeSession) Channels() network.Channels { return noChannels{} }

// Followed returns none.
func (noChannels) Followed(context.Context) ([]postern.Channel, error) { return nil, nil }

// Get refuses.
func (noChannels) Get(context.Context, string) (c postern.Channel, err error) { return c, none() }

// Follow refuses.
func (noChannels) Follow(context.Context, string) (c postern.Channel, err error) { return c, none() }

// FollowInvite refuses.
func (noChannels) FollowInvite(context.Context, string) (c postern.Channel, err error) {
	return c, none()
}

// Unfollow refuses.
func (noChannels) Unfollow(context.Context, string) error { return none() }
