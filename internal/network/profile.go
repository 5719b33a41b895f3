package network

import (
	"context"
	"time"
)

// Profile reads and changes what the network shows others of the account, over its live connection. Its errors are those
// of [Groups]; a [*Rejected] means that nothing was changed.
type Profile interface {
	// Get returns the profile. If the picture has no bytes, either the account has no picture, or its picture is still the
	// one named known.
	Get(ctx context.Context, known string) (ShownProfile, error)
	// SetName changes the name, and reports that as [Renamed] before it returns.
	SetName(ctx context.Context, name string) error
	// SetAbout changes what the account says about itself; "" removes it.
	SetAbout(ctx context.Context, about string) error
	// SetPicture sets the picture, a square JPEG; nil removes it.
	SetPicture(ctx context.Context, jpeg []byte) error
}

// ShownProfile is what the network shows others of an account.
type ShownProfile struct {
	Name      string // "" if the phone has not told it
	About     string
	PictureID string // on the network; "" if there is no picture
	Picture   []byte
}

// Renamed reports the name that the account has, here or on the phone. A driver may report it again.
type Renamed struct{ Name string }

// PhoneSeen reports that the account's phone has done something. A driver may report it any number of times.
type PhoneSeen struct{ At time.Time }

func (Renamed) update()   {}
func (PhoneSeen) update() {}
