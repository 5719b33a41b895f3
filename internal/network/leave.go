package network

import (
	"context"
	"errors"

	"postern/internal/postern"
)

// Leave connects to the account of s once more, and removes the companion from it. It succeeds if the account has
// removed the companion already. Messages that waited at the network come first. They are acknowledged and discarded,
// because nobody wants the link any more, and a refusal would end the connection before it can be used.
func Leave(ctx context.Context, s Session, h Host) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := leaving{h, make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	select {
	case <-l.live:
		err := s.Unlink(ctx)
		cancel()
		<-ended //nolint:errcheck // the answer to Unlink is what counts
		return err
	case err := <-ended:
		return gone(err)
	}
}

// gone returns nil if the network has removed the companion already, and otherwise why it could not be reached.
func gone(err error) error {
	var end *Ended
	switch {
	case errors.As(err, &end) && (end.Status == postern.LoggedOut || end.Status == postern.Banned):
		return nil
	case err == nil:
		return errors.New("the network did not answer in time")
	}
	return err
}

// leaving is the host of a connection that only ends the link; live is readable once the connection is live.
type leaving struct {
	Host
	live chan struct{}
}

// Update waits for the connection to be live.
func (l leaving) Update(_ context.Context, u Update) error {
	if _, live := u.(Live); live {
		select {
		case l.live <- struct{}{}:
		default:
		}
	}
	return nil
}

// Outbound reports false: nothing is sent again.
func (leaving) Outbound(context.Context, string) (Outbound, bool, error) {
	return Outbound{}, false, nil
}
