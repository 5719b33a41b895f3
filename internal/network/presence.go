package network

import (
	"context"
	"time"

	"postern/internal/postern"
)

// Presence shows others that the account is there, and asks what they show, over its live connection. Its errors are
// those of [Groups]; a [*Rejected] means that there is no such person.
type Presence interface {
	// Show makes the account available, or ends that. While it is available, others see that it is online, its phone may
	// not ring, and the host gets [Typing] and [Seen]. A new connection begins unavailable.
	Show(ctx context.Context, available bool) error
	// Subscribe asks for [Seen] of the person of a direct chat until the connection ends.
	Subscribe(ctx context.Context, chat string) error
}

type (
	// Typing reports that somebody types in a chat, or no longer does. It is not acknowledged, so a host may leave it out.
	// A driver leaves out what the network repeats.
	Typing struct {
		ChatID  string
		From    string // "+" and digits; "" while the network hides the number
		FromLID string // "lid:" and digits; "" if there is none
		Typing  postern.Typing
	}

	// Seen reports whether the person of a direct chat is online, like [Typing].
	Seen struct {
		ChatID    string
		Available bool
		LastSeen  time.Time // zero if the person is online, or does not show it
	}
)

func (Typing) update() {}
func (Seen) update()   {}
