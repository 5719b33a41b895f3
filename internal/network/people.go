package network

import (
	"context"

	"postern/internal/postern"
)

// OtherForm reports by which number the network knows one to which a message was sent. A driver may report it again.
type OtherForm struct{ postern.OtherForm }

func (OtherForm) update() {}

// Identified reports people whose number and LID became known to belong together, from whatever the network said. A driver
// may report them again, and may leave some out: their next message names both.
type Identified struct{ People []postern.Seen }

func (Identified) update() {}

// People reads what the network shows the account of others, and changes whom it has blocked, over its live connection.
// Its errors are those of [Groups]; [ErrNotOnNetwork] means that there is no such person.
type People interface {
	// Blocked returns whom the account has blocked, here or on the phone.
	Blocked(ctx context.Context) ([]postern.BlockedContact, error)
	// SetBlocked blocks the person of a direct chat, or ends that. It does nothing if that is so already.
	SetBlocked(ctx context.Context, chat string, blocked bool) error
	// Picture returns the picture of the person of a direct chat, like [Groups].Picture. A picture that the person hides from
	// the account counts as none.
	Picture(ctx context.Context, chat, known string) (id string, picture []byte, err error)
}
