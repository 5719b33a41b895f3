package whatsapp

import (
	"context"
	"time"

	"postern/internal/network"
)

// askPasskey tells the host that the vendor wants the owner's passkey.
//
// The answer would be a WebAuthn assertion for the vendor's own domain. A browser
// makes one for pages of that domain alone, so no page of ours can ask for it, and
// whatsmeow's SendPasskeyResponse stays unused: the attempt shows its state and
// ends when its time is over.
func (a *attempt) askPasskey(ctx context.Context) {
	a.asked.Do(func() {
		if !a.stores(ctx, network.PasskeyWanted{}) {
			a.fail("store-unavailable", false)
			return
		}
		close(a.passkey)
	})
}

// awaitPasskey leaves the attempt open until its time is over.
func (a *attempt) awaitPasskey(ctx context.Context) {
	timer := time.NewTimer(a.pace.passkey)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		a.fail("passkey-required", false)
	}
}
