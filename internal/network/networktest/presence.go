package networktest

import (
	"context"

	"postern/internal/network"
)

// unseen is a network on which accounts show themselves to nobody, and nobody shows anything.
type unseen struct{}

// Presence returns a network on which nobody shows anything.
func (*fakeSession) Presence() network.Presence { return unseen{} }

// Show does nothing.
func (unseen) Show(context.Context, bool) error { return nil }

// Subscribe does nothing.
func (unseen) Subscribe(context.Context, string) error { return nil }
