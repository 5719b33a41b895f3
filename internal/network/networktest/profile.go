package networktest

import (
	"context"

	"postern/internal/network"
)

// noProfile is the profile of an account that shows nothing.
type noProfile struct{}

// Profile returns the profile of an account: on the fake network it is empty.
func (*fakeSession) Profile() network.Profile { return noProfile{} }

// Get returns nothing.
func (noProfile) Get(context.Context, string) (p network.ShownProfile, err error) { return p, nil }

// SetName refuses.
func (noProfile) SetName(context.Context, string) error { return none() }

// SetAbout refuses.
func (noProfile) SetAbout(context.Context, string) error { return none() }

// SetPicture refuses.
func (noProfile) SetPicture(context.Context, []byte) error { return none() }
