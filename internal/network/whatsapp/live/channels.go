package live

import (
	"context"
	"errors"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
)

// Channels implements [network.Channels]. The vendor calls channels newsletters.
type Channels struct{ Enter }

var _ network.Channels = Channels{}

// ChannelAddress returns the network's address of a channel; ok is false if the chat is not a channel.
func ChannelAddress(chat string) (channel types.JID, ok bool) {
	id, ok := strings.CutPrefix(chat, "channel:")
	return types.NewJID(id, types.NewsletterServer), ok
}

// ChannelOf converts what the network says of a channel; ok is false if its address cannot be one of a channel.
func ChannelOf(info *types.NewsletterMetadata) (c postern.Channel, ok bool) {
	chat, err := postern.ParseChat(info.ID.String())
	if err != nil || !postern.IsChannel(chat) {
		return c, false
	}
	about := info.ThreadMeta
	c = postern.Channel{
		ChatID: chat, Name: clip(about.Name.Text, postern.MaxGroupSubject),
		Description: clip(about.Description.Text, postern.MaxGroupDescription), Followers: max(about.SubscriberCount, 0),
		Role: postern.ChannelGuest, CreatedAt: timeOf(about.CreationTime.Time),
		Verified: about.VerificationState == types.NewsletterVerificationStateVerified,
	}
	if about.InviteCode != "" {
		c.URL = postern.Maybe(clip(whatsmeow.NewsletterLinkPrefix+about.InviteCode, maxURL))
	}
	if info.ViewerMeta != nil {
		c.Role = channelRole(info.ViewerMeta.Role)
	}
	return c, true
}

const maxURL = 200 // characters; the vendor's addresses have about 50

func channelRole(r types.NewsletterRole) string {
	switch r {
	case types.NewsletterRoleSubscriber:
		return postern.ChannelFollower
	case types.NewsletterRoleAdmin:
		return postern.ChannelAdmin
	case types.NewsletterRoleOwner:
		return postern.ChannelOwner
	case types.NewsletterRoleGuest:
	}
	return postern.ChannelGuest
}

// Followed returns all channels that the account follows.
func (c Channels) Followed(ctx context.Context) ([]postern.Channel, error) {
	list, err := ask(ctx, c.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.Channel, error) {
		infos, err := cli.GetSubscribedNewsletters(ctx)
		list := make([]postern.Channel, 0, len(infos))
		for _, info := range infos {
			if info == nil {
				continue
			}
			if one, ok := ChannelOf(info); ok {
				list = append(list, one)
			}
		}
		return list, err
	})
	return list, ofChannel(err)
}

// Get returns a channel.
func (c Channels) Get(ctx context.Context, chat string) (postern.Channel, error) {
	one, err := ask(ctx, c.Enter, func(ctx context.Context, cli *whatsmeow.Client) (postern.Channel, error) {
		to, _ := ChannelAddress(chat)
		return readChannel(ctx, cli, to)
	})
	return one, ofChannel(err)
}

// errNoChannel is the network's answer about a channel that does not exist.
var errNoChannel = &network.GroupRefused{Why: network.ErrNoSuchChannel}

func readChannel(ctx context.Context, cli *whatsmeow.Client, to types.JID) (c postern.Channel, err error) {
	info, err := cli.GetNewsletterInfo(ctx, to)
	if err != nil {
		return c, err
	}
	return described(info)
}

// described converts the network's answer about one channel.
func described(info *types.NewsletterMetadata) (c postern.Channel, err error) {
	if info == nil {
		return c, errNoChannel
	}
	c, ok := ChannelOf(info)
	if !ok {
		return c, errNoChannel
	}
	return c, nil
}

// Follow follows a channel, and returns it.
func (c Channels) Follow(ctx context.Context, chat string) (postern.Channel, error) {
	one, err := ask(ctx, c.Enter, func(ctx context.Context, cli *whatsmeow.Client) (postern.Channel, error) {
		return followChannel(ctx, cli, chat)
	})
	return one, ofChannel(err)
}

// followChannel reads a channel before it follows it: what the vendor answers to those who follow it already is not
// known.
func followChannel(ctx context.Context, cli *whatsmeow.Client, chat string) (postern.Channel, error) {
	to, _ := ChannelAddress(chat)
	one, err := readChannel(ctx, cli, to)
	if err != nil || one.Role != postern.ChannelGuest {
		return one, err
	}
	one.Role = postern.ChannelFollower
	return one, cli.FollowNewsletter(ctx, to)
}

// FollowInvite follows the channel with a code.
func (c Channels) FollowInvite(ctx context.Context, code string) (postern.Channel, error) {
	one, err := ask(ctx, c.Enter, func(ctx context.Context, cli *whatsmeow.Client) (postern.Channel, error) {
		info, err := cli.GetNewsletterInfoWithInvite(ctx, code)
		if err != nil {
			return postern.Channel{}, err
		}
		found, err := described(info)
		if err != nil {
			return found, err
		}
		return followChannel(ctx, cli, found.ChatID)
	})
	if err = ofChannel(err); errors.Is(err, network.ErrNoSuchChannel) {
		err = &network.GroupRefused{Why: network.ErrInviteUseless}
	}
	return one, err
}

// Unfollow ends that the account follows a channel.
func (c Channels) Unfollow(ctx context.Context, chat string) error {
	_, err := ask(ctx, c.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		to, _ := ChannelAddress(chat)
		return struct{}{}, cli.UnfollowNewsletter(ctx, to)
	})
	return ofChannel(err)
}

// ofChannel returns an error with what it says about a channel in place of a group.
func ofChannel(err error) error {
	switch {
	case errors.Is(err, network.ErrNoSuchGroup):
		return errNoChannel
	case errors.Is(err, network.ErrGroupForbids):
		return &network.GroupRefused{Why: network.ErrChannelForbids}
	}
	return err
}
