package networktest

import (
	"context"

	"postern/internal/network"
	"postern/internal/postern"
)

// nobody is what an account sees that knows nobody.
type nobody struct{}

// People returns what the network shows an account of others: on the fake network, nothing.
func (*fakeSession) People() network.People { return nobody{} }

// Blocked returns nobody.
func (nobody) Blocked(context.Context) ([]postern.BlockedContact, error) { return nil, none() }

// SetBlocked refuses.
func (nobody) SetBlocked(context.Context, string, bool) error { return none() }

// Picture returns no picture.
func (nobody) Picture(context.Context, string, string) (id string, picture []byte, err error) {
	return "", nil, none()
}
