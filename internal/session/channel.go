package session

import (
	"context"
	"encoding/json"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store/requests"
)

// channelRequest carries out a request about channels, and returns its answer.
func (l asked) channelRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.ChannelInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	c := l.session.Channels()
	switch r.Kind {
	case gateway.ListChannels:
		list, err := c.Followed(ctx)
		if list == nil {
			list = []postern.Channel{}
		}
		return list, l.channelsSeen(ctx, err, list...)
	case gateway.UnfollowChannel:
		return struct{}{}, c.Unfollow(ctx, in.ChatID)
	}
	one, err := followIn(ctx, c, in)
	return one, l.channelsSeen(ctx, err, one)
}

func followIn(ctx context.Context, c network.Channels, in gateway.ChannelInput) (postern.Channel, error) {
	if in.Code != "" {
		return c.FollowInvite(ctx, in.Code)
	}
	return c.Follow(ctx, in.ChatID)
}

// channelsSeen stores the names of channels that a request has found. If that fails, they are asked for when they are
// needed.
func (l asked) channelsSeen(ctx context.Context, err error, list ...postern.Channel) error {
	if err != nil {
		return err
	}
	if err := l.e.g.Sessions.NoteChannels(ctx, l.id, list); err != nil {
		l.e.log.Warn("the names of channels are not stored yet", "device", l.id, "error", err)
	}
	return nil
}

// namesAtOnce is how many channels without a name are looked up at a time.
const namesAtOnce = 20

// nameChannel looks for the name of a channel, once per connection.
func (l *liveSession) nameChannel(chat string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !postern.IsChannel(chat) || l.looked[chat] {
		return
	}
	if l.looked == nil {
		l.looked = map[string]bool{}
	}
	l.looked[chat] = true
	l.e.running.Go(l.nameChannels)
}

// nameChannels asks the network for the names of channels that have messages and no name.
func (l *liveSession) nameChannels() {
	chats, err := l.e.g.Sessions.UnnamedChannels(l.ctx, l.id, namesAtOnce)
	for _, chat := range chats {
		var one postern.Channel
		if one, err = l.session.Channels().Get(l.ctx, chat); err == nil {
			err = l.e.g.Sessions.NoteChannels(l.ctx, l.id, []postern.Channel{one})
		}
		if err != nil {
			break
		}
	}
	if err != nil && l.ctx.Err() == nil {
		l.e.log.Warn("the name of a channel is not known yet", "device", l.id, "error", err)
	}
}
